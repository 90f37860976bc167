import path from "node:path";
import { roleOf } from "../../src/search/ranked-query.ts";
import { STOP_WORDS } from "../../src/search/tokens.ts";
import type { Commit } from "./git.ts";

/** A question with the files that answer it, both taken from a commit. */
export interface CommitQuery {
  readonly id: string;
  readonly query: string;
  /** The subject alone. */
  readonly short: string;
  /** Source files that the commit touched and the base has. */
  readonly answers: readonly string[];
  /** Tests that the commit touched: also right, but not asked for. */
  readonly also: readonly string[];
  /** The query contains all words of an answer's file name. */
  readonly named: boolean;
}

const MAX_ANSWERS = 6;
const FEWEST_WORDS = 3;
const BODY_WORDS = 40;
const ENOUGH_WORDS = 30;

const NO_TASK =
  /^(?:revert|merge|release|prepare|bump|upgrade|update dep|version|changelog|back ?port)|\b(?:bumps?|typos?|lint(?:er|ing|s)?|rubocop|prettier|eslint|clippy|changelog|whitespace|format(?:ting)? code|readme|copyright|merge (?:pull|branch)|spelling|release v?\d|version to|msrv|docs|documentation|docblocks?|docstrings?|javadoc|comments?|wording|grammar|typed? hints?|phpstan|warnings?|tests)\b|^v?\d+\.\d+|^\[?(?:ci|docs?|tests?|build|chore|deps|release|style|lint)\b[^ ]*[:\]]|^(?:ci|docs?|tests?|chore|build|style|release|lint)(?:\([^)]*\))?!?:|^(?:add|fix|improve|update)(?:ed|s)? .*\btest\b|^[\w. /]+ (?:update|bump)$/i;

/**
 * Turns a commit into a question with answers, or null if it is unsuitable for a search. `base` holds the files that
 * existed before.
 */
export function queryOf(commit: Commit, base: ReadonlySet<string>): CommitQuery | null {
  if (NO_TASK.test(commit.subject)) return null;
  const sources = commit.touched.filter((file) => CODE.test(file) && roleOf(file) === "source");
  const answers = sources.filter((file) => base.has(file));
  if (answers.length === 0 || sources.length > MAX_ANSWERS || answers.length * 2 < sources.length)
    return null;
  const also = commit.touched.filter((file) => base.has(file) && roleOf(file) === "test");
  const short = subjectOf(commit.subject, answers);
  if (contentWords(short).length < FEWEST_WORDS) return null;
  const query = withBody(short, commit.body);
  if (answers.some((file) => query.toLowerCase().includes(path.posix.basename(file).toLowerCase())))
    return null;
  const said = new Set(splitWords(query));
  const named = answers.some((file) => splitWords(stemOf(file)).every((word) => said.has(word)));
  return { id: commit.id.slice(0, 12), query, short, answers, also, named };
}

/** Drops every question that is asked more than once. */
export function withoutTwins(all: readonly CommitQuery[]): readonly CommitQuery[] {
  const times = Map.groupBy(all, ({ short }) => short.toLowerCase());
  return all.filter(({ short }) => times.get(short.toLowerCase())?.length === 1);
}

const CODE =
  /\.(?:go|[cm]?[jt]sx?|py|rb|rs|c|cc|cpp|cxx|h|hh|hpp|m|mm|cs|java|kt|php|bash|sh|swift|scala|lua|vue|svelte|ex|exs|erl|hs|ml|pl|pm|tcl|zig|erb)$|(?:^|\/)(?:bin|libexec|lib)\/[^./]+$/;

const stemOf = (file: string): string => {
  const stem = path.posix.basename(file).replace(/\..*$/, "");
  return /^(?:index|mod|lib|main|__init__)$/.test(stem)
    ? path.posix.basename(path.posix.dirname(file))
    : stem;
};

const splitWords = (text: string): readonly string[] =>
  text
    .replaceAll(/([a-z0-9])([A-Z])/g, "$1 $2")
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word !== "");

const contentWords = (text: string): readonly string[] =>
  splitWords(text).filter((word) => word.length > 1 && !STOP_WORDS.has(word) && !/^\d+$/.test(word));

const TYPES =
  /^(?:feat|fix|perf|refactor|chore|improve|improvement|bug|bugfix|hotfix|enhancement|change|feature|style|security|types?)$/i;

/** `fix(client): …` becomes `client: …`, unless the scope is only the name of the file sought. */
function subjectOf(subject: string, answers: readonly string[]): string {
  let said = cleaned(subject);
  const match = /^(?:\[([^\]]+)\]|([\w./ ,-]{1,40}?)(?:\(([^)]*)\))?!?:)\s*(?=\S)/.exec(said);
  if (match !== null) {
    const [all, bracket, head, scope] = match;
    said = said.slice(all.length);
    const name = scope ?? bracket ?? head ?? "";
    if (!TYPES.test(name) && keepsScope(name, answers)) said = `${name}: ${said}`;
  }
  return said.trim();
}

function keepsScope(scope: string, answers: readonly string[]): boolean {
  if (!/^[\w-]+$/.test(scope)) return false;
  return !answers.some((file) => splitWords(stemOf(file)).join() === splitWords(scope).join());
}

const PATH = /(?<![\w`])(?:~|\.{1,2})?(?:[\w@.-]+)?(?:\/[\w@.*-]+){2,}\/?|\b[\w-]+\/[\w-]+\.\w{1,5}\b/g;
const FILE_NAME =
  /`?\b[\w-]+\.(?:go|[cm]?[jt]sx?|py|rb|rs|c|cc|cpp|h|hpp|cs|java|php|sh|bash|md|json|ya?ml|toml|txt|xml|m|mm|erb)\b(?![(\w])`?/g;

/** Removes ids, links, hashes, paths and file names. */
const cleaned = (text: string): string =>
  text
    .replaceAll(/\((?:[^()]*#\d+[^()]*)\)|\b(?:gh|GH)-\d+\b|[\w./-]*#\d+\b|\bticket:?\s*\d+/g, " ")
    .replaceAll(/https?:\/\/\S+/g, " ")
    .replaceAll(/\b(?=[0-9a-f]*\d)[0-9a-f]{7,40}\b/g, " ")
    .replaceAll(PATH, " ")
    .replaceAll(FILE_NAME, " ")
    .replaceAll(/\s+/g, " ")
    .replaceAll(/\s+([.,;:])/g, "$1")
    .replace(/[.\s]+$/, "")
    .trim();

const TRAILER =
  /^(?:[A-Z][\w-]+-by|Fix(?:es|ed)?|Closes?|Resolves?|Refs?|See|Ticket|Change-Id|Bug|Issue|PR)\b[: #]/i;
const LIST = /^\s*(?:[-*+•]|\d+[.)])\s|^#+ |^(?:```|---|===)/;

/** Adds up to three sentences of the first paragraph, while the text is short. */
function withBody(short: string, body: string): string {
  const paragraph = body.trim().split(/\n\s*\n/)[0] ?? "";
  const lines = paragraph.split("\n").filter((line) => !TRAILER.test(line.trim()));
  if (lines.length === 0 || LIST.test(lines[0] ?? "")) return short;
  const end = lines.findIndex((line) => LIST.test(line));
  const sentences = lines
    .slice(0, end === -1 ? lines.length : end)
    .join(" ")
    .split(/(?<=[.!?])\s+(?=[\p{Lu}`"'])/u)
    .slice(0, 3)
    .map(cleaned)
    .filter((sentence) => contentWords(sentence).length >= FEWEST_WORDS);
  let said = short;
  let left = BODY_WORDS;
  for (const sentence of sentences) {
    if (said.split(" ").length >= ENOUGH_WORDS || left <= 0) break;
    const words = sentence.split(" ").slice(0, left);
    left -= words.length;
    said = `${said.replace(/[.:;,]$/, "")}. ${words.join(" ")}`;
  }
  return said === short ? short : `${said.replace(/\.$/, "")}.`;
}
