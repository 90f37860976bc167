import type { Role } from "../words.ts";
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
  /** Kinds of files it names, which are then not ranked lower. */
  readonly asked: ReadonlySet<Role>;
}

/** Of a query only so much is read: what is longer is a text, not a question. */
const MOST_LETTERS = 4000;
const SENTENCE_END = /[.!?](?=\s)|\n/;
const RUN = /[\p{L}\p{N}_$]+/gu;

const ASKS: readonly (readonly [Role, RegExp])[] = [
  ["test", /\b(?:tests?|specs?|fixtures?|unit tests?|mocks?)\b/i],
  ["docs", /\b(?:docs?|documentation|readme|changelog|guide|tutorial)\b/i],
  ["example", /\b(?:examples?|samples?|demos?)\b/i],
  ["config", /\b(?:package\.json|dockerfile|makefile|workflows?|ci)\b/i],
];

export function understand(text: string, tokenizer: Tokenizer, weights: Weights): Query {
  const read = text.slice(0, MOST_LETTERS);
  const end = SENTENCE_END.exec(read)?.index ?? read.length;
  const found = new Map<string, QueryWord>();
  collect(read.slice(0, end), weights.firstSentence, { found, tokenizer });
  collect(read.slice(end), 1, { found, tokenizer });
  return {
    words: [...found.values()],
    asked: new Set(ASKS.flatMap(([role, pattern]) => (pattern.test(read) ? [role] : []))),
  };
}

interface Collected {
  readonly found: Map<string, QueryWord>;
  readonly tokenizer: Tokenizer;
}

function collect(text: string, weight: number, { found, tokenizer }: Collected): void {
  for (const [run] of text.matchAll(RUN)) {
    if (STOP_WORDS.has(run.toLowerCase())) continue;
    for (const word of tokenizer.of(run))
      if ((found.get(word)?.weight ?? 0) < weight) found.set(word, { word, said: run, weight });
  }
}
