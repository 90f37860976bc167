import { lstatSync, readdirSync, readFileSync, realpathSync } from "node:fs";
import path from "node:path";
import { randomUUID } from "node:crypto";
import { EXIT, HarnessError, reasonOf } from "../../core/errors.ts";
import { makeFolder } from "../../platform/folders.ts";
import { DatabaseLock } from "../sessions-db.ts";
import { type Entry, notRecreated } from "./entry.ts";
import { TreeFiles, TreeWalk } from "./file-tree.ts";
import { Packs } from "./packs.ts";
import { checkpointsIn } from "./store-place.ts";
import { restore } from "./undo-changes.ts";
import type { EntryMove } from "./undo-plan.ts";

/** The saved states of folders, read without the session database: what is left if that was lost. */

export interface SavedState {
  /** `SESSION.NUMBER`; with `layer-` before it, the folder as it was when the session's layer began. */
  readonly state: string;
  readonly session: string;
  /** Null if the record of the folder's path was lost. */
  readonly workspace: string | null;
  /** When it was saved, by the clock of that time, as an ISO time. */
  readonly saved: string;
  /** Paths that differ from the state before it of the same session; null for the first one. */
  readonly changed: readonly string[] | null;
}

interface Found {
  readonly folder: string;
  readonly workspace: string | null;
}

/** Newest first. A state that cannot be read is left out, and named to `warn`. */
export function savedStates(
  stateDir: string,
  { workspace, warn }: { readonly workspace?: string | undefined; readonly warn: (text: string) => void },
): readonly SavedState[] {
  const stores = storesIn(stateDir).filter((each) => workspace === undefined || each.workspace === workspace);
  return stores
    .flatMap((each) => statesIn(each, warn))
    .toSorted((a, b) => (a.saved === b.saved ? 0 : a.saved < b.saved ? 1 : -1));
}

function statesIn({ folder, workspace }: Found, warn: (text: string) => void): readonly SavedState[] {
  const trees = new TreeFiles(path.join(folder, "trees"));
  const named = trees.ids().map((state) => ({ state, ...partsOf(state) }));
  const found: SavedState[] = [];
  let walk = new TreeWalk(trees);
  let last: string | undefined;
  for (const { state, session, number } of named.toSorted(bySessionAndTime)) {
    try {
      if (last !== session) walk = new TreeWalk(trees);
      const changed = [...walk.moveTo(state)].map((change) => change.path);
      const saved = new Date(number).toISOString();
      found.push({ state, session, workspace, saved, changed: last === session ? changed : null });
      last = session;
    } catch (thrown) {
      last = undefined;
      warn(reasonOf(thrown));
    }
  }
  return found;
}

const LAYER = /^layer-/;

function partsOf(state: string): { readonly session: string; readonly number: number } {
  const dot = state.lastIndexOf(".");
  return { session: state.slice(0, dot).replace(LAYER, ""), number: Number(state.slice(dot + 1)) };
}

type Numbered = ReturnType<typeof partsOf>;

const bySessionAndTime = (a: Numbered, b: Numbered): number =>
  a.session === b.session ? a.number - b.number : a.session < b.session ? -1 : 1;

function storesIn(stateDir: string): readonly Found[] {
  const all = checkpointsIn(stateDir);
  return namesIn(all).map((name) => {
    const folder = path.join(all, name);
    return { folder, workspace: workspaceOf(folder) };
  });
}

function namesIn(folder: string): readonly string[] {
  if (lstatSync(folder, { throwIfNoEntry: false }) === undefined) return [];
  return readdirSync(folder);
}

function workspaceOf(folder: string): string | null {
  try {
    return readFileSync(path.join(folder, "workspace"), "utf8").replace(/\n$/, "");
  } catch {
    return null;
  }
}

export interface CopiedState {
  readonly state: string;
  readonly out: string;
  readonly paths: number;
  /** What the state does not hold, or no longer: it is missing in the copy. */
  readonly left: readonly { readonly path: string; readonly reason: string }[];
}

/** Writes a saved state into a folder that is new or empty; changes nothing else. */
export function copySavedState(stateDir: string, state: string, into: string): CopiedState {
  const found = storesIn(stateDir).find(({ folder }) => namesIn(path.join(folder, "trees")).includes(state));
  if (found === undefined)
    throw new HarnessError(
      EXIT.usage,
      `there is no saved state ${JSON.stringify(state)}`,
      "harness sessions checkpoints --all",
    );
  const out = emptyFolder(into);
  using lock = new DatabaseLock(path.join(found.folder, "lock"), PATIENCE_MS);
  lock.take("shared");
  using packs = new Packs(path.join(found.folder, "packs"));
  const ops: EntryMove[] = [];
  const left: { path: string; reason: string }[] = [];
  for (const [at, entry] of new TreeFiles(path.join(found.folder, "trees")).load(state)) {
    const reason = whyLeft(entry, packs);
    if (reason !== undefined) left.push({ path: at, reason });
    const to = entry.kind === "unkept" && entry.folder ? ({ ...entry, kind: "folder" } as const) : entry;
    if (at !== "" && (reason === undefined || to.kind === "folder")) ops.push({ path: at, from: null, to });
  }
  try {
    restore(ops, { root: out, packs, aside: `.harness-copy-${randomUUID()}` });
  } catch (thrown) {
    throw new HarnessError(
      EXIT.failed,
      `the copy in ${out} is not complete: ${reasonOf(thrown)}`,
      `df -h ${out}; then the same command with another --out`,
      thrown,
    );
  }
  return { state, out, paths: ops.length, left };
}

/** A collection by another process does not take longer. */
const PATIENCE_MS = 3000;

function whyLeft(entry: Entry, packs: Packs): string | undefined {
  if (entry.kind === "odd") return notRecreated(entry);
  if (entry.kind === "unkept")
    return entry.why === "large" ? "its content was not saved: it was too large" : "it could not be read";
  if (entry.kind !== "file" || entry.pieces.every((piece) => packs.isWhole(piece))) return undefined;
  return "its content is no longer stored";
}

function emptyFolder(typed: string): string {
  try {
    makeFolder(typed, 0o777);
    if (readdirSync(typed).length === 0) return realpathSync(typed);
  } catch (thrown) {
    throw new HarnessError(EXIT.usage, `--out ${typed} cannot be used: ${reasonOf(thrown)}`, "another --out");
  }
  throw new HarnessError(
    EXIT.usage,
    `--out ${typed} is not empty`,
    "--out DIR, a folder that is new or empty",
  );
}
