import { existsSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import path from "node:path";
import type { Checkpoints, StepStore, WritingCall } from "../../core/session.ts";
import { reasonOf } from "../../core/errors.ts";
import { CheckpointStore } from "./checkpoint-store.ts";
import { sameEntry, textOf, type Tree } from "./entry.ts";
import { wholeSteps } from "./checkpoint-diff.ts";
import { checkpointsIn, QUOTA_BYTES, storeFolder, type StorePlace } from "./store-place.ts";
import { contentsOfJournal, hasJournal } from "./undo-changes.ts";

/** Records checkpoints around the calls of a run, and removes those of old sessions when they take too much room. */

interface Recording {
  /** The session's id and its steps. */
  readonly session: string;
  readonly steps: StepStore;
  /** The last step before the run; left out if unknown. */
  readonly since?: number | undefined;
  readonly open: () => CheckpointStore;
  /** Called at the end, to remove checkpoints if there are too many. */
  readonly makeRoom?: (store: CheckpointStore) => void;
  /** Called once if nothing more can be stored, and if an earlier run was killed. */
  readonly notice: (text: string) => void;
}

/** In so short a time, nobody but the run changes files. */
const MOMENT_MS = 50;

/**
 * The steps of a run. Changes between two steps count as the user's, unless something that a call started is still
 * running. A failure to store is reported once; the work continues.
 */
export class RunCheckpoints implements Checkpoints, AsyncDisposable {
  readonly #recording: Recording;
  #store: CheckpointStore | undefined;
  #queue: Promise<unknown> = Promise.resolve();
  #tree: string | undefined;
  #takenAt = 0;
  #openSteps = 0;
  #lastStep: { readonly step: number; readonly before: string } | undefined;
  #lasting = false;
  #failed = false;
  /** Aborted at disposal: failures are not reported after that. */
  readonly #ended = new AbortController();
  /** Aborts the look that `prepare` began: neither the end of the run nor a cancelled call waits for it. */
  readonly #earlyLook = new AbortController();

  constructor(recording: Recording) {
    this.#recording = recording;
  }

  prepare(): void {
    // A failure here will happen again, and be reported, when it matters.
    const { signal } = this.#earlyLook;
    void this.#oneAtATime(() => this.#opened().look(signal)).catch(() => undefined);
  }

  async around<T>(writing: WritingCall, work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    const step = await this.#abortingEarlyLook(signal, () =>
      this.#oneAtATime(() => this.#reportingOnce(() => this.#before(writing, signal), signal)),
    );
    try {
      return await work();
    } finally {
      if (step !== undefined) await this.#oneAtATime(() => this.#reportingOnce(() => this.#after(step)));
    }
  }

  async #abortingEarlyLook<T>(signal: AbortSignal | undefined, look: () => Promise<T>): Promise<T> {
    const cut = (): void => this.#earlyLook.abort();
    if (signal?.aborted === true) cut();
    signal?.addEventListener("abort", cut, { once: true });
    try {
      return await look();
    } finally {
      signal?.removeEventListener("abort", cut);
    }
  }

  /** Compares with what the last step found: anything that differs since counts as changed. */
  unchanged(paths: readonly string[]): Promise<ReadonlySet<string>> {
    return this.#orUnknown(new Set<string>(), () => this.#unchanged(paths));
  }

  #unchanged(paths: readonly string[]): ReadonlySet<string> {
    const before = this.#treeAtStart();
    if (before === undefined || paths.length === 0) return new Set();
    const store = this.#opened();
    return new Set(
      paths.filter((at) => {
        const was = before.get(at);
        return was !== undefined && sameEntry(was, store.entryIfUnchanged(at));
      }),
    );
  }

  before(path: string): Promise<string | undefined> {
    return this.#orUnknown(undefined, () => {
      const entry = this.#treeAtStart()?.get(path);
      return entry?.kind === "file" ? textOf(this.#opened().packs, entry) : undefined;
    });
  }

  /** Stored data may be damaged or out of reach: then the answer is "unknown", but nothing fails. */
  #orUnknown<T>(unknown: T, look: () => T): Promise<T> {
    return this.#oneAtATime(() => {
      try {
        return Promise.resolve(this.#failed ? unknown : look());
      } catch {
        return Promise.resolve(unknown);
      }
    });
  }

  /** The workspace at the start of the run. */
  #treeAtStart(): Tree | undefined {
    const { steps, since } = this.#recording;
    const first = steps.all().find(({ step, kind }) => kind === "call" && step > (since ?? step));
    const id = first?.before ?? null;
    if (this.#tree === undefined || id === null) return undefined;
    return this.#opened().trees.load(id);
  }

  /** Reports nothing more: the run has already ended. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#ended.abort();
    this.#earlyLook.abort();
    await this.#oneAtATime(() => this.#reportingOnce(() => this.#end()));
    this.#store?.[Symbol.dispose]();
  }

  async #before({ call, turn, lasting }: WritingCall, signal?: AbortSignal): Promise<number> {
    const { steps } = this.#recording;
    const own = this.#openSteps > 0 || this.#lasting || performance.now() - this.#takenAt < MOMENT_MS;
    if (this.#tree === undefined) await this.#takeFirst(signal);
    else if (!own) await this.#take(signal);
    signal?.throwIfAborted();
    const before = this.#tree ?? "";
    const step = steps.begin({ kind: "call", call, turn, before, target: null });
    this.#openSteps += 1;
    this.#lasting ||= lasting;
    return step;
  }

  /** Steps that another process left open end where this run begins. */
  async #takeFirst(signal?: AbortSignal): Promise<void> {
    const { steps, notice } = this.#recording;
    const calls = steps.all().filter(({ kind }) => kind === "call");
    const after = await this.#take(signal);
    const open = new Set(calls.flatMap((call) => (call.after === null ? [call.step] : [])));
    const killed = wholeSteps(calls, after).whole.filter(({ step }) => open.has(step));
    if (killed.length === 0) return;
    for (const { step, ...trees } of killed) steps.end(step, trees);
    notice(
      "An earlier run of this session was killed: everything that changed since then counts as its work.",
    );
  }

  async #after(step: number): Promise<void> {
    this.#openSteps -= 1;
    const before = this.#tree ?? "";
    const after = await this.#take();
    this.#recording.steps.end(step, { before, after });
    this.#lastStep = { step, before };
  }

  async #end(): Promise<void> {
    if (this.#lasting && this.#lastStep !== undefined) {
      const { step, before } = this.#lastStep;
      this.#recording.steps.end(step, { before, after: await this.#take() });
    }
    if (this.#tree === undefined) return;
    this.#opened().remember();
    this.#recording.makeRoom?.(this.#opened());
  }

  async #take(signal?: AbortSignal): Promise<string> {
    this.#tree = await this.#opened().take(this.#recording.session, signal);
    this.#takenAt = performance.now();
    return this.#tree;
  }

  #opened(): CheckpointStore {
    this.#store ??= this.#recording.open();
    return this.#store;
  }

  /** Runs one scan at a time: scans read and write the same things. */
  #oneAtATime<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#queue.then(work);
    this.#queue = done.catch(() => undefined);
    return done;
  }

  async #reportingOnce<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T | undefined> {
    if (this.#failed) return undefined;
    try {
      return await work();
    } catch (thrown) {
      if (signal?.aborted === true && thrown === signal.reason) return undefined;
      this.#failed = true;
      const { steps, notice } = this.#recording;
      try {
        steps.begin({ kind: "lost", call: null, turn: null, before: null, target: null });
      } catch {
        // The disk accepts nothing: only the notice remains.
      }
      if (!this.#ended.signal.aborted)
        notice(
          `Checkpoints can no longer be saved, so changes from here on cannot be undone: ${reasonOf(thrown)}`,
        );
      return undefined;
    }
  }
}

/** The part of the quota that remains after a removal, so that not every further run has to remove something. */
const REMAINING_SHARE = 0.9;

interface Kept {
  readonly folder: string;
  readonly session: string;
  readonly newest: number;
}

/** Removes checkpoints until the rest fits, starting with the session whose last checkpoint is oldest. */
export function keepWithin(
  own: CheckpointStore,
  session: string,
  stateDir: string,
  quota = QUOTA_BYTES,
): void {
  const all = checkpointsIn(stateDir);
  let bytes = sizeOf(all);
  if (bytes <= quota) return;
  const others = sessionsIn(all).filter((kept) => kept.folder !== own.folder || kept.session !== session);
  for (const kept of others.toSorted((a, b) => a.newest - b.newest)) {
    if (bytes <= quota * REMAINING_SHARE) return;
    if (kept.folder === own.folder) dropFrom(own, kept.session);
    else forgetSession({ stateDir, workspace: workspaceOf(kept.folder) }, kept.session);
    bytes = sizeOf(all);
  }
}

/** Removes the checkpoints of a removed session. If they are in use, they stay until the quota removes them. */
export function forgetSession(place: StorePlace, session: string): void {
  const folder = storeFolder(place);
  if (!existsSync(folder)) return;
  using store = new CheckpointStore(place);
  dropFrom(store, session);
  if (store.trees.ids().length > 0 || hasJournal(folder)) return;
  // The lock file stays: another process may be about to take the lock.
  store.alone(() => {
    for (const name of ["seen", "workspace"]) rmSync(path.join(folder, name), { force: true });
  });
}

/** Does nothing while another process has the store open: the trees of a current run need each other. */
function dropFrom(store: CheckpointStore, session: string): void {
  store.alone(() => {
    store.trees.forget(session);
    store.packs.keepOnly(new Set([...store.trees.live(), ...contentsOfJournal(store.folder)]));
  });
}

const workspaceOf = (folder: string): string =>
  readFileSync(path.join(folder, "workspace"), "utf8").replace(/\n$/, "");

function sessionsIn(all: string): readonly Kept[] {
  const newest = new Map<string, Kept>();
  for (const name of listing(all)) {
    const folder = path.join(all, name);
    for (const tree of listing(path.join(folder, "trees"))) {
      const session = tree.split(".", 1)[0] ?? "";
      const { mtimeMs } = statSync(path.join(folder, "trees", tree));
      const known = newest.get(`${name} ${session}`);
      newest.set(`${name} ${session}`, { folder, session, newest: Math.max(mtimeMs, known?.newest ?? 0) });
    }
  }
  return [...newest.values()];
}

function sizeOf(folder: string): number {
  let bytes = 0;
  for (const name of listing(folder)) {
    const stats = statSync(path.join(folder, name), { throwIfNoEntry: false });
    if (stats !== undefined) bytes += stats.isDirectory() ? sizeOf(path.join(folder, name)) : stats.size;
  }
  return bytes;
}

function listing(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
