import { EXIT, HarnessError } from "../core/errors.ts";
import type { Embedder } from "../core/ports.ts";
import type { VectorCache } from "./embedding-cache.ts";
import { inTime } from "./index-failure.ts";
import type { Chunk } from "./index-words.ts";

export interface EmbeddingModel {
  /** Provider and full name of the model. Vectors with different ids are never mixed. */
  readonly id: string;
  /** The model's name on its server. */
  readonly name: string;
  readonly embedder: Embedder;
  /** Masks text that leaves this machine; text that stays is not changed. */
  readonly mask: (text: string) => string;
}

/** Secrets are masked before the text is cut: half a secret would not be recognized. */
export const documentText = (
  { name, mask }: EmbeddingModel,
  { path, symbol, text }: Pick<Chunk, "path" | "symbol" | "text">,
): string =>
  tasksOf(name).document +
  cardOf({ path: mask(path), symbol: symbol === null ? null : mask(symbol), text: mask(text) });

export const queryText = ({ name, mask }: EmbeddingModel, text: string): string =>
  tasksOf(name).query + questionOf(mask(text));

/** Maximum length of a card in UTF-16 units: about the 2,000 tokens that common models read. */
const MAX_CARD_LENGTH = 6000;
const MAX_QUESTION_LENGTH = 2000;

/** The part of a chunk that a model sees: its path, its symbol, then as much text as fits. */
function cardOf({ path, symbol, text }: Pick<Chunk, "path" | "symbol" | "text">): string {
  const head = symbol === null ? path : `${path}\n${symbol}`;
  return cut(`${head}\n\n${text}`, MAX_CARD_LENGTH);
}

const questionOf = (text: string): string => cut(text.trim(), MAX_QUESTION_LENGTH);

const cut = (text: string, length: number): string => text.slice(0, length).toWellFormed();

/** The prefixes that a model was trained with, by the kind of text. */
interface Tasks {
  readonly document: string;
  readonly query: string;
}

const NONE: Tasks = { document: "", query: "" };

const RETRIEVE = "Represent this sentence for searching relevant passages: ";
const INSTRUCT = "Instruct: Given a question about code, retrieve the code that answers it\nQuery:";

/**
 * Prefixes from the models' own cards. The first row that matches the name counts. Nothing is known about other models,
 * so their texts get no prefix. all-minilm, bge-m3, gte and jina's v2 need none.
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

/** Accepts names as servers spell them, with or without a maker and a tag. */
export function tasksOf(model: string): Tasks {
  const name = model.toLowerCase();
  return FAMILIES.find(([form]) => form.test(name))?.[1] ?? NONE;
}

const REMEDY = "check that embed_model is a model for embeddings";

/**
 * Requires one vector per text, each with `dimension` numbers and a direction; anything else is a failure of the
 * embedder.
 */
export function checkedVectors(
  vectors: readonly Float32Array[],
  texts: number,
  dimension: number,
): readonly Float32Array[] {
  if (vectors.length !== texts)
    throw wrong(`the model returned ${vectors.length} vectors for ${texts} texts`);
  for (const vector of vectors) {
    if (vector.length !== dimension)
      throw wrong(`a vector has ${vector.length} dimensions, but this model's vectors have ${dimension}`);
    if (!vector.every(Number.isFinite)) throw wrong("a vector contains a value that is not a finite number");
    if (vector.every((number) => number === 0)) throw wrong("a vector is all zeros");
  }
  return vectors;
}

const wrong = (reason: string): HarnessError => new HarnessError(EXIT.model, `embeddings: ${reason}`, REMEDY);

/** Indexing waits this long for the model, which may have to be loaded. */
const PROBE_MS = 60_000;
const PROBE = "search";

/** The length of the model's vectors: known to the cache, or else asked of the model. */
export async function dimensionOf(
  model: EmbeddingModel,
  cache: VectorCache,
  signal: AbortSignal,
  timeoutMs = PROBE_MS,
): Promise<number> {
  const known = cache.dimension(model.id);
  if (known !== undefined) return known;
  const dimension = await probedDimension(model, signal, timeoutMs);
  cache.learn(model.id, dimension);
  return dimension;
}

/** The length of the model's vectors, always asked of the model. */
export async function probedDimension(
  model: EmbeddingModel,
  signal: AbortSignal,
  timeoutMs = PROBE_MS,
): Promise<number> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
  const vectors = await inTime(() => model.embedder.embed([PROBE], limit), limit);
  const dimension = vectors[0]?.length ?? 0;
  checkedVectors(vectors, 1, dimension);
  return dimension;
}
