import type { Embedder } from "../core/ports.ts";
import type { Chunk } from "./index-words.ts";

export interface EmbeddingModel {
  /** Who makes the vectors: provider and full name. What differs in it is never mixed. */
  readonly id: string;
  /** As its server calls it. */
  readonly name: string;
  readonly embedder: Embedder;
  /** What leaves this machine goes through it; it changes nothing of what stays. */
  readonly mask: (text: string) => string;
}

/** Secrets are looked for before the text is cut: half of one has no form. */
export const documentText = (
  { name, mask }: EmbeddingModel,
  { path, symbol, text }: Pick<Chunk, "path" | "symbol" | "text">,
): string =>
  tasksOf(name).document +
  cardOf({ path: mask(path), symbol: symbol === null ? null : mask(symbol), text: mask(text) });

export const queryText = ({ name, mask }: EmbeddingModel, text: string): string =>
  tasksOf(name).query + questionOf(mask(text));

/** Of a card, in UTF-16 units: about the 2,000 tokens that the usual models see. */
const MAX_CARD_LENGTH = 6000;
const MAX_QUESTION_LENGTH = 2000;

/** What of a chunk a model sees: where it is, what it is called, then its text as far as there is room. */
function cardOf({ path, symbol, text }: Pick<Chunk, "path" | "symbol" | "text">): string {
  const head = symbol === null ? path : `${path}\n${symbol}`;
  return cut(`${head}\n\n${text}`, MAX_CARD_LENGTH);
}

const questionOf = (text: string): string => cut(text.trim(), MAX_QUESTION_LENGTH);

const cut = (text: string, length: number): string => text.slice(0, length).toWellFormed();

/** What a model was trained to see before a text, by what the text is. */
interface Tasks {
  readonly document: string;
  readonly query: string;
}

const NONE: Tasks = { document: "", query: "" };

const RETRIEVE = "Represent this sentence for searching relevant passages: ";
const INSTRUCT = "Instruct: Given a question about code, retrieve the code that answers it\nQuery:";

/**
 * As the models' own cards say. The first row that fits the name counts; of a model without one nothing is known, and
 * its texts stay as they are. all-minilm, bge-m3, gte and jina's v2 want nothing.
 */
const FAMILIES: readonly (readonly [RegExp, Tasks])[] = [
  [/nomic-embed-code/, { document: "", query: "Represent this query for searching relevant code: " }],
  [/nomic-embed/, { document: "search_document: ", query: "search_query: " }],
  [/mxbai-embed/, { document: "", query: RETRIEVE }],
  [/arctic-embed-?(?:l-|m-)?(?:v)?2/, { document: "", query: "query: " }],
  [/arctic-embed/, { document: "", query: RETRIEVE }],
  [/(?:^|[/-])e5-.*instruct/, { document: "", query: `${INSTRUCT} ` }],
  [/(?:^|[/-])e5(?:[-:]|$)/, { document: "passage: ", query: "query: " }],
  [/bge-m3/, NONE],
  [/bge-(?:small|base|large)-en|bge-(?:small|base|large)(?::|$)/, { document: "", query: RETRIEVE }],
  [/qwen3-embedding/, { document: "", query: INSTRUCT }],
  [/embedding-?gemma/, { document: "title: none | text: ", query: "task: code retrieval | query: " }],
];

/** Names as servers spell them, with or without a maker and a tag. */
export function tasksOf(model: string): Tasks {
  const name = model.toLowerCase();
  return FAMILIES.find(([form]) => form.test(name))?.[1] ?? NONE;
}
