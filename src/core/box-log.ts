import * as z from "zod";
import { protectedName } from "./protected-names.ts";
import { counted, firstOf } from "./text/short-lists.ts";
import { visibleLine } from "./text/visible.ts";

/** What the harness itself did in the workspace beside the commands of a box: moved paths and made commits. All of it is reported. */

export const quarantinedForm = z.strictObject({
  from: z.string().describe("Where it was: an absolute path."),
  to: z
    .string()
    .nullable()
    .describe("Where it is now; null for what was removed: neither file, folder nor link."),
  take_back: z.string().describe("The command that puts it back; empty where nothing can be put back."),
});

export const commitForm = z.strictObject({
  hash: z.string(),
  subject: z.string(),
  files: z.int().min(0).describe("How many paths it changes."),
  protected: z
    .array(z.string())
    .readonly()
    .describe("Those of them that the host would obey by itself, in the folder or not."),
});

/** A path that host programs would obey, created in the box and moved out of the workspace. */
export interface MovedAway {
  readonly from: string;
  readonly to: string | null;
  readonly takeBack: string;
  /** Found by the next start after a run was killed; the run may have made it, or another process since. */
  readonly earlier?: true;
}

/** One path of a commit or of the index, as git lists it. */
export interface GitEntry {
  /** Below the workspace. */
  readonly path: string;
  readonly what: "added" | "modified" | "deleted";
  /** `repository`: a commit of another repository, as a submodule is. */
  readonly kind: "file" | "link" | "repository";
  /** The lower twelve bits, as git keeps them. */
  readonly mode: number;
  readonly oldMode: number;
  /** The target of a link; undefined when it was not read. */
  readonly target?: string;
}

/** A commit that was made for a command of the box. */
export interface MadeCommit {
  readonly hash: string;
  readonly subject: string;
  /** How many paths it changes. */
  readonly files: number;
  readonly entries: readonly GitEntry[];
  /** False where a bound left out some of them. */
  readonly whole: boolean;
}

/** Each list holds the first ones, the count beside it all of them. */
export interface BoxLog {
  readonly quarantined: readonly MovedAway[];
  readonly quarantined_total: number;
  readonly commits: readonly MadeCommit[];
  readonly commits_total: number;
  /** Paths that are staged and in no commit yet. */
  readonly staged: readonly GitEntry[];
  /** A bound left out some of these. */
  readonly staged_cut?: true;
}

export const EMPTY_LOG: BoxLog = {
  quarantined: [],
  quarantined_total: 0,
  commits: [],
  commits_total: 0,
  staged: [],
};

/** How many entries of each kind are kept in full. */
export const MAX_LOGGED = 200;

/** Collects entries until they are reported. */
export class LogKeeper {
  #moved: MovedAway[] = [];
  #movedTotal = 0;
  #commits: MadeCommit[] = [];
  #commitsTotal = 0;
  #staged: readonly GitEntry[] = [];
  #stagedCut = false;
  #stagedTold = true;

  move(moved: readonly MovedAway[]): void {
    this.#movedTotal += moved.length;
    this.#moved.push(...moved.slice(0, Math.max(0, MAX_LOGGED - this.#moved.length)));
  }

  commit(commit: MadeCommit): void {
    this.#commitsTotal += 1;
    if (this.#commits.length < MAX_LOGGED) this.#commits.push(commit);
  }

  /** Replaces what was known to be staged. */
  stage(entries: readonly GitEntry[], isCut = false): void {
    this.#staged = entries;
    this.#stagedCut = isCut;
    this.#stagedTold = entries.length === 0 && !isCut;
  }

  /** Each move and commit is reported once; staged paths for as long as they are staged. */
  take(): BoxLog {
    const log = this.#log();
    [this.#moved, this.#movedTotal, this.#commits, this.#commitsTotal] = [[], 0, [], 0];
    this.#stagedTold = true;
    return log;
  }

  /** Entries that were not reported yet. */
  takeUntold(): BoxLog {
    const isTold = this.#stagedTold;
    const { staged, staged_cut: _, ...others } = this.take();
    return isTold ? { ...others, staged: [] } : { ...others, staged, ...this.#cut() };
  }

  #log(): BoxLog {
    return {
      quarantined: this.#moved,
      quarantined_total: this.#movedTotal,
      commits: this.#commits,
      commits_total: this.#commitsTotal,
      staged: this.#staged,
      ...this.#cut(),
    };
  }

  #cut(): Pick<BoxLog, "staged_cut"> {
    return this.#stagedCut ? { staged_cut: true } : {};
  }
}

const MAX_NOTES = 50;

/** The log as lines for a person: one per entry up to a bound, then a count. */
export function notesOf(log: BoxLog): readonly string[] {
  const { quarantined, commits, staged } = log;
  const names = staged.map(({ path }) => path).filter(isObeyed);
  return [
    ...quarantined.slice(0, MAX_NOTES).map(movedNote),
    ...more(log.quarantined_total, "more were made in the box and moved out of the workspace"),
    ...commits.slice(0, MAX_NOTES).map(commitNote),
    ...more(log.commits_total, "more commits were made for commands of the box"),
    ...(names.length === 0 ? [] : [`staged by commands of the box: ${listed(names)}; ${RETURNS}`]),
    ...(log.staged_cut === true ? [`staged by commands of the box: ${NOT_ALL}`] : []),
  ];
}

const more = (total: number, words: string): readonly string[] =>
  total > MAX_NOTES ? [`${total - MAX_NOTES} ${words}`] : [];

/** Tells the user that a path was moved out, and how to move it back. */
function movedNote({ from, to, takeBack, earlier }: MovedAway): string {
  const name = shown(from);
  const made = earlier === true ? "came since a run began that was killed" : "was made in the box";
  if (to === null) return `${name} ${made} and was removed: it was neither a file, a folder nor a link`;
  const back = takeBack === "" ? "" : `; to take it back: ${takeBack}`;
  return `${name} ${made} and ${earlier === true ? "was " : ""}moved out of the workspace${back}`;
}

/** What happens to a path that only a commit or the index holds. */
export const RETURNS = "git stash, checkout, restore or reset on the host brings it into the folder";

export const NOT_ALL = "not all of its paths were looked at";

function commitNote({ hash, subject, files, entries }: MadeCommit): string {
  const names = entries.map(({ path }) => path).filter(isObeyed);
  const holds = names.length === 0 ? "" : `; it holds ${listed(names)}: ${RETURNS}`;
  return `commit ${hash.slice(0, 12)}${FOR_BOX}${counted(files, "file")}): ${shown(subject)}${holds}`;
}

const FOR_BOX = " was made for a command of the box (";

/** Whether a note says that a commit was made, and nothing of it that wants a look. */
export const tellsCommitOnly = (note: string): boolean =>
  note.startsWith("commit ") && note.includes(FOR_BOX) && !note.endsWith(RETURNS);

/** Untrusted names are escaped so that they cannot imitate a line of the report. */
const shown = (text: string): string => visibleLine(text.toWellFormed());

const isObeyed = (path: string): boolean =>
  path.split("/").some((name, at) => protectedName(name, at === 0) !== undefined);

const MAX_LISTED = 20;

const listed = (paths: readonly string[]): string => firstOf(paths, MAX_LISTED, shown);

/** Of one command: what it and its processes had at a time. */
export const peakForm = z.strictObject({ memory_bytes: z.int().min(0), pids: z.int().min(0) }).readonly();
