import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { GitEntry, LogKeeper } from "../../core/run-record.ts";
import { textOfBytes } from "../../core/raw-data.ts";
import { EXIT, HarnessError, reasonOf } from "../../core/errors.ts";
import { isInside } from "../../core/file-names.ts";
import type { BoxPlan } from "../container-spec.ts";
import type { Engine } from "../engine.ts";
import { type CommitPlan, commitPlan } from "../../boxes/workspace/commit-plan.ts";
import { outermostPaths } from "../../boxes/workspace/protected-mounts.ts";
import { quarantine } from "../../boxes/workspace/quarantine.ts";
import {
  commitIdentity,
  findRepository,
  type FoundRepository,
} from "../../boxes/workspace/git-repository.ts";
import { lstatIfThere } from "../../boxes/workspace/safe-paths.ts";
import { decodeFields, encodeFields } from "../../boxes/runner-protocol.ts";
import { startCommand } from "../../boxes/box-command.ts";
import { type Door, type VerifiedContainer, verifiedContainer } from "./container.ts";

interface DoorRequest {
  readonly engine: Engine;
  /** The plan of the box that asks; its limits apply. */
  readonly plan: BoxPlan;
  readonly home: string;
  readonly stateDir: string;
  /** Receives the commits and the staged entries. */
  readonly log: LogKeeper;
}

interface CommitRequest {
  readonly folder: string;
  readonly words: readonly string[];
  /** `name=value`, as for git's -c option. */
  readonly config: readonly string[];
}

interface Answer {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Tells our git in the box that the repository is not protected, so that the real git can do the work. */
const DO_IT_YOURSELF: Answer = { code: 0xffff, stdout: "", stderr: "" };
const KEEP = { head: 16 * 1024, tail: 16 * 1024 };
const LIST_KEEP = { head: 4 * 2 ** 20, tail: 0 };
const COMMIT_MS = 120_000;

/** Limits for one box: commands carried out, the time they may take in all, and commands that may wait at once. */
const MAX_DONE = 1000;
const MAX_MS = 600_000;
const MAX_WAITING = 8;
/** The runner's limit (sandbox/runner/ask.c). */
const MAX_BYTES = 128 * 1024;
/** The most paths kept for one box over all its repositories: committed, staged, staged before, counted separately. */
const MAX_ENTRIES = 50_000;
const MAX_LINKS = 500;
/** Grace period for work in progress when the box ends. */
const GRACE_MS = 3000;
const MAX_SUBJECT_LENGTH = 200;

/**
 * Carries out `git add` and `git commit` for the commands of a box, one after the other, in containers of their own,
 * and logs what was made. The door has its own limits, because the command that asks need not wait for the answer.
 */
export class CommitDoor {
  readonly #request: DoorRequest;
  readonly #staged = new Map<string, readonly GitEntry[]>();
  /** Repositories for which some staged paths were left out. */
  readonly #cutRepositories = new Set<string>();
  /** Entries that were staged before the box's first request, by repository. */
  readonly #stagedBefore = new Map<string, ReadonlySet<string>>();
  #last: Promise<unknown> = Promise.resolve();
  #waiting = 0;
  #doneCount = 0;
  #spentMs = 0;
  #entries = 0;
  #shut = false;
  #open: VerifiedContainer | undefined;
  /** Why nothing more is carried out; thrown again at the end of the box, where a person sees it. */
  #hostile: HarnessError | undefined;

  constructor(request: DoorRequest) {
    this.#request = request;
  }

  readonly ask: Door = (encoded) => {
    if (this.#waiting >= MAX_WAITING)
      return Promise.resolve(
        encodedAnswer(refusedAnswer(tooMuch(`${MAX_WAITING} commands are already waiting`))),
      );
    this.#waiting += 1;
    const answer = this.#last
      .then(() => this.#answerTo(encoded))
      .catch(refusedAnswer)
      .then(encodedAnswer)
      .finally(() => (this.#waiting -= 1));
    this.#last = answer;
    return answer;
  };

  /** Refuses further requests. Work in progress gets a short grace period; its container is gone when this resolves. */
  readonly shut = async (): Promise<void> => {
    this.#shut = true;
    const ending = new AbortController();
    const late = sleep(GRACE_MS, undefined, { signal: ending.signal }).then(
      () => this.#open?.close(),
      () => undefined,
    );
    await this.#last;
    ending.abort();
    await late;
    if (this.#hostile?.exit === EXIT.sandbox) throw this.#hostile;
  };

  async #answerTo(payload: Buffer): Promise<Answer> {
    this.#refuseShut();
    if (payload.length > MAX_BYTES) throw tooMuch("it is too long");
    const { engine, plan, home } = this.#request;
    const { folder, words, config } = readCommitRequest(payload);
    const workspace = plan.workspace?.path ?? "";
    const [top = workspace] = plan.above ?? [];
    const found = await findRepository({ workspace, top, uid: plan.user.uid }, folder);
    if (found === undefined || !isProtected(plan, found)) return DO_IT_YOURSELF;
    const identity = await commitIdentity(home, config);
    const commit = commitPlan({ workspace: top, ...found, identity }, words);
    if (this.#doneCount >= MAX_DONE) throw tooMuch(`${MAX_DONE} were carried out for this box`);
    if (this.#spentMs >= MAX_MS) throw tooMuch(`they took ${MAX_MS / 60_000} minutes for this box`);
    const over = await presentMounts(commit.mounts);
    const absent = await absentAmong(commit.obeyed);
    this.#doneCount += 1;
    const began = performance.now();
    try {
      await using stack = new AsyncDisposableStack();
      // After the container is gone: its processes could make the files anew.
      stack.defer(() => this.#takePlanted(found, absent));
      const container = await verifiedContainer(engine, { ...plan, over });
      stack.defer(container.close);
      this.#open = container;
      this.#refuseShut();
      return await this.#carryOut({ container, commit, found, folder, workspace });
    } finally {
      this.#open = undefined;
      this.#spentMs += performance.now() - began;
    }
  }

  /**
   * The git of the image is not ours and may be another program. Files that git obeys but that did not exist could not
   * be mounted over, and git makes none of them for a commit: those that exist now are moved out of the git directory,
   * and nothing more is carried out.
   */
  async #takePlanted({ gitDir, commonDir }: FoundRepository, absent: readonly string[]): Promise<void> {
    const still = new Set(await absentAmong(absent));
    const planted = absent.filter((file) => !still.has(file));
    const [first] = planted;
    if (first === undefined) return;
    const into = path.join(this.#request.stateDir, "quarantine");
    try {
      for (const root of new Set([gitDir, commonDir])) {
        const own = outermostPaths(planted.filter((file) => isInside(root, file)));
        this.#request.log.move(await quarantine(root, own, into));
      }
    } catch (thrown) {
      this.#hostile = thrown instanceof HarnessError ? thrown : notMoved(first, thrown);
      throw this.#hostile;
    }
    const message = `the image's git created ${first}, which the host would obey`;
    this.#hostile = new HarnessError(EXIT.refused, message, "commit it yourself, and check the image");
    throw this.#hostile;
  }

  #refuseShut(): void {
    if (this.#hostile !== undefined) throw this.#hostile;
    if (this.#shut) throw new HarnessError(EXIT.refused, "no more commits: the box is ending", "");
  }

  async #carryOut(work: CommitWork): Promise<Answer> {
    const { commit, found, folder } = work;
    const staged = async (): Promise<StagedEntries> => {
      const { bytes, whole } = await gitOutput(work, STAGED);
      return { entries: inWorkspace(work, rawEntries(bytes)), whole };
    };
    // Beyond the limit, entries that were staged before count as staged now.
    if (!this.#stagedBefore.has(found.gitDir)) {
      const room = MAX_ENTRIES - totalOf(this.#stagedBefore.values(), ({ size }) => size);
      this.#stagedBefore.set(
        found.gitDir,
        new Set((await staged()).entries.slice(0, Math.max(0, room)).map(contentKey)),
      );
    }
    const head = await headOf(work);
    const left = Math.max(1000, MAX_MS - this.#spentMs);
    const command = { words: commit.argv, folder, timeoutMs: Math.min(COMMIT_MS, left), keep: KEEP };
    try {
      const { exit_code, stdout, stderr } = await run(work, command);
      const now = await headOf(work);
      if (now !== head && now !== "") await this.#logCommit(work);
      await this.#logStaged(work, await staged());
      return { code: exit_code, stdout: textOf(stdout), stderr: textOf(stderr) };
    } catch (thrown) {
      // Cut short in the middle: nobody can check whether the commit was made, so it is reported as not seen.
      if (commit.argv.includes("commit"))
        this.#request.log.commit({
          hash: "unknown",
          subject: "(cut short: see git log)",
          files: 0,
          entries: [],
          whole: false,
        });
      throw thrown;
    }
  }

  async #logCommit(work: CommitWork): Promise<void> {
    const text = textOfBytes((await gitOutput(work, HASH_AND_SUBJECT)).bytes);
    const [hash = "", subject = ""] = text.split("\n");
    const { bytes, whole } = await gitOutput(work, COMMITTED);
    const all = rawEntries(bytes);
    const entries = inWorkspace(work, all);
    const room = Math.max(0, MAX_ENTRIES - this.#entries);
    const kept = await withTargets(work, entries.slice(0, room));
    this.#entries += kept.length;
    const complete = whole && kept.length === entries.length;
    const cut = subject.slice(0, MAX_SUBJECT_LENGTH).toWellFormed();
    this.#request.log.commit({ hash, subject: cut, files: all.length, entries: kept, whole: complete });
  }

  async #logStaged(work: CommitWork, { entries, whole }: StagedEntries): Promise<void> {
    const { gitDir } = work.found;
    const before = this.#stagedBefore.get(gitDir);
    const fresh = entries.filter((entry) => before?.has(contentKey(entry)) !== true);
    this.#staged.delete(gitDir);
    const room = MAX_ENTRIES - totalOf(this.#staged.values(), ({ length }) => length);
    // The links are read in their own repository: another one does not have them.
    this.#staged.set(gitDir, await withTargets(work, fresh.slice(0, Math.max(0, room))));
    if (whole && fresh.length <= room) this.#cutRepositories.delete(gitDir);
    else this.#cutRepositories.add(gitDir);
    this.#request.log.stage([...this.#staged.values()].flat(), this.#cutRepositories.size > 0);
  }
}

const totalOf = <T>(all: Iterable<T>, size: (one: T) => number): number =>
  [...all].reduce((sum, one) => sum + size(one), 0);

const notMoved = (file: string, thrown: unknown): HarnessError =>
  new HarnessError(
    EXIT.sandbox,
    `${file} was created by the image's git, and could not be moved: ${reasonOf(thrown)}`,
    "check and remove it before git on the host reads that repository",
    thrown,
  );

const contentKey = ({ path: file, id }: RawEntry): string => `${id} ${file}`;

interface StagedEntries {
  readonly entries: readonly RawEntry[];
  /** Whether these are all staged entries. */
  readonly whole: boolean;
}

interface CommitWork {
  readonly container: VerifiedContainer;
  readonly commit: CommitPlan;
  readonly found: FoundRepository;
  readonly folder: string;
  readonly workspace: string;
}

type Command = Omit<Parameters<typeof startCommand>[1], "env">;

const run = (
  { container, commit, workspace }: CommitWork,
  command: Command,
): ReturnType<typeof startCommand>["ended"] =>
  startCommand(container.client, { ...command, env: commit.env }, { workspace }).ended;

const RAW = ["--raw", "-z", "--no-renames", "--no-abbrev", "--no-ext-diff", "--no-textconv"];
const STAGED = ["diff", "--cached", ...RAW];
/** A merge is reported as its difference from its first parent. */
const COMMITTED = ["log", "-1", "--first-parent", "-m", "--root", "--format=", ...RAW, "HEAD"];
const HASH_AND_SUBJECT = ["log", "-1", "--format=%H%n%s", "HEAD"];

async function gitOutput(
  work: CommitWork,
  words: readonly string[],
  input: readonly Uint8Array[] = [],
): Promise<{ readonly bytes: Buffer; readonly whole: boolean }> {
  const command = {
    words: [...work.commit.looking, ...words],
    folder: work.found.worktree,
    timeoutMs: COMMIT_MS,
    keep: LIST_KEEP,
    ...(input.length === 0 ? {} : { input: piecewise(input) }),
  };
  const { stdout, exit_code } = await run(work, command);
  return { bytes: Buffer.from(stdout.head), whole: exit_code === 0 && stdout.lost === 0 };
}

async function* piecewise(pieces: readonly Uint8Array[]): AsyncGenerator<Uint8Array> {
  for (const piece of pieces) yield await Promise.resolve(piece);
}

const headOf = async (work: CommitWork): Promise<string> =>
  (await gitOutput(work, ["rev-parse", "-q", "--verify", "HEAD"])).bytes.toString("latin1").trim();

async function withTargets(work: CommitWork, entries: readonly RawEntry[]): Promise<readonly GitEntry[]> {
  const links = entries.filter(({ kind, what }) => kind === "link" && what !== "deleted").slice(0, MAX_LINKS);
  const ids = [...new Set(links.map(({ id }) => id))];
  const input = [Buffer.from(ids.map((id) => `${id}\n`).join(""))];
  const targets =
    ids.length === 0
      ? new Map<string, string>()
      : contentsOf((await gitOutput(work, ["cat-file", "--batch"], input)).bytes);
  return entries.map(({ id, ...entry }) => {
    const target = entry.kind === "link" ? targets.get(id) : undefined;
    return target === undefined ? entry : { ...entry, target };
  });
}

const encodedAnswer = ({ code, stdout, stderr }: Answer): Buffer =>
  encodeFields([
    ["c", code],
    ["o", Buffer.from(stdout)],
    ["e", Buffer.from(stderr)],
  ]);

const refusedAnswer = (thrown: unknown): Answer => {
  const remedy = thrown instanceof HarnessError && thrown.remedy !== "" ? `\n  next: ${thrown.remedy}` : "";
  return { code: 128, stdout: "", stderr: `fatal: ${reasonOf(thrown)}${remedy}\n` };
};

const tooMuch = (why: string): HarnessError =>
  new HarnessError(EXIT.refused, `no commit for this command: ${why}`, "commit the rest yourself");

const textOf = ({ head, tail }: { readonly head: Uint8Array; readonly tail: Uint8Array }): string =>
  Buffer.concat([head, tail]).toString("utf8");

function readCommitRequest(payload: Buffer): CommitRequest {
  const fields = decodeFields(payload);
  const all = (name: string): readonly string[] =>
    fields.filter((field) => field.name === name).map(({ bytes }) => textOfBytes(bytes));
  return { folder: all("d")[0] ?? "", words: all("a"), config: all("k") };
}

const isProtected = ({ readOnly, above = [], workspace }: BoxPlan, { gitDir }: FoundRepository): boolean =>
  readOnly.some((folder) => isInside(folder, gitDir)) ||
  (!isInside(workspace?.path ?? "", gitDir) && above.some((folder) => isInside(folder, gitDir)));

const isThere = async ({ path: file, optional }: CommitPlan["mounts"][number]): Promise<boolean> =>
  !optional || (await lstatIfThere(file).catch(() => undefined)) !== undefined;

async function absentAmong(files: readonly string[]): Promise<readonly string[]> {
  const there = await Promise.all(files.map(async (file) => (await lstatIfThere(file)) !== undefined));
  return files.filter((_, index) => there[index] !== true);
}

async function presentMounts(mounts: CommitPlan["mounts"]): Promise<NonNullable<BoxPlan["over"]>> {
  const there = await Promise.all(mounts.map(isThere));
  return mounts
    .filter((_, index) => there[index])
    .map(({ path: file, writable }) => ({ path: file, writable }));
}

/** From the output of git with `--raw -z --no-renames --no-abbrev`, as much of it as was kept. */
interface RawEntry extends GitEntry {
  /** Object id of the content. */
  readonly id: string;
}

const HEAD = /^:(\d+) (\d+) ([0-9a-f]+) ([0-9a-f]+) ([A-Z])\d*$/;
const WHATS: Readonly<Record<string, GitEntry["what"]>> = { A: "added", D: "deleted" };

/**
 * Paths become relative to the workspace. Paths in other folders of the repository are left out: commands cannot have
 * changed them.
 */
function inWorkspace(
  { workspace, found: { worktree } }: CommitWork,
  entries: readonly RawEntry[],
): readonly RawEntry[] {
  return entries
    .map((entry) => ({ ...entry, file: path.join(worktree, entry.path) }))
    .filter(({ file }) => isInside(workspace, file))
    .map(({ file, ...entry }) => ({ ...entry, path: path.relative(workspace, file) }));
}

/** Paths are relative to the repository's top. */
function rawEntries(output: Buffer): readonly RawEntry[] {
  const fields = textOfBytes(output).split("\0");
  const entries: RawEntry[] = [];
  for (let at = 0; at + 1 < fields.length; at += 2) {
    const found = HEAD.exec((fields[at] ?? "").trim());
    if (found === null) break;
    const [, oldMode = "", mode = "", , id = "", letter = ""] = found;
    entries.push({
      path: fields[at + 1] ?? "",
      what: WHATS[letter] ?? "modified",
      kind: KINDS[mode] ?? "file",
      mode: permissions(mode),
      oldMode: permissions(oldMode),
      id,
    });
  }
  return entries;
}

const KINDS: Readonly<Record<string, GitEntry["kind"]>> = { "120000": "link", "160000": "repository" };

const permissions = (mode: string): number => Number.parseInt(mode, 8) & 0o7777;

/** The contents that `cat-file --batch` gives, by id; incomplete ones are left out. */
function contentsOf(output: Buffer): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (let at = 0; at < output.length;) {
    const end = output.indexOf(0x0a, at);
    const head = /^([0-9a-f]+) blob (\d+)$/.exec(output.subarray(at, Math.max(at, end)).toString("latin1"));
    const [, id = "", size = ""] = head ?? [];
    const to = end + 1 + Number(size);
    if (id === "" || to > output.length) break;
    found.set(id, textOfBytes(output.subarray(end + 1, to)));
    at = to + 1;
  }
  return found;
}
