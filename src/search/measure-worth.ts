import type { Box } from "../core/ports.ts";
import { roleOf } from "./ranked-query.ts";
import { rank } from "./rank-hits.ts";
import { STOP_WORDS } from "./tokens.ts";
import { WEIGHTS } from "./weights.ts";
import type { SearchStore } from "./search-store.ts";
import { type VectorWorth, WAY } from "./index-vectors.ts";

/** Weights tried on the same questions, the milder first. The next one counts only if it finds more. */
const TRIED = [WEIGHTS.dense, 0.3] as const;
/** Fewer questions prove nothing. */
const MIN_QUESTIONS = 25;
const CANDIDATE_COUNT = 200;
const RANKED_PLACES = 10;

/**
 * Asks the store questions from the repository's history, with and without vectors. Vectors get the weight that best
 * finds the files of commits by their subjects, or none if words alone do as well. Null if there are too few questions.
 */
export async function measuredWorth(
  store: SearchStore,
  history: readonly CommitQuestion[],
  means: {
    readonly model: string;
    /** Null if the question got no vector. */
    readonly vectorOf: (text: string) => Promise<Float32Array | null>;
    readonly signal: AbortSignal;
  },
): Promise<VectorWorth | null> {
  const { model, vectorOf, signal } = means;
  const marks = { words: [] as number[], by: new Map<number, number[]>(TRIED.map((weight) => [weight, []])) };
  for (const { question, answers } of history) {
    signal.throwIfAborted();
    const vector = await vectorOf(question);
    if (vector === null) continue;
    const found = await store.candidates({ text: question, vector }, CANDIDATE_COUNT, signal);
    const markOf = (dense: number): number =>
      mark(rank(found, question, RANKED_PLACES * 2, { ...WEIGHTS, dense }), answers);
    marks.words.push(markOf(0));
    for (const [weight, list] of marks.by) list.push(markOf(weight));
  }
  const questions = marks.words.length;
  if (questions < MIN_QUESTIONS) return null;
  const weight = weightBy(marks.words, marks.by);
  const { chunks } = await store.counts(signal);
  const vectors = mean(marks.by.get(weight) ?? marks.words);
  const found = { words: round(mean(marks.words)), vectors: round(vectors) };
  return { way: WAY, model, weight, questions, chunks, ...found };
}

/** The last weight in a row of gains, each over the milder one; 0 if the mildest gains nothing. */
export function weightBy(words: readonly number[], by: ReadonlyMap<number, readonly number[]>): number {
  let best = { weight: 0, mark: mean(words) };
  for (const [weight, marks] of by) {
    if (mean(marks) <= best.mark) break;
    best = { weight, mark: mean(marks) };
  }
  return best.weight;
}

function mark(hits: readonly { readonly path: string }[], answers: ReadonlySet<string>): number {
  const place = [...new Set(hits.map(({ path }) => path))]
    .slice(0, RANKED_PLACES)
    .findIndex((path) => answers.has(path));
  return place === -1 ? 0 : 1 / (place + 1);
}

const mean = (all: readonly number[]): number =>
  all.reduce((sum, one) => sum + one, 0) / Math.max(1, all.length);
const round = (value: number): number => Math.round(value * 1000) / 1000;

/** The subject of a commit as a question, and the files that it touched as the answers. */
export interface CommitQuestion {
  readonly question: string;
  readonly answers: ReadonlySet<string>;
}

const MAX_COMMITS = 600;
const TIME_LIMIT_MS = 10_000;
const MAX_BYTES = 2 ** 20;
/** A commit of more files says little about any of them. */
const MAX_ANSWERS = 6;
const MIN_WORDS = 3;
const MAX_LETTERS = 400;

/**
 * Git runs in the box, never here: a repository's configuration can start programs. What can be switched off is, and
 * the box contains the rest. Each commit is its subject after \x01, then its paths, separated by NULs.
 */
const WORDS = [
  ..."git --no-pager --no-optional-locks --no-replace-objects -c core.fsmonitor=false".split(" "),
  ..."-c core.hooksPath=/dev/null -c log.showSignature=false log --no-merges --no-renames".split(" "),
  ..."--no-ext-diff --no-textconv --relative -z --name-only".split(" "),
  `--max-count=${MAX_COMMITS}`,
  "--format=%x01%s",
];

/** At most `most` commits, newest first, that say where something is. None if there is no history or no git. */
export async function historyIn(
  box: Box,
  files: ReadonlySet<string>,
  most: number,
  signal: AbortSignal,
): Promise<readonly CommitQuestion[]> {
  const keep = { head: MAX_BYTES, tail: 0 };
  const { stdout } = await box.exec({ words: WORDS, timeoutMs: TIME_LIMIT_MS, keep }, signal);
  return commitQuestions(new TextDecoder().decode(stdout.head), files, most);
}

/** Exported for its tests: parses git's output; `files` are the files in the index. */
export function commitQuestions(
  output: string,
  files: ReadonlySet<string>,
  most: number,
): readonly CommitQuestion[] {
  const history = new Map<string, CommitQuestion>();
  for (const commit of output.split("\u0001").slice(1)) {
    const [subject = "", ...paths] = commit.split("\0").map((field) => field.replace(/^\n/, ""));
    const touched = paths.filter((path) => path !== "" && roleOf(path) === "source");
    const answers = touched.filter((path) => files.has(path));
    const question = questionOf(subject);
    if (question === "" || answers.length === 0 || touched.length > MAX_ANSWERS) continue;
    if (history.has(question)) continue;
    history.set(question, { question, answers: new Set(answers) });
    if (history.size >= most) break;
  }
  return [...history.values()];
}

const NO_QUESTION =
  /^(?:revert|merge|release|bump|version|prepare|update dep)|\b(?:typos?|lint|changelog|readme|copyright|whitespace)\b|^v?\d+\.\d+/i;
const KIND = /^(?:feat|fix|perf|refactor|chore|improve|style|security)(?:\([^)]*\))?!?:\s*/i;

/** The subject without ids, links and words for the kind of change; empty if too little is left. */
function questionOf(subject: string): string {
  if (NO_QUESTION.test(subject)) return "";
  const cleaned = subject
    .slice(0, MAX_LETTERS)
    .replace(KIND, "")
    .replaceAll(/\(?#\d+\)?|https?:\/\/\S+|\b(?=[0-9a-f]*\d)[0-9a-f]{7,40}\b/g, " ")
    .replaceAll(/\s+/g, " ")
    .trim();
  const words = cleaned.toLowerCase().match(/\p{L}{2,}/gu) ?? [];
  return words.filter((word) => !STOP_WORDS.has(word)).length < MIN_WORDS ? "" : cleaned;
}
