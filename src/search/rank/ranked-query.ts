import type { Role } from "../index-words.ts";
import { type Lookup, lookupIn } from "./name-lookup.ts";
import { roleOf } from "./path-role.ts";
import { stem, STOP_WORDS } from "./stem.ts";
import type { Tokenizer } from "./tokens.ts";
import type { Weights } from "./weights.ts";

export interface QueryWord {
  /** The word as in the index. */
  readonly word: string;
  /** The word as in the query. */
  readonly original: string;
  readonly weight: number;
}

/** A parsed query. */
export interface Query {
  readonly words: readonly QueryWord[];
  /** The factor for files of each role. */
  readonly prior: Readonly<Record<Role, number>>;
}

/** Only this much of a query is read: a longer one is a text, not a question. */
const MAX_LETTERS = 4000;
const MAX_WORDS = 128;
const SENTENCE_END = /[.!?](?=\s)|\n/;
const NONE: ReadonlySet<string> = new Set();
const RUN = /[\p{L}\p{N}_$]+/gu;

/**
 * Roles that a query names: as the thing it looks for, or among other words. Neither pattern can match without one of
 * the texts in the second column, and compiling the patterns takes longer than all other work on a query.
 */
const ASKS: readonly (readonly [Role, says: readonly string[], asked: RegExp, mentioned: RegExp])[] = [
  [
    "test",
    ["test", "spec", "fixture", "mock"],
    /\b(?:tests?|specs?|test cases?|fixtures?|mocks?) (?:for|of|that|which|covering|around|about)\b|\b(?:where|how|what|which)\b.*\b(?:tested|tests?|specs?)\b|^(?:unit |integration )?tests?\b/i,
    /\b(?:tests?|specs?|fixtures?|mocks?)\b/i,
  ],
  [
    "docs",
    ["doc", "guide", "tutorial", "changelog", "readme"],
    /\b(?:docs?|documentation|guide|tutorial|changelog|readme) (?:for|of|on|about|that)\b|\b(?:where|what|which)\b.*\b(?:documented|docs?|documentation)\b|^(?:docs?|documentation|readme|changelog)\b/i,
    /\b(?:docs?|documentation|readme|changelog|guide|tutorial)\b/i,
  ],
  [
    "example",
    ["example", "sample", "demo"],
    /\b(?:examples?|samples?|demos?) (?:for|of|that|which|using)\b/i,
    /\b(?:examples?|samples?|demos?)\b/i,
  ],
  [
    "config",
    [
      "json",
      "yaml",
      "toml",
      "tsconfig",
      "file",
      "pyproject",
      "go.mod",
      "workflow",
      "ci ",
      "locale",
      "translation",
    ],
    /\b(?:package\.json|tsconfig|dockerfile|makefile|cargo\.toml|pyproject|go\.mod|workflow file|ci (?:job|workflow|pipeline))\b/i,
    /\b(?:workflows?|yaml|json|toml|dockerfile|makefile|locale|translations?)\b/i,
  ],
];

export function parseQuery(text: string, tokenizer: Tokenizer, weights: Weights): Query {
  const read = text.slice(0, MAX_LETTERS);
  const end = SENTENCE_END.exec(read)?.index ?? read.length;
  const queryWords = new QueryWords(tokenizer, weights);
  const lookup = lookupIn(text);
  // A name may be a stop word: `get`.
  queryWords.take(read.slice(0, end), weights.firstSentence, lookup === null ? STOP_WORDS : NONE);
  queryWords.take(read.slice(end), 1);
  // Sentences after the first only explain, unless one of them is a question.
  const asking = read.includes("?") ? read : read.slice(0, end);
  return { words: queryWords.words.slice(0, MAX_WORDS), prior: priorOf(read, asking, lookup, weights) };
}

function priorOf(
  text: string,
  asking: string,
  lookup: Lookup | null,
  { role, mentioned, notAsked }: Weights,
): Readonly<Record<Role, number>> {
  const prior = { ...role };
  const path = lookup?.path ?? "";
  // An unknown extension may be a member name instead.
  const named = /[./]/.test(path) ? roleOf(path) : "config";
  if (named !== "config") prior[named] = 1;
  const lower = text.toLowerCase();
  for (const [name, says, asked, mentions] of ASKS) {
    if (!says.some((word) => lower.includes(word))) continue;
    if (asked.test(asking)) {
      prior[name] = 1;
      prior.source = notAsked;
    } else if (mentions.test(text)) prior[name] = Math.max(prior[name], mentioned);
  }
  return prior;
}

class QueryWords {
  readonly #tokenizer: Tokenizer;
  readonly #weights: Weights;
  readonly #found = new Map<string, QueryWord>();

  constructor(tokenizer: Tokenizer, weights: Weights) {
    this.#tokenizer = tokenizer;
    this.#weights = weights;
  }

  get words(): readonly QueryWord[] {
    return [...this.#found.values()];
  }

  take(text: string, weight: number, without: ReadonlySet<string> = STOP_WORDS): void {
    let before: { readonly word: string; readonly end: number } | undefined;
    for (const match of text.matchAll(RUN)) {
      const [run] = match;
      const word = run.toLowerCase();
      if (without.has(word)) {
        before = undefined;
        continue;
      }
      const parts = this.#tokenizer.of(run);
      const worth = this.#worthOf(parts, match.index === 0);
      for (const part of parts) this.#add(part, run, weight * worth);
      if (before !== undefined && match.index - before.end === 1)
        this.#add(before.word + word, `${before.word} ${word}`, weight * this.#weights.joined);
      before = { word, end: match.index + run.length };
    }
  }

  /** The weight of a run of letters by its usual meaning in queries; `addHandler` is a name. */
  #worthOf(parts: readonly string[], opens: boolean): number {
    const [word] = parts;
    if (word === undefined || parts.length > 1) return 1;
    if (opens && OPENING_WORDS.has(word)) return this.#weights.opening;
    return CHANGE_WORDS.has(word) ? this.#weights.change : 1;
  }

  #add(word: string, original: string, weight: number): void {
    const known = this.#found.get(word);
    const [more, less] = [Math.max(known?.weight ?? 0, weight), Math.min(known?.weight ?? 0, weight)];
    this.#found.set(word, {
      word,
      original: known?.original ?? original,
      weight: more + less * this.#weights.again,
    });
  }
}

const EMPTY = "add added allow ensure fix handle implement improve support update";
const VERBS =
  "adjust avoid change cleanup correct deprecate disable drop enable introduce move prevent provide refactor remove " +
  "rename replace report";

const stems = (words: string): ReadonlySet<string> => new Set(words.split(" ").map(stem));

/** Words that describe a change more often than its place, in all inflections: `added support`, `fixes`. */
export const CHANGE_WORDS = stems(EMPTY);

/** Words that say what to do when a query begins with them. Later in a query, `remove` may well be a name. */
export const OPENING_WORDS = stems(`${EMPTY} ${VERBS}`);

/** What a query says beyond its single words. */
export interface RequestWords {
  /** The words before the colon in `trie-router: count every slash`. */
  readonly scope: readonly string[];
  /** Adjacent words, each as the prefix that all its inflections share. */
  readonly pairs: readonly Pair[];
  /** Names that prose does not contain: of several words, called, or in backquotes. As spelled. */
  readonly spelled: readonly string[];
}

export type Pair = readonly [one: string, other: string];

const MAX_SAID_LETTERS = 4000;
const MAX_PAIRS = 64;
const MAX_SPELLED = 32;
const SCOPE = /^([^:\n]{2,40}?):\s/;
const WORD_RUN = /[\p{L}\p{N}_$]+/gu;
const QUOTED = /`([^`\n]+)`/g;
const SEVERAL_WORDS = /[\p{Ll}\p{N}]\p{Lu}|[\p{L}\p{N}]_[\p{L}\p{N}]/u;

export function restOfRequest(text: string, tokenizer: Tokenizer): RequestWords {
  const read = text.slice(0, MAX_SAID_LETTERS);
  const scope = tokenizer.count(SCOPE.exec(read)?.[1] ?? "");
  return {
    scope: [...scope.keys()].filter((word) => !STOP_WORDS.has(word)),
    pairs: pairsOf(read, tokenizer),
    spelled: spelledOut(read),
  };
}

function pairsOf(text: string, tokenizer: Tokenizer): readonly Pair[] {
  const pairs: Pair[] = [];
  let before: string | undefined;
  for (const [run] of text.matchAll(WORD_RUN)) {
    const words = STOP_WORDS.has(run.toLowerCase()) ? [] : tokenizer.of(run);
    const [first] = words;
    if (first !== undefined && before !== undefined) pairs.push([before, beginning(first)]);
    // The last word of several is all of them joined.
    const last = words.length > 1 ? words.at(-2) : first;
    before = last === undefined ? undefined : beginning(last);
  }
  return pairs.slice(0, MAX_PAIRS);
}

/** A stem may end in a letter that the word does not have: `directori`. */
const beginning = (stem: string): string => (stem.length > 3 ? stem.replace(/[iy]$/, "") : stem);

function spelledOut(text: string): readonly string[] {
  const found = new Set<string>();
  for (const [, quoted = ""] of text.matchAll(QUOTED))
    for (const [run] of quoted.matchAll(WORD_RUN)) if (run.length > 2) found.add(run);
  for (const match of text.matchAll(WORD_RUN))
    if (SEVERAL_WORDS.test(match[0]) || text.startsWith("(", match.index + match[0].length))
      found.add(match[0]);
  return [...found].slice(0, MAX_SPELLED);
}
