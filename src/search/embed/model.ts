import type { Embedder } from "../../core/ports.ts";
import type { Chunk } from "../words.ts";
import { cardOf, questionOf } from "./card.ts";
import { tasksOf } from "./families.ts";

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
