import { randomUUID } from "node:crypto";
import { readdirSync } from "node:fs";
import type { StepStore } from "../core/session.ts";
import { errorCode, EXIT, HarnessError } from "../core/errors.ts";
import type { LayerChanges } from "../core/ports.ts";
import { type LineChange, type FileDiff, groupChanges, splitLines } from "../core/text/line-diff.ts";
import { isInside } from "../core/file-names.ts";
import { textOfBytes } from "../core/raw-data.ts";
import type { CheckpointStore } from "./checkpoints/checkpoint-store.ts";
import {
  ContentReader,
  type Entry,
  isBelow,
  putText,
  sameEntry,
  textOf,
  type Tree,
} from "./checkpoints/entry.ts";
import {
  carryOut,
  dropJournal,
  lookAtWorkspace,
  mustGoFirst,
  writeJournal,
} from "./checkpoints/undo-changes.ts";
import { refuseWithoutRoom, withoutForeign, withRefusals } from "./checkpoints/before-moves.ts";
import { isSkipped, layerEntry, presentEntry, withSkipped } from "./checkpoints/seen-entries.ts";
import { filtered, merged, overlaid } from "./checkpoints/file-tree.ts";
import { type EntryMove, type ChangePlan, planOf } from "./checkpoints/undo-plan.ts";
import { filesOf, lineChanges } from "./checkpoints/checkpoint-diff.ts";
import type { Packs } from "./checkpoints/packs.ts";

/** Moves what a session changed in its layer into the workspace: all of it, some paths, or parts of files. */

/** What applying would do to the present workspace. */
export interface PreparedChanges extends ChangePlan {
  /** All changes of the layer, requested or not. */
  readonly made: readonly LayerChange[];
  /** Requested paths that the workspace already has in the layer's form. */
  readonly there: readonly string[];
  readonly now: Tree;
  /** Of these paths, only a part of the change is moved. */
  readonly partial?: ReadonlySet<string>;
}

interface ApplyRequest {
  readonly session: string;
  readonly layer: LayerChanges;
  /** Left out: all paths. A folder stands for everything in it. */
  readonly only?: readonly string[];
}

/** From here to the end of `move`, nobody else may write to the workspace or the layer. */
export async function prepareApply(store: CheckpointStore, wanted: ApplyRequest): Promise<PreparedChanges> {
  const reader = new ContentReader(store.packs);
  const made = layerChanges(store, reader, wanted);
  const chosen = made.filter(({ path }) => isRequested(path, wanted.only));
  const paths = chosen.map(({ path }) => path);
  const now = withSkipped(await lookAtWorkspace(store), paths, { reader, root: store.workspace });
  store.packs.flush();
  const sure = chosen.filter(({ unsure }) => !unsure);
  // An undo takes the run's change out of the present state; this puts it in, so the span is reversed.
  const spans = new Map(sure.map(({ path, base, after }) => [path, [{ from: after, to: base }]]));
  const whole = planOf(spans, now, store.packs);
  const lost = whole.ops.filter((op) => isLost(op)).map(({ path }) => ({ path, reason: NOT_KEPT }));
  const plan = withoutForeign(withRefusals(whole, lost), store.workspace);
  store.packs.flush();
  const unsure = chosen.flatMap(({ path, after, gone, unsure: doubt }) => {
    if (gone) return [{ path, reason: "it cannot be read in the layer, or its path is too long" }];
    return doubt && !sameEntry(now.get(path), after) ? [{ path, reason: "it was changed since" }] : [];
  });
  const large = new Set(chosen.filter(({ after }) => isTooLarge(after)).map(({ path }) => path));
  const refused = [...plan.refused, ...unsure].map(({ path, reason }) =>
    large.has(path) ? { path, reason: whereLarge(wanted.layer, path) } : { path, reason },
  );
  const undecided = new Set([...whole.ops, ...refused].map(({ path }) => path));
  const there = paths.filter((path) => !undecided.has(path) && !plan.left.includes(path));
  return { ...plan, refused, made, there, now };
}

/** The content that is there would be gone for good. */
const isLost = ({ from, to }: EntryMove): boolean => from?.kind === "unkept" && !from.folder && from !== to;

const NOT_KEPT =
  "it is too large or cannot be read, so undo could not bring it back; change or delete it yourself";

const isTooLarge = (entry: Entry | undefined): boolean => entry?.kind === "unkept" && entry.why === "large";

/** Its content is never stored, so nothing could be taken back: a person copies it. */
const whereLarge = ({ content }: LayerChanges, path: string): string =>
  `it is too large to be moved; copy it yourself, from ${content}/${path}`;

/** The folders above a requested path come along as they are in the layer. */
const isRequested = (path: string, only: readonly string[] | undefined): boolean =>
  only === undefined || only.some((each) => each === path || isBelow(path, each) || isBelow(each, path));

interface ApplyOutcome {
  /** The workspace has everything that is in the layer. */
  readonly whole: boolean;
}

/** Moves the prepared changes, or part of them, into the workspace. If killed midway, the journal finishes the move. */
export async function move(
  store: CheckpointStore,
  { session, steps }: { readonly session: string; readonly steps: StepStore },
  { made, now, there, ops, partial }: PreparedChanges,
): Promise<ApplyOutcome> {
  store.packs.flush();
  if (ops.length > 0) {
    refuseIfChanged(store, ops);
    const part = "make room, then run the same command again, or move a part: harness apply --only PATH";
    refuseWithoutRoom(store.workspace, ops, part);
    const before = store.save(session, withoutPassedOver(now));
    const step = steps.begin({ kind: "call", call: "apply", turn: null, before, target: null });
    const aside = `.harness-apply-${randomUUID()}`;
    const journal = { session, step, before, aside, ops, whole: true, what: "apply" } as const;
    writeJournal(store.folder, journal);
    carryOut(store, journal, ops);
    steps.end(step, { before, after: await store.take(session) });
    dropJournal(store.folder);
    store.remember();
  }
  const whole = ops.filter(({ path }) => partial?.has(path) !== true);
  return recordApplied(store, session, { made, done: new Set([...there, ...whole.map(({ path }) => path)]) });
}

/** Moved changes no longer count as changes of the layer, whatever happens to them in the workspace. */
function recordApplied(
  store: CheckpointStore,
  session: string,
  { made, done }: { readonly made: readonly LayerChange[]; readonly done: ReadonlySet<string> },
): ApplyOutcome {
  const known = baseOf(store, session);
  const moved = made.flatMap(({ path, after }) => (done.has(path) ? [[path, after] as const] : []));
  // Without a base, later changes are recognized by their time.
  if (known !== undefined) saveBase(store, session, overlaid(known, new Map(moved)));
  return { whole: made.every(({ path }) => done.has(path)) };
}

function refuseIfChanged(store: CheckpointStore, ops: readonly EntryMove[]): void {
  const reader = new ContentReader(store.packs);
  const leaving = ops.filter(mustGoFirst).map(({ path }) => path);
  const still = ({ path, from }: EntryMove): boolean =>
    isSkipped(path)
      ? sameEntry(presentEntry(reader, store.workspace, path)?.entry, from ?? undefined)
      : store.areUnchanged([path], leaving);
  const moved = ops.find((op) => !still(op));
  if (moved === undefined) return;
  throw new HarnessError(
    EXIT.failed,
    `something else is changing the workspace: ${moved.path}`,
    "harness apply",
  );
}

const withoutPassedOver = (tree: Tree): Tree => filtered(tree, (path) => !isSkipped(path));

/** A session's change to a path in its layer, relative to the path's state when the session began. */
interface LayerChange {
  readonly path: string;
  readonly base: Entry | undefined;
  readonly after: Entry | undefined;
  /** The layer has the path, but not within reach. */
  readonly gone: boolean;
  /** The path was changed since, and its state at the start of the session is no longer known. */
  readonly unsure: boolean;
}

/** File systems record times coarsely. */
const COARSE_MS = 20;

/** By path, with contents stored. A path that is as it was when the session began is not a change. */
function layerChanges(
  store: CheckpointStore,
  reader: ContentReader,
  { session, layer }: { readonly session: string; readonly layer: LayerChanges },
): readonly LayerChange[] {
  const base = baseOf(store, session);
  // A folder that became a file occurs twice; its present state comes last.
  const made = new Map<string, LayerChange>();
  for (const { path, what, kind, mode } of layer.changes) {
    const found = what === "deleted" ? undefined : layerEntry(reader, layer.content, { path, mode });
    // A copy is brought without what is neither a file, a folder nor a link.
    const isLeftOut = what !== "deleted" && kind === "odd" && found === undefined;
    const after: Entry | undefined = isLeftOut ? { kind: "odd", what: "fifo", mode } : found;
    const gone = what !== "deleted" && after === undefined;
    made.set(path, { path, after, gone, ...(gone ? { base: undefined, unsure: true } : before(path)) });
  }
  store.packs.flush();
  return [...made.values()].filter((each) => each.unsure || !sameEntry(each.base, each.after));

  function before(path: string): Pick<LayerChange, "base" | "unsure"> {
    if (layer.unseen?.some((each) => isInside(each, path)) === true)
      return { base: undefined, unsure: false };
    const known = base?.get(path);
    if (known !== undefined) return { base: known, unsure: false };
    if (base !== undefined && !isSkipped(path)) return { base: undefined, unsure: false };
    const now = presentEntry(reader, store.workspace, path);
    return now === undefined || now.changed < layer.since - COARSE_MS
      ? { base: now?.entry, unsure: false }
      : { base: undefined, unsure: true };
  }
}

/** A path that would be moved, in parts that can be chosen individually. */
interface Parts {
  /** What each part does, in order. A single part if there are no lines to choose from. */
  readonly shown: readonly FileDiff[];
  /** The operation with only these parts, contents stored; undefined if none is chosen. */
  readonly only: (wanted: readonly boolean[]) => EntryMove | undefined;
}

/** Changes with fewer lines between them form one part. */
const MIN_LINES_APART = 3;

export function partsOf(op: EntryMove, packs: Packs): Parts {
  const { path, from, to } = op;
  const [before, after] = [from, to].map((each) => (each?.kind === "file" ? textOf(packs, each) : undefined));
  const groups = before === undefined || after === undefined ? [] : groupsOf(before, after);
  if (
    from?.kind !== "file" ||
    to?.kind !== "file" ||
    before === undefined ||
    after === undefined ||
    groups.length < 2
  )
    return { shown: diffOf(op, packs), only: ([wanted]) => (wanted === true ? op : undefined) };
  const made = (wanted: readonly boolean[]): EntryMove => {
    const text = textWith(before, after, groups.filter((_, at) => wanted[at] === true).flat());
    // The new mode comes with whichever part is moved first.
    return { path, from, to: { ...to, ...putText(packs, text) } };
  };
  const shown = groups.flatMap((_, at) => {
    const one = made(groups.map((__, other) => other === at));
    packs.flush();
    return diffOf(one, packs);
  });
  return {
    shown,
    only: (wanted) => {
      if (!wanted.includes(true)) return undefined;
      return wanted.includes(false) ? made(wanted) : op;
    },
  };
}

const diffOf = ({ path, from, to }: EntryMove, packs: Packs): readonly FileDiff[] =>
  filesOf([{ path, from: from ?? undefined, to: to ?? undefined }], packs);

/** Texts that differ in more lines form one part. */
const MAX_CHANGED_LINES = 400;

const groupsOf = (before: string, after: string): readonly (readonly LineChange[])[] =>
  groupChanges(lineChanges(splitLines(before), splitLines(after), MAX_CHANGED_LINES), MIN_LINES_APART);

function textWith(before: string, after: string, changes: readonly LineChange[]): string {
  const [old, now] = [splitLines(before), splitLines(after)];
  const out: string[] = [];
  let at = 0;
  for (const { from, to, newFrom, newTo } of changes) {
    out.push(...old.slice(at, from), ...now.slice(newFrom, newTo));
    at = to;
  }
  return [...out, ...old.slice(at)].join("");
}

/**
 * Makes a choice of operations consistent: new folders come with the chosen paths in them, and a folder is not replaced
 * while something stays in it.
 */
export function standing(chosen: readonly EntryMove[], all: readonly EntryMove[]): readonly EntryMove[] {
  const wanted = new Set(chosen.map(({ path }) => path));
  const left = all.filter(({ path }) => !wanted.has(path));
  const possible = chosen.filter(
    ({ path, from, to }) =>
      !(from?.kind === "folder" && to !== null && to.kind !== "folder") ||
      !left.some((op) => isBelow(op.path, path)),
  );
  const parents = left.filter(
    ({ path, to }) =>
      to?.kind === "folder" && possible.some((op) => op.to !== null && isBelow(op.path, path)),
  );
  return [...possible, ...parents].toSorted((a, b) => (a.path < b.path ? -1 : 1));
}

/** Trees of this name are not steps of a session: they live as long as its layer. */
const treeNameOf = (session: string): string => `layer-${session}`;

function baseOf({ trees }: CheckpointStore, session: string): Tree | undefined {
  const name = `${treeNameOf(session)}.`;
  const numbers = trees
    .ids()
    .filter((id) => id.startsWith(name))
    .map((id) => Number(id.slice(name.length)));
  return numbers.length === 0 ? undefined : trees.load(`${name}${Math.max(...numbers)}`);
}

const saveBase = (store: CheckpointStore, session: string, base: Tree): void =>
  void store.save(treeNameOf(session), base);

export const forgetBase = ({ trees }: CheckpointStore, session: string): void =>
  trees.forget(treeNameOf(session));

/**
 * Called before a box continues over a layer. The box starts from the present workspace, except where the layer already
 * holds something. `upper` is that layer; undefined for a copy, which does not see later changes.
 */
export async function noteBase(
  store: CheckpointStore,
  session: string,
  upper: string | undefined,
): Promise<void> {
  const earlier = baseOf(store, session);
  const names = upper === undefined ? undefined : namesIn(upper);
  if (earlier !== undefined && names === undefined) return;
  const now = await store.look();
  store.remember();
  saveBase(
    store,
    session,
    earlier === undefined || names === undefined ? now : combinedBase(earlier, now, names),
  );
}

/** A folder in the layer may hide what is below it, so everything in such a folder keeps its first known state. */
function combinedBase(earlier: Tree, now: Tree, names: ReadonlySet<string>): Tree {
  const isOld = (path: string): boolean => path === "" || names.has(path.split("/", 1)[0] ?? "");
  return merged(
    filtered(earlier, isOld),
    filtered(now, (path) => !isOld(path)),
  );
}

/** Names at the top level of the layer. */
function namesIn(upper: string): ReadonlySet<string> {
  try {
    return new Set(readdirSync(upper, { encoding: "buffer" }).map(textOfBytes));
  } catch (thrown) {
    if (errorCode(thrown) === "ENOENT") return new Set();
    throw thrown;
  }
}
