import { randomUUID } from "node:crypto";
import {
  chmodSync,
  closeSync,
  constants,
  existsSync,
  fchmodSync,
  fchownSync,
  fstatSync,
  ftruncateSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  type Stats,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import type { StepStore } from "../../core/session.ts";
import { errorCode, EXIT, HarnessError, reasonOf } from "../../core/errors.ts";
import { bytesOfText, fieldsOf, parsedJson } from "../../core/raw-data.ts";
import { lastName } from "../../core/file-names.ts";
import { visibleLine } from "../../core/visible.ts";
import { plural } from "../../core/wording.ts";
import { replaceFileSync, writeWhole } from "../../platform/safe-files.ts";
import type { CheckpointStore } from "./checkpoint-store.ts";
import {
  ContentReader,
  depthOf,
  type Entry,
  type FileEntry,
  hostPath,
  isHole,
  isReallyAt,
  parentOf,
  sameContent,
  sameEntry,
  type Tree,
} from "./entry.ts";
import type { Packs } from "./packs.ts";
import { refuseWithoutRoom, whatStayed, withoutForeign } from "./before-moves.ts";
import { withSkipped } from "./seen-entries.ts";
import { type Spans, spansOf, standingOf, wholeSteps } from "./checkpoint-diff.ts";
import { type EntryMove, type ChangePlan, planOf } from "./undo-plan.ts";

export interface UndoRequest {
  readonly session: string;
  readonly steps: StepStore;
  /** Takes back the steps after this one; 0: all. */
  readonly target: number;
  /** Brings back what the last undo took back. */
  readonly redo: boolean;
  readonly dryRun: boolean;
  /** Leaves conflicting paths as they are; otherwise any conflict prevents the whole undo. */
  readonly skip: boolean;
}

export interface Undone extends ChangePlan {
  readonly done: boolean;
  readonly notes: readonly string[];
}

/**
 * Nobody else may write to the workspace meanwhile. The state before is stored as the first tree of the undo's own
 * step.
 */
export async function undo(store: CheckpointStore, request: UndoRequest): Promise<Undone> {
  const { session, steps, target, redo, dryRun, skip } = request;
  const now = await lookAtWorkspace(store);
  const before = store.save(session, now);
  const { spans, notes } = wantedSpans(store, request, before);
  const plan = withoutForeign(planOf(spans, now, store.packs), store.workspace);
  const stuck = plan.refused.length > 0 && !skip;
  if (dryRun || stuck || plan.ops.length === 0) return { ...plan, done: false, notes };
  store.packs.flush();
  if (!store.areUnchanged(pathsOf(plan.ops), pathsOf(plan.ops.filter(mustGoFirst))))
    throw new HarnessError(EXIT.failed, "something else is changing the workspace", "harness undo");
  refuseWithoutRoom(store.workspace, plan.ops, "make room, then run the same command again");
  const kind = redo ? "redo" : "undo";
  // After an undo or a redo that leaves something out, repeating it finds the rest.
  const isPart = plan.refused.length > 0;
  const step = steps.begin({ kind, call: null, turn: null, before, target: redo || isPart ? null : target });
  const whole = !redo || !isPart;
  const aside = `.harness-${kind}-${randomUUID()}`;
  const journal: Journal = { session, step, before, whole, aside, ops: plan.ops };
  writeJournal(store.folder, journal);
  carryOut(store, journal, plan.ops);
  const after = await store.take(session);
  if (whole) steps.end(step, { before, after });
  dropJournal(store.folder);
  store.remember();
  const stayed = whatStayed(store.workspace, plan.ops);
  const ops = plan.ops.filter(({ path }) => !stayed.has(path));
  return { ...plan, ops, left: [...plan.left, ...stayed].toSorted(), done: true, notes };
}

const pathsOf = (ops: readonly EntryMove[]): readonly string[] => ops.map(({ path }) => path);

export async function lookAtWorkspace(store: CheckpointStore): Promise<Tree> {
  if (lstatSync(store.workspace, { throwIfNoEntry: false })?.isDirectory() === true) return store.look();
  throw new HarnessError(
    EXIT.usage,
    `the folder of this session no longer exists, or is not a folder: ${store.workspace}`,
    "put it back where it was, then run the same command again",
  );
}

function wantedSpans(
  store: CheckpointStore,
  { steps, target, redo }: UndoRequest,
  now: string,
): { readonly spans: Spans; readonly notes: readonly string[] } {
  const { live, undone, lost } = standingOf(steps.all());
  if (redo) {
    if (undone === undefined) throw new HarnessError(EXIT.usage, "there is no undo to redo", "harness undo");
    return { spans: spansOf(wholeSteps(undone.by, now).whole, store.trees), notes: [] };
  }
  const { whole, cut } = wholeSteps(
    live.filter(({ step }) => step > target),
    now,
  );
  const notes = [
    ...(cut
      ? ["The last run was killed: everything that changed since its last call began counts as its work."]
      : []),
    ...(lost === undefined
      ? []
      : [`No checkpoint could be saved from step ${lost.step} on: later changes are not undone.`]),
  ];
  return { spans: spansOf(whole, store.trees), notes };
}

export function carryOut(
  store: CheckpointStore,
  { aside, what: named, session }: Journal,
  ops: readonly EntryMove[],
): void {
  const begun: string[] = [];
  const what = named ?? "undo";
  try {
    restore(ops, { root: store.workspace, packs: store.packs, aside, begun });
  } catch (thrown) {
    const done = Math.max(0, begun.length - 1);
    const at = `at ${visibleLine((begun.at(-1) ?? "").toWellFormed()) || "its beginning"}`;
    throw new HarnessError(
      EXIT.failed,
      `the ${what} stopped halfway, ${at}, after ${done} of ${plural(ops.length, "path")}: ${reasonOf(thrown)}`,
      `fix the cause, then: harness ${what} ${session}   (it continues where it stopped; nothing is lost)`,
      thrown,
    );
  }
}

/**
 * Finishes an undo that was cut short, without touching what somebody has changed since; undefined if there is none.
 */
export async function finishUndo(
  store: CheckpointStore,
  stepsOf: (session: string) => StepStore | undefined,
): Promise<string | undefined> {
  const journal = readJournal(store.folder);
  if (journal === undefined) return undefined;
  if (journal === "damaged") return setAsideJournal(store.folder);
  const paths = journal.ops.map(({ path }) => path);
  const place = { reader: new ContentReader(store.packs), root: store.workspace };
  const now = withSkipped(await lookAtWorkspace(store), paths, place);
  const open = journal.ops.filter((op) => isOnTheWay(op, now) && isKept(op, store.packs));
  carryOut(store, journal, open);
  for (const folder of new Set(journal.ops.map(({ path }) => parentOf(path))))
    removeAside(store, folder, journal.aside);
  const steps = journal.whole ? stepsOf(journal.session) : undefined;
  steps?.end(journal.step, { before: journal.before, after: await store.take(journal.session) });
  dropJournal(store.folder);
  const left = journal.ops.filter((op) => !open.includes(op));
  const names = left.map(({ path }) => path).join(", ");
  const but =
    names === ""
      ? ""
      : `; left as they are, because they were changed since or their content is lost: ${names}`;
  return `An interrupted ${journal.what ?? "undo"} was finished${but}.`;
}

const isKept = ({ to }: EntryMove, packs: Packs): boolean =>
  to?.kind !== "file" || to.pieces.every((piece) => packs.isWhole(piece));

/** The path is in its old state, its new state, or on the way between them. */
function isOnTheWay(op: EntryMove, now: Tree): boolean {
  const there = now.get(op.path);
  if (there === undefined) return op.from === null || op.to === null || mustGoFirst(op);
  if (there.kind === "folder" && (op.from?.kind === "folder" || op.to?.kind === "folder")) return true;
  return sameEntry(there, op.from ?? undefined) || sameEntry(there, op.to ?? undefined);
}

function removeAside(store: CheckpointStore, folder: string, aside: string): void {
  try {
    using parent = new HeldFolder(store.workspace, folder);
    unlinkSync(parent.at(aside));
  } catch {
    // As a rule there is no such file.
  }
}

/** An undo that has begun: enough to finish it if it is killed. */
interface Journal {
  readonly session: string;
  readonly step: number;
  /** The tree before the undo. */
  readonly before: string;
  /** Whether its step ends; that of a redo that leaves something out does not. */
  readonly whole: boolean;
  readonly aside: string;
  /** Left out for an undo or a redo. */
  readonly what?: "apply";
  readonly ops: readonly EntryMove[];
}

const fileIn = (folder: string): string => path.join(folder, "journal");

export const hasJournal = (folder: string): boolean => existsSync(fileIn(folder));

/** Afterwards the journal is either durable and complete, or absent. */
export function writeJournal(folder: string, journal: Journal): void {
  const aside = `${fileIn(folder)}.new`;
  const write = (descriptor: number): void => {
    for (const part of journalParts(journal)) writeFileSync(descriptor, part);
  };
  replaceFileSync(fileIn(folder), write, { aside, lasts: "content" });
}

const OPS_AT_ONCE = 500;

/** Its JSON in parts: a single text for hundreds of thousands of changes would take as much memory again. */
function* journalParts({ ops, ...rest }: Journal): Generator<string> {
  yield `${JSON.stringify(rest).slice(0, -1)},"ops":[`;
  for (let at = 0; at < ops.length; at += OPS_AT_ONCE) {
    const some = JSON.stringify(ops.slice(at, at + OPS_AT_ONCE)).slice(1, -1);
    yield at === 0 ? some : `,${some}`;
  }
  yield "]}";
}

function readJournal(folder: string): Journal | "damaged" | undefined {
  if (!hasJournal(folder)) return undefined;
  const value = parsedJson(readFileSync(fileIn(folder), "utf8"));
  return Array.isArray(fieldsOf(value)["ops"]) ? (value as Journal) : "damaged";
}

/** Nothing can be finished without it, and it must not keep every later run from starting. */
function setAsideJournal(folder: string): string {
  const aside = `${fileIn(folder)}.damaged`;
  renameSync(fileIn(folder), aside);
  return `The record of an interrupted undo or apply was damaged, so it cannot be finished: some files may be in their old state, others in their new one (harness diff shows them). It was set aside as ${aside}.`;
}

/** The contents that finishing an undo will need; no tree need name them. */
export function contentsOfJournal(folder: string): readonly string[] {
  const journal = readJournal(folder);
  const ops = journal === undefined || journal === "damaged" ? [] : journal.ops;
  return ops.flatMap(({ to }) => (to?.kind === "file" ? to.pieces : []));
}

export const dropJournal = (folder: string): void => rmSync(fileIn(folder), { force: true });

interface Site {
  readonly root: string;
  readonly packs: Packs;
  /** The name of files until they are complete. No other process uses it. */
  readonly aside: string;
  /** Gets the path of each move that begins. */
  readonly begun?: string[];
}

/**
 * Brings every path to its target state. Each file is replaced at once; if killed midway, repeating the call finishes
 * the work. Throws if the system refuses.
 */
export function restore(ops: readonly EntryMove[], site: Site): void {
  const depths = new Map(ops.map((op) => [op, depthOf(op.path)]));
  const deepestFirst = ops.toSorted((a, b) => (depths.get(b) ?? 0) - (depths.get(a) ?? 0));
  const topFirst = deepestFirst.toReversed();
  for (const { path } of topFirst.filter(({ from }) => isFolder(from))) makeAccessible(path, site);
  const each = (some: readonly EntryMove[], work: (op: EntryMove, site: Site) => void): void => {
    for (const op of some) {
      site.begun?.push(op.path);
      work(op, site);
    }
  };
  each(
    deepestFirst.filter((op) => mustGoFirst(op) && op.to === null),
    removeEntry,
  );
  for (const op of deepestFirst.filter((op) => mustGoFirst(op) && op.to !== null)) removeEntry(op, site);
  each(
    topFirst.filter(({ to }) => isFolder(to)),
    makeFolder,
  );
  each(topFirst.filter(isPut), putEntry);
  for (const { path, to } of deepestFirst) if (to?.kind === "folder") setMode(path, to.mode, site);
}

const isFolder = (entry: Entry | null): boolean => entry?.kind === "folder";

const isPut = ({ to }: EntryMove): boolean => to !== null && !isFolder(to);

/** The present entry has to be removed before the new one can be created. */
export const mustGoFirst = ({ from, to }: EntryMove): boolean =>
  from !== null && (to === null || isFolder(from) !== isFolder(to));

const OWNER_RIGHTS = 0o700;

/** Makes the folder's content changeable; the final mode is set at the end. */
function makeAccessible(path: string, site: Site): void {
  const there = statsAt(path, site);
  if (there?.isDirectory() === true && (there.mode & OWNER_RIGHTS) !== OWNER_RIGHTS)
    setMode(path, (there.mode & 0o7777) | OWNER_RIGHTS, site);
}

function statsAt(path: string, { root }: Pick<Site, "root">): Stats | undefined {
  if (path === "") return lstatSync(root);
  try {
    return inHeldFolder(root, path, (at) => lstatSync(at, { throwIfNoEntry: false }));
  } catch (thrown) {
    if (errorCode(thrown) === "ENOENT" || errorCode(thrown) === "ENOTDIR") return undefined;
    throw thrown;
  }
}

/** A folder stays if it still contains something that is not ours to remove. */
function removeEntry({ path, from, to }: EntryMove, site: Site): void {
  const there = statsAt(path, site);
  if (there === undefined || there.isDirectory() !== isFolder(from)) return;
  try {
    inHeldFolder(site.root, path, (at) => (isFolder(from) ? rmdirSync(at) : unlinkSync(at)));
  } catch (thrown) {
    const filled = errorCode(thrown) === "ENOTEMPTY" || errorCode(thrown) === "EEXIST";
    if (filled && to === null) return;
    throw thrown;
  }
}

/** A folder that exists now but did not before was made by a killed restore, perhaps before its owner was set. */
function makeFolder({ path, from, to }: EntryMove, site: Site): void {
  if (path === "") return;
  const there = statsAt(path, site)?.isDirectory() === true;
  if (there && isFolder(from)) return;
  inHeldFolder(site.root, path, (at) => {
    if (!there) mkdirSync(at, { mode: OWNER_RIGHTS });
    setOwner(to?.owner, (uid, gid) => lchownSync(at, uid, gid), site);
  });
}

function setMode(path: string, mode: number, { root }: Site): void {
  if (path === "") return chmodSync(root, mode);
  inHeldFolder(root, path, (at) => {
    const there = lstatSync(at, { throwIfNoEntry: false });
    if (there === undefined || there.isSymbolicLink() || (there.mode & 0o7777) === mode) return;
    chmodSync(at, mode);
  });
}

function putEntry({ path, from, to }: EntryMove, site: Site): void {
  if (to?.kind === "file" && from?.kind === "file" && sameContent(from, to)) {
    setMode(path, to.mode, site);
    return;
  }
  using folder = new HeldFolder(site.root, parentOf(path));
  const aside = folder.at(site.aside);
  try {
    unlinkSync(aside);
  } catch (thrown) {
    if (errorCode(thrown) !== "ENOENT") throw thrown;
  }
  if (to?.kind === "link") {
    symlinkSync(bytesOfText(to.target), aside);
    setOwner(to.owner, (uid, gid) => lchownSync(aside, uid, gid), site);
  } else if (to?.kind === "file") writeFile(aside, to, site);
  renameSync(aside, folder.at(lastName(path)));
}

const NEW = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;

function writeFile(aside: string | Buffer, entry: FileEntry, site: Site): void {
  const descriptor = openSync(aside, NEW, 0o600);
  try {
    writePieces(descriptor, entry, site);
    setOwner(entry.owner, (uid, gid) => fchownSync(descriptor, uid, gid), site);
    fchmodSync(descriptor, entry.mode);
  } catch (thrown) {
    unlinkSync(aside);
    throw thrown;
  } finally {
    closeSync(descriptor);
  }
}

/** Holes become holes again: a file that takes no space must not fill the disk. */
function writePieces(descriptor: number, { pieces }: FileEntry, site: Site): void {
  let at = 0;
  let last: { readonly piece: string; readonly content: Buffer; readonly hole: boolean } | undefined;
  for (const piece of pieces) {
    if (piece !== last?.piece) {
      const content = contentOf(piece, site);
      last = { piece, content, hole: isHole(content) };
    }
    if (!last.hole) writeWhole(descriptor, last.content, at);
    at += last.content.length;
  }
  if (last?.hole === true) ftruncateSync(descriptor, at);
}

function contentOf(piece: string, { packs }: Site): Buffer {
  const content = packs.get(piece);
  if (content !== undefined) return content;
  throw new HarnessError(
    EXIT.failed,
    "the stored content of a file is missing or damaged",
    "harness undo --dry-run",
  );
}

/** Only root can change owners; a file without a recorded owner gets the workspace's. */
function setOwner(
  owner: string | undefined,
  chown: (uid: number, gid: number) => void,
  { root }: Site,
): void {
  if (process.geteuid?.() !== 0) return;
  const top = lstatSync(root);
  const [uid = top.uid, gid = top.gid] = owner?.split(":").map(Number) ?? [];
  chown(uid, gid);
}

const FOLDER = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;

/** The folder of a path, held open: all work happens in this folder, even if something else takes its place. */
class HeldFolder implements Disposable {
  readonly #descriptor: number;
  readonly #at: string | Buffer;

  constructor(root: string, folder: string) {
    const whole = hostPath(root, folder);
    this.#descriptor = openSync(whole, FOLDER);
    if (!isReallyAt(this.#descriptor, whole)) {
      closeSync(this.#descriptor);
      throw new HarnessError(EXIT.failed, `${folder}: its path now leads through a link`, "harness undo");
    }
    // Without /proc, an open folder has no path; nobody else works in it meanwhile.
    this.#at = process.platform === "linux" ? `/proc/self/fd/${this.#descriptor}` : whole;
  }

  at(name: string): string | Buffer {
    if (typeof this.#at === "string") return hostPath(this.#at, name);
    return Buffer.concat([this.#at, Buffer.from("/"), bytesOfText(name)]);
  }

  get mode(): number {
    return fstatSync(this.#descriptor).mode & 0o7777;
  }

  [Symbol.dispose](): void {
    closeSync(this.#descriptor);
  }
}

/** Acts on a path without following a link, whether on the way or at its end. */
function inHeldFolder<T>(root: string, path: string, work: (at: string | Buffer) => T): T {
  using folder = new HeldFolder(root, parentOf(path));
  return work(folder.at(lastName(path)));
}
