/**
 * What a run records besides its calls: changes of the workspace by harness itself, paths that the host would obey,
 * packages, the plan.
 */
import * as z from "zod";
import { protectedIn } from "./file-names.ts";
import { plural, firstOf } from "./wording.ts";
import { visibleLine } from "./visible.ts";

/** What harness itself did in the workspace besides a box's commands: moved paths, made commits. All is reported. */

export const quarantinedForm = z.strictObject({
  from: z.string().describe("Where it was: an absolute path."),
  to: z
    .string()
    .nullable()
    .describe("Where it is now; null if it was removed because it was neither a file, a folder nor a link."),
  take_back: z.string().describe("The command that puts it back; empty if nothing can be put back."),
});

export const commitForm = z.strictObject({
  hash: z.string(),
  subject: z.string(),
  files: z.int().min(0).describe("How many paths it changes."),
  protected: z
    .array(z.string())
    .readonly()
    .describe("Those that the host would obey by itself, whether or not they are in the folder."),
});

/** A path that host programs would obey, created in the box and moved out of the workspace. */
export interface MovedAway {
  readonly from: string;
  readonly to: string | null;
  readonly takeBack: string;
  /** Found by the next start after a run was killed; that run, or another process since, may have made it. */
  readonly earlier?: true;
}

/** One path of a commit or of the index, as git lists it. */
export interface GitEntry {
  /** Relative to the workspace. */
  readonly path: string;
  readonly what: "added" | "modified" | "deleted";
  /** `repository`: a commit of another repository, such as a submodule. */
  readonly kind: "file" | "link" | "repository";
  /** The lower twelve bits, as git stores them. */
  readonly mode: number;
  readonly oldMode: number;
  /** The target of a link; undefined when it was not read. */
  readonly target?: string;
}

/** A commit made for a command of the box. */
export interface MadeCommit {
  readonly hash: string;
  readonly subject: string;
  /** Number of paths that it changes. */
  readonly files: number;
  readonly entries: readonly GitEntry[];
  /** False when a limit left out some entries. */
  readonly whole: boolean;
}

/** Each list holds the first entries; the count beside it covers all. */
export interface BoxLog {
  readonly quarantined: readonly MovedAway[];
  readonly quarantined_total: number;
  readonly commits: readonly MadeCommit[];
  readonly commits_total: number;
  /** Paths that are staged and not yet in a commit. */
  readonly staged: readonly GitEntry[];
  /** A limit left out some of these. */
  readonly staged_cut?: true;
}

export const EMPTY_LOG: BoxLog = {
  quarantined: [],
  quarantined_total: 0,
  commits: [],
  commits_total: 0,
  staged: [],
};

/** Entries of each kind that are kept in full. */
export const MAX_LOGGED = 200;

/** Collects entries until they are reported. */
export class LogKeeper {
  #moved: MovedAway[] = [];
  #movedTotal = 0;
  #commits: MadeCommit[] = [];
  #commitsTotal = 0;
  #staged: readonly GitEntry[] = [];
  #stagedCut = false;
  #isStagedReported = true;

  move(moved: readonly MovedAway[]): void {
    this.#movedTotal += moved.length;
    this.#moved.push(...moved.slice(0, Math.max(0, MAX_LOGGED - this.#moved.length)));
  }

  commit(commit: MadeCommit): void {
    this.#commitsTotal += 1;
    if (this.#commits.length < MAX_LOGGED) this.#commits.push(commit);
  }

  /** Replaces the list of staged paths. */
  stage(entries: readonly GitEntry[], isCut = false): void {
    this.#staged = entries;
    this.#stagedCut = isCut;
    this.#isStagedReported = entries.length === 0 && !isCut;
  }

  /** Reports each move and commit once, and staged paths as long as they are staged. */
  take(): BoxLog {
    const log = this.#log();
    [this.#moved, this.#movedTotal, this.#commits, this.#commitsTotal] = [[], 0, [], 0];
    this.#isStagedReported = true;
    return log;
  }

  /** Entries that were not reported yet. */
  takeUntold(): BoxLog {
    const isTold = this.#isStagedReported;
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

/** The log as lines for a person: one per entry up to a limit, then a count. */
export function notesOf(log: BoxLog): readonly string[] {
  const { quarantined, commits, staged } = log;
  const names = staged.map(({ path }) => path).filter(isObeyed);
  return [
    ...quarantined.slice(0, MAX_NOTES).map(movedNote),
    ...moreLine(log.quarantined_total, "more were made in the box and moved out of the workspace"),
    ...commits.slice(0, MAX_NOTES).map(commitNote),
    ...moreLine(log.commits_total, "more commits were made for commands of the box"),
    ...(names.length === 0 ? [] : [`staged by commands of the box: ${listPaths(names)}; ${RETURNS}`]),
    ...(log.staged_cut === true ? [`staged by commands of the box: ${NOT_ALL}`] : []),
  ];
}

const moreLine = (total: number, words: string): readonly string[] =>
  total > MAX_NOTES ? [`${total - MAX_NOTES} ${words}`] : [];

/** Tells the user that a path was moved out, and how to move it back. */
function movedNote({ from, to, takeBack, earlier }: MovedAway): string {
  const name = escapeName(from);
  const made = earlier === true ? "appeared after the start of a run that was killed" : "was made in the box";
  if (to === null) return `${name} ${made} and was removed: it was neither a file, a folder nor a link`;
  const back = takeBack === "" ? "" : `; to restore it: ${takeBack}`;
  return `${name} ${made} and ${earlier === true ? "was " : ""}moved out of the workspace${back}`;
}

/** What can happen with a path that only a commit or the index contains. */
export const RETURNS = "git stash, checkout, restore or reset on the host brings it into the folder";

export const NOT_ALL = "not all of its paths were looked at";

function commitNote({ hash, subject, files, entries }: MadeCommit): string {
  const names = entries.map(({ path }) => path).filter(isObeyed);
  const holds = names.length === 0 ? "" : `; it holds ${listPaths(names)}: ${RETURNS}`;
  return `commit ${hash.slice(0, 12)}${FOR_BOX}${plural(files, "file")}): ${escapeName(subject)}${holds}`;
}

const FOR_BOX = " was made for a command of the box (";

/** Whether a note only says that a commit was made, with nothing in it that needs attention. */
export const tellsCommitOnly = (note: string): boolean =>
  note.startsWith("commit ") && note.includes(FOR_BOX) && !note.endsWith(RETURNS);

/** Escapes untrusted names so that they cannot imitate a line of the report. */
const escapeName = (text: string): string => visibleLine(text.toWellFormed());

const isObeyed = (path: string): boolean => protectedIn(path.split("/")) !== undefined;

const MAX_LISTED = 20;

const listPaths = (paths: readonly string[]): string => firstOf(paths, MAX_LISTED, escapeName);

/** For one command: the most that it and its processes used at a time. */
export const peakForm = z.strictObject({ memory_bytes: z.int().min(0), pids: z.int().min(0) }).readonly();

/** dangerous: the host runs or obeys it by itself. look: it runs when a person builds, tests, installs or pushes. */
export const TIERS = ["dangerous", "look"] as const;
export type Tier = (typeof TIERS)[number];

export const handoffForm = z.strictObject({
  path: z.string(),
  tier: z
    .enum(TIERS)
    .describe(
      "dangerous: the host obeys it by itself; look: the host obeys it when somebody builds or installs.",
    ),
  reason: z.string(),
});
/** A changed path that the host would later run or obey. */
export type Handoff = z.infer<typeof handoffForm>;

/** Packages that package managers have installed in a box. */

export const packageForm = z.strictObject({
  ecosystem: z.string().describe("npm, pip, cargo, go, maven, composer, bundler, or apt."),
  name: z.string(),
  version: z.string(),
});
export type Package = z.output<typeof packageForm>;

export const installedForm = z.strictObject({
  total: z.int().min(0).describe("Packages that are installed."),
  new: z.int().min(0).describe("How many of them were not installed before."),
  packages: z.array(packageForm).readonly().describe("The first 500 of the new ones."),
  incomplete: z
    .literal(true)
    .exactOptional()
    .describe("There were more than could be examined. Left out otherwise."),
});
export type Installed = z.output<typeof installedForm>;

/** Counts by ecosystem: `npm 300, pip 12`. */
export function byEcosystem(packages: readonly Pick<Package, "ecosystem">[]): string {
  const counts = new Map<string, number>();
  for (const { ecosystem } of packages) counts.set(ecosystem, (counts.get(ecosystem) ?? 0) + 1);
  return [...counts].map(([name, count]) => `${name} ${count}`).join(", ");
}

/** One line for people. */
export const installedWords = ({ total, new: fresh, incomplete }: Omit<Installed, "packages">): string =>
  `${plural(total, "package")}, ${fresh} of them new${incomplete === true ? "; there were more than could be examined" : ""}`;

/** A model's plan, as the model writes it and a person sees it. */

export const planStepForm = z.strictObject({
  text: z.string(),
  status: z.enum(["pending", "doing", "done", "dropped"]),
});
export type PlanStep = Readonly<z.infer<typeof planStepForm>>;
export type Plan = readonly PlanStep[];

/** Most steps of a plan, and most characters of a step. */
export const MAX_PLAN = { steps: 20, length: 200 } as const;

export const PLAN_MARKS: Readonly<Record<PlanStep["status"], string>> = {
  pending: " ",
  doing: ">",
  done: "x",
  dropped: "-",
};

/** As the model writes it, one line for each step. */
const planText = (plan: Plan): string =>
  plan.map(({ text, status }) => `[${PLAN_MARKS[status]}] ${text}`).join("\n");

/** For the model, beside the summary of earlier messages. */
export const planKept = (plan: Plan): string =>
  plan.length === 0 ? "" : `[Your plan at that time]\n${planText(plan)}`;

const NAMES = { done: "done", doing: "doing", pending: "to come", dropped: "dropped" } as const;

/** How many steps are in each state. */
export function planCounts(plan: Plan): string {
  const counts = (["done", "doing", "pending", "dropped"] as const).flatMap((status) => {
    const count = plan.filter((step) => step.status === status).length;
    return count === 0 ? [] : [`${count} ${NAMES[status]}`];
  });
  return counts.join(", ") || "no steps";
}

const tokens = z.int().min(0);
const known = tokens.nullable();

export const usageForm = z.strictObject({
  requests: tokens,
  prompt_tokens: known,
  completion_tokens: known,
  cached_tokens: known,
  cost: z.number().nullable(),
});

export const priceForm = z.strictObject({
  model: z.string(),
  input: z.number(),
  output: z.number(),
  cached: z.number().exactOptional(),
  from: z.string().exactOptional(),
});

/** Each count is a share of the whole request; their sum is its number of tokens. */
export const promptForm = z.strictObject({
  system: tokens,
  instructions: tokens.describe("Instructions of the user and the project in the system prompt."),
  tools: tokens.describe("Descriptions and schemas of the tools."),
  summary: tokens.describe("The summary of messages that are no longer sent."),
  requests: tokens.describe("What the user wrote, and what harness told the model in that role."),
  replies: tokens.describe("Earlier replies, with the arguments of their calls."),
  results: tokens.describe("Results of calls."),
});
