import path from "node:path";
import { EXIT, HarnessError } from "../../core/errors.ts";
import type { Handoff } from "../../core/run-record.ts";
import type { Session, SessionStore } from "../../core/session.ts";
import { isInside } from "../../core/file-names.ts";
import { visibleLine } from "../../core/visible.ts";
import { type ChangedPath, handoffOf } from "../../policy/handoff-paths.ts";
import { fileDiffs, type ShownApply } from "../../render/change-lines.ts";
import { stderr } from "../../render/tty/output.ts";
import { move, partsOf, prepareApply, type PreparedChanges, standing } from "../../sessions/apply-layer.ts";
import type { CheckpointStore } from "../../sessions/checkpoints/checkpoint-store.ts";
import { type Entry, textOf } from "../../sessions/checkpoints/entry.ts";
import type { EntryMove } from "../../sessions/checkpoints/undo-plan.ts";
import type { Host } from "../host.ts";
import type { Prompter } from "../run/prompter.ts";
import { withLayer } from "./session-changes.ts";

export interface ApplyOptions {
  /** Paths below the workspace; left out: all. */
  readonly only?: readonly string[];
  readonly accept: readonly string[];
  readonly dryRun: boolean;
  /** Ask about each part of the changes. */
  readonly interactive: boolean;
  /** Undefined if there is no person to ask. */
  readonly prompter: Prompter | undefined;
  readonly say: (text: string) => void;
  /** Move nothing unless everything can be moved. */
  readonly onlyWhole?: boolean;
  /** Checked before anything is moved, and not afterwards. */
  readonly signal?: AbortSignal;
}

/** Moves the changes of a session's layer into the workspace, as far as allowed. */
export function applySession(
  host: Host,
  sessions: SessionStore,
  session: Session,
  { only, accept, dryRun, interactive, prompter, say, onlyWhole, signal }: ApplyOptions,
): Promise<ShownApply> {
  return withLayer(host, sessions, session, { say, moves: !dryRun }, async ({ layer, store, giveUp }) => {
    if (layer.incomplete) say("some of the session's changes cannot be read, and stay where they are");
    const wanted = { session: session.id, layer, ...(only === undefined ? {} : { only }) };
    const prepared = await prepareApply(store, wanted);
    const handoff = handoffOf(factsOf(prepared.ops, store), store.workspace);
    const outcome = { session: session.id, handoff, ...prepared };
    const { blocked, declined } = dryRun
      ? { blocked: [], declined: [] }
      : await decide(handoff, accept, prompter);
    const isPart = layer.incomplete || prepared.refused.length > 0;
    if (dryRun || blocked.length > 0 || (onlyWhole === true && isPart))
      return { ...outcome, blocked, done: false, whole: false };
    const allowedOps = prepared.ops.filter(({ path }) => !isInAny(path, declined));
    const ops = standing(allowedOps, prepared.ops);
    const allowed = { ...prepared, ops };
    const chosen =
      interactive && prompter !== undefined
        ? await pickParts(allowed, store, { show: toStderr, ask: prompter.pickPart })
        : allowed;
    signal?.throwIfAborted();
    const moved = await move(store, { session: session.id, steps: session.steps }, chosen);
    const whole = moved.whole && !layer.incomplete;
    if (whole) await giveUp();
    return { ...outcome, ops: chosen.ops, blocked, done: true, whole };
  });
}

const toStderr = (text: string): void => void stderr.write(text);

/** The facts that the classifier needs about each path to be moved. */
const factsOf = (ops: readonly EntryMove[], { packs }: CheckpointStore): readonly ChangedPath[] =>
  ops.map(({ path, from, to }) => {
    const isPackage = /(^|\/)package\.json$/i.test(path);
    return {
      path,
      what: to === null ? "deleted" : from === null ? "added" : "modified",
      kind: kindOf(to ?? from),
      mode: modeOf(to),
      oldMode: from?.kind === "file" ? from.mode : 0,
      ...(to?.kind === "link" ? { target: to.target } : {}),
      ...(isPackage ? { text: { before: textIn(packs, from), after: textIn(packs, to) } } : {}),
    };
  });

const kindOf = (entry: Entry | null): ChangedPath["kind"] =>
  entry === null || entry.kind === "unkept" ? "file" : entry.kind;

const modeOf = (entry: Entry | null): number | undefined =>
  entry === null || entry.kind === "link" ? undefined : entry.mode;

const textIn = (packs: CheckpointStore["packs"], entry: Entry | null): string | undefined =>
  entry?.kind === "file" ? textOf(packs, entry) : undefined;

interface Decided {
  /** Paths without a yes or no. */
  readonly blocked: readonly string[];
  /** Refused paths, which stay in the layer. */
  readonly declined: readonly string[];
}

const WHOLE_TIER = "dangerous";

/** Each dangerous path needs a yes: by its name, by the name of the tier, or at the terminal. */
async function decide(
  handoff: readonly Handoff[],
  accept: readonly string[],
  prompter: Prompter | undefined,
): Promise<Decided> {
  const dangerous = handoff.filter(({ tier }) => tier === "dangerous");
  for (const path of accept)
    if (path !== WHOLE_TIER && !handoff.some((each) => each.path === path)) throw unknownPath(path);
  const open = dangerous.filter(({ path }) => !accept.includes(path) && !accept.includes(WHOLE_TIER));
  if (prompter === undefined) return { blocked: open.map(({ path }) => path), declined: [] };
  const declined: string[] = [];
  for (const { path, reason } of open)
    if (!(await prompter.confirm(`${visibleLine(path.toWellFormed())}: ${reason}\nApply it?`)))
      declined.push(path);
  return { blocked: [], declined };
}

const unknownPath = (path: string): HarnessError =>
  new HarnessError(
    EXIT.usage,
    `--accept ${JSON.stringify(path)}: nothing with that name waits to be accepted`,
    "harness apply --dry-run   (lists what does)",
  );

/** A folder name covers everything in the folder. */
const isInAny = (path: string, folders: readonly string[]): boolean =>
  folders.some((each) => isInside(each, path));

/**
 * A typed path, relative to the workspace: read from the current folder if that lies in the workspace, otherwise from
 * the top.
 */
export function belowWorkspace(typed: string, workspace: string): string {
  const here = process.cwd();
  const inside = isInside(workspace, here);
  const below = path.relative(workspace, path.resolve(inside ? here : workspace, typed));
  if (below !== "" && below !== ".." && !below.startsWith("../") && !path.isAbsolute(below)) return below;
  throw new HarnessError(
    EXIT.usage,
    `--only ${JSON.stringify(typed)} is not a path in ${workspace}`,
    "harness apply --dry-run   (lists what there is)",
  );
}

/** Asks part by part which of the changes are wanted. */
export async function pickParts(
  prepared: PreparedChanges,
  store: CheckpointStore,
  { show, ask }: { readonly show: (text: string) => void; readonly ask: Prompter["pickPart"] },
): Promise<PreparedChanges> {
  const ops: EntryMove[] = [];
  const partial = new Set<string>();
  let rest: "all" | "quit" | undefined;
  for (const op of prepared.ops) {
    if (op.from === op.to) {
      ops.push(op);
      continue;
    }
    const { shown, only } = partsOf(op, store.packs);
    const wanted: boolean[] = [];
    for (const part of shown) {
      if (rest === undefined) {
        show(fileDiffs([part], stderr));
        const answer = await ask();
        if (answer === "all" || answer === "quit") rest = answer;
        wanted.push(answer === "yes" || answer === "all");
      } else wanted.push(rest === "all");
    }
    const chosen = only(wanted);
    if (chosen !== undefined) ops.push(chosen);
    if (chosen !== undefined && wanted.includes(false)) partial.add(op.path);
  }
  return { ...prepared, ops: standing(ops, prepared.ops), partial };
}
