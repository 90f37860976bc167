import type { Role } from "../words.ts";
import { CHANGE_WORDS, OPENING_WORDS } from "./change.ts";
import { type Lookup, lookupIn } from "./lookup.ts";
import { roleOf } from "./role.ts";
import { STOP_WORDS } from "./stop.ts";
import type { Tokenizer } from "./tokens.ts";
import type { Weights } from "./weights.ts";

export interface QueryWord {
  /** As it is in the index. */
  readonly word: string;
  /** As it is in the query. */
  readonly said: string;
  readonly weight: number;
}

/** What a query asks for. */
export interface Query {
  readonly words: readonly QueryWord[];
  /** What a file of each role is worth to it. */
  readonly prior: Readonly<Record<Role, number>>;
}

/** Of a query only so much is read: what is longer is a text, not a question. */
const MOST_LETTERS = 4000;
const MOST_WORDS = 128;
const SENTENCE_END = /[.!?](?=\s)|\n/;
const NONE: ReadonlySet<string> = new Set();
const RUN = /[\p{L}\p{N}_$]+/gu;

/** Roles that a query names: as what it looks for, or among other words. */
const ASKS: readonly (readonly [Role, asked: RegExp, mentioned: RegExp])[] = [
  [
    "test",
    /\b(?:tests?|specs?|test cases?|fixtures?|mocks?) (?:for|of|that|which|covering|around|about)\b|\b(?:where|how|what|which)\b.*\b(?:tested|tests?|specs?)\b|^(?:unit |integration )?tests?\b/i,
    /\b(?:tests?|specs?|fixtures?|mocks?)\b/i,
  ],
  [
    "docs",
    /\b(?:docs?|documentation|guide|tutorial|changelog|readme) (?:for|of|on|about|that)\b|\b(?:where|what|which)\b.*\b(?:documented|docs?|documentation)\b|^(?:docs?|documentation|readme|changelog)\b/i,
    /\b(?:docs?|documentation|readme|changelog|guide|tutorial)\b/i,
  ],
  [
    "example",
    /\b(?:examples?|samples?|demos?) (?:for|of|that|which|using)\b/i,
    /\b(?:examples?|samples?|demos?)\b/i,
  ],
  [
    "config",
    /\b(?:package\.json|tsconfig|dockerfile|makefile|cargo\.toml|pyproject|go\.mod|workflow file|ci (?:job|workflow|pipeline))\b/i,
    /\b(?:workflows?|yaml|json|toml|dockerfile|makefile|locale|translations?)\b/i,
  ],
];

export function understand(text: string, tokenizer: Tokenizer, weights: Weights): Query {
  const read = text.slice(0, MOST_LETTERS);
  const end = SENTENCE_END.exec(read)?.index ?? read.length;
  const said = new Said(tokenizer, weights);
  const lookup = lookupIn(text);
  // A name may be one of the words that a question does not count: `get`.
  said.take(read.slice(0, end), weights.firstSentence, lookup === null ? STOP_WORDS : NONE);
  said.take(read.slice(end), 1);
  // What comes after the first sentence explains; a question there asks again.
  const asking = read.includes("?") ? read : read.slice(0, end);
  return { words: said.words.slice(0, MOST_WORDS), prior: priorOf(read, asking, lookup, weights) };
}

function priorOf(
  text: string,
  asking: string,
  lookup: Lookup | null,
  { role, mentioned, notAsked }: Weights,
): Readonly<Record<Role, number>> {
  const prior = { ...role };
  const path = lookup?.path ?? "";
  // An ending that nobody knows may as well be a member's name.
  const named = /[./]/.test(path) ? roleOf(path) : "config";
  if (named !== "config") prior[named] = 1;
  for (const [name, asked, mentions] of ASKS)
    if (asked.test(asking)) {
      prior[name] = 1;
      prior.source = notAsked;
    } else if (mentions.test(text)) prior[name] = Math.max(prior[name], mentioned);
  return prior;
}

class Said {
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

  /** What a run is worth by what it means in queries; `addHandler` is a name. */
  #worthOf(parts: readonly string[], opens: boolean): number {
    const [word] = parts;
    if (word === undefined || parts.length > 1) return 1;
    if (opens && OPENING_WORDS.has(word)) return this.#weights.opening;
    return CHANGE_WORDS.has(word) ? this.#weights.change : 1;
  }

  #add(word: string, said: string, weight: number): void {
    const known = this.#found.get(word);
    const [more, less] = [Math.max(known?.weight ?? 0, weight), Math.min(known?.weight ?? 0, weight)];
    this.#found.set(word, {
      word,
      said: known?.said ?? said,
      weight: more + less * this.#weights.again,
    });
  }
}
