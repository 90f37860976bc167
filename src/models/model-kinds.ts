/** What a model is for. */
export type ModelKind = "chat" | "embedding" | "other";

/**
 * Decides by the capabilities that the server reports, or by the name if it reports none. A model whose name does not
 * look like an embedder's counts as a chat model.
 */
export function kindOf(name: string, capabilities: readonly string[] | null): ModelKind {
  if (capabilities === null || capabilities.length === 0) return isEmbedderName(name) ? "embedding" : "chat";
  if (capabilities.includes("completion")) return "chat";
  return capabilities.includes("embedding") ? "embedding" : "other";
}

/** Words in the names of families whose models only embed. */
const EMBEDDERS =
  /(?:^|[-_./:])(?:embed(?:ding|dings|der)?|embeddinggemma|minilm|bge|gte|e5|arctic-embed\d*|mxbai|paraphrase|rerank(?:er)?)(?:[-_./:]|$)/;

const isEmbedderName = (name: string): boolean => EMBEDDERS.test(name.toLowerCase());
