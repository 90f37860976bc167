/** What a model is for. */
export type ModelKind = "chat" | "embedding" | "other";

/**
 * By what its server says that it can do; where it says nothing, by its name. What is neither known nor called like an
 * embedder is taken for one that chats.
 */
export function kindOf(name: string, capabilities: readonly string[] | null): ModelKind {
  if (capabilities === null || capabilities.length === 0) return isEmbedderName(name) ? "embedding" : "chat";
  if (capabilities.includes("completion")) return "chat";
  return capabilities.includes("embedding") ? "embedding" : "other";
}

/** Families whose models only embed, by a word of their names. */
const EMBEDDERS =
  /(?:^|[-_./:])(?:embed(?:ding|dings|der)?|embeddinggemma|minilm|bge|gte|e5|arctic-embed\d*|mxbai|paraphrase|rerank(?:er)?)(?:[-_./:]|$)/;

const isEmbedderName = (name: string): boolean => EMBEDDERS.test(name.toLowerCase());
