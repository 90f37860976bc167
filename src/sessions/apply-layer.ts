import { randomUUID } from "node:crypto";
import type { Steps } from "../core/checkpoint-port.ts";
import { EXIT, HarnessError } from "../core/errors.ts";
import type { LayerChanges } from "../core/layer-port.ts";
import type { CheckpointStore } from "./checkpoints/checkpoint-store.ts";
import { type Entry, isBelow, sameEntry, type Tree } from "./checkpoints/entry.ts";
import { ContentReader } from "./checkpoints/file-content.ts";
import { mustGoFirst } from "./checkpoints/restore.ts";
import { isSkipped, presentEntry, withSkipped } from "./checkpoints/sight.ts";
import { filtered, overlaid } from "./checkpoints/tree-merge.ts";
import { carryOut, dropJournal, lookAtWorkspace, writeJournal } from "./checkpoints/undo-changes.ts";
import { type Op, type Plan, planOf } from "./checkpoints/undo-plan.ts";
import { baseOf, saveBase } from "./layer-base.ts";

/** What applying would do to the present workspace. */
export interface Prepared extends Plan {
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
export async function prepareApply(store: CheckpointStore, wanted: ApplyRequest): Promise<Prepared> {
  const reader = new ContentReader(store.packs);
  const made = layerChanges(store, reader, wanted);
  const chosen = made.filter(({ path }) => isRequested(path, wanted.only));
  const paths = chosen.map(({ path }) => path);
  const now = withSkipped(await lookAtWorkspace(store), paths, { reader, root: store.workspace });
  store.packs.flush();
  const sure = chosen.filter(({ unsure }) => !unsure);
  // An undo takes the run's change out of the present state; this puts it in, so the span is reversed.
  const spans = new Map(sure.map(({ path, base, after }) => [path, [{ from: after, to: base }]]));
  const plan = planOf(spans, now, store.packs);
  store.packs.flush();
  const unsure = chosen.flatMap(({ path, after, unsure: doubt }) =>
    doubt && !sameEntry(now.get(path), after) ? [{ path, reason: "it was changed since" }] : [],
  );
  const undecided = new Set([...plan.ops, ...plan.refused, ...unsure].map(({ path }) => path));
  const there = paths.filter((path) => !undecided.has(path) && !plan.left.includes(path));
  return { ...plan, refused: [...plan.refused, ...unsure], made, there, now };
}

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
  { session, steps }: { readonly session: string; readonly steps: Steps },
  { made, now, there, ops, partial }: Prepared,
): Promise<ApplyOutcome> {
  store.packs.flush();
  if (ops.length > 0) {
    refuseIfChanged(store, ops);
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

function refuseIfChanged(store: CheckpointStore, ops: readonly Op[]): void {
  const reader = new ContentReader(store.packs);
  const leaving = ops.filter(mustGoFirst).map(({ path }) => path);
  const still = ({ path, from }: Op): boolean =>
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
  for (const { path, what } of layer.changes) {
    const after = what === "deleted" ? undefined : presentEntry(reader, layer.content, path)?.entry;
    made.set(path, { path, after, ...before(path) });
  }
  store.packs.flush();
  return [...made.values()].filter((each) => each.unsure || !sameEntry(each.base, each.after));

  function before(path: string): Pick<LayerChange, "base" | "unsure"> {
    const known = base?.get(path);
    if (known !== undefined) return { base: known, unsure: false };
    if (base !== undefined && !isSkipped(path)) return { base: undefined, unsure: false };
    const now = presentEntry(reader, store.workspace, path);
    return now === undefined || now.changed < layer.since - COARSE_MS
      ? { base: now?.entry, unsure: false }
      : { base: undefined, unsure: true };
  }
}
