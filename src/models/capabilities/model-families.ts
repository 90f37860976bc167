/** What is known of families, by the longest prefix of a name as `familyName` writes it. */

export interface Row {
  readonly prefix: string;
  /** Tokens. Of variants the smaller: too few compact early, too many fail. */
  readonly context: number;
  /** Was made to call tools in a format that servers read. */
  readonly tools: boolean;
  readonly thinking: boolean;
  /** Its servers keep what they have read of the same prefix. */
  readonly cache: boolean;
}

const K = 1024;

const row = (prefix: string, context: number, ...marks: readonly ("tools" | "thinking")[]): Row => ({
  prefix,
  context,
  tools: marks.includes("tools"),
  thinking: marks.includes("thinking"),
  cache: true,
});

export const TABLE: readonly Row[] = [
  row("qwen", 32 * K),
  row("qwen2", 32 * K, "tools"),
  row("qwen2.5", 32 * K, "tools"),
  // Writes its calls as plain JSON, which no server reads as one.
  row("qwen2.5-coder", 32 * K),
  row("qwen3", 40 * K, "tools", "thinking"),
  row("qwen3-30b-a3b-instruct-2507", 256 * K, "tools"),
  row("qwen3-4b-instruct-2507", 256 * K, "tools"),
  row("qwen3-235b-a22b-instruct-2507", 256 * K, "tools"),
  row("qwen3-30b-a3b-thinking-2507", 256 * K, "tools", "thinking"),
  row("qwen3-4b-thinking-2507", 256 * K, "tools", "thinking"),
  row("qwen3-235b-a22b-thinking-2507", 256 * K, "tools", "thinking"),
  row("qwen3-coder", 256 * K, "tools"),
  row("qwen3-next", 256 * K, "tools", "thinking"),
  row("qwen3-vl", 256 * K, "tools", "thinking"),
  row("qwen3.5", 256 * K, "tools", "thinking"),
  row("qwen3.6", 256 * K, "tools", "thinking"),
  row("qwq", 40 * K, "tools", "thinking"),

  row("codestral", 32 * K),
  row("devstral", 128 * K, "tools"),
  row("mistral", 32 * K, "tools"),
  row("mistral-nemo", 128 * K, "tools"),
  row("mistral-large", 128 * K, "tools"),
  row("mistral-medium", 128 * K, "tools"),
  row("mistral-small", 32 * K, "tools"),
  row("mistral-small3.1", 128 * K, "tools"),
  row("mistral-small3.2", 128 * K, "tools"),
  row("mixtral", 32 * K, "tools"),
  row("ministral", 128 * K, "tools"),
  row("magistral", 40 * K, "tools", "thinking"),

  row("gpt-oss", 128 * K, "tools", "thinking"),

  row("codellama", 16 * K),
  row("llama2", 4 * K),
  row("llama3", 8 * K),
  row("llama3.1", 128 * K, "tools"),
  row("llama3.2", 128 * K, "tools"),
  row("llama3.3", 128 * K, "tools"),
  row("llama4", 1024 * K, "tools"),

  row("gemma2", 8 * K),
  row("gemma3", 128 * K),
  row("gemma3:1b", 32 * K),
  row("gemma3-1b", 32 * K),
  row("gemma3n", 32 * K),
  row("gemma4", 128 * K, "tools", "thinking"),
  row("functiongemma", 32 * K, "tools"),

  row("granite3", 128 * K, "tools"),
  row("granite3-dense", 4 * K, "tools"),
  row("granite3-moe", 4 * K, "tools"),
  row("granite3.0", 4 * K, "tools"),
  row("granite3.2", 128 * K, "tools", "thinking"),
  row("granite3.3", 128 * K, "tools", "thinking"),
  row("granite4", 128 * K, "tools"),

  row("deepseek-coder", 16 * K),
  row("deepseek-coder-v2", 160 * K),
  row("deepseek-v2", 160 * K),
  row("deepseek-v3", 160 * K, "tools"),
  row("deepseek-v3.1", 160 * K, "tools", "thinking"),
  row("deepseek-v3.2", 160 * K, "tools", "thinking"),
  // Most that bear the name are distilled into models that were never taught to call.
  row("deepseek-r1", 128 * K, "thinking"),
  row("deepseek-chat", 128 * K, "tools"),
  row("deepseek-reasoner", 128 * K, "tools", "thinking"),

  row("phi3", 4 * K),
  row("phi3.5", 128 * K),
  row("phi4", 16 * K),
  row("phi4-mini", 128 * K, "tools"),
  row("phi4-mini-reasoning", 128 * K, "thinking"),
  row("phi4-reasoning", 32 * K, "thinking"),

  row("glm4", 128 * K, "tools"),
  row("glm4.5", 128 * K, "tools", "thinking"),
  row("glm4.6", 198 * K, "tools", "thinking"),
  row("glm4.7", 198 * K, "tools", "thinking"),
  row("glm5", 198 * K, "tools", "thinking"),
  row("kimi-k2", 128 * K, "tools"),
  row("kimi-k2-thinking", 256 * K, "tools", "thinking"),
  row("kimi-k2.5", 256 * K, "tools", "thinking"),
  row("minimax-m2", 192 * K, "tools", "thinking"),

  row("command-r", 128 * K, "tools"),
  row("command-r7b", 128 * K, "tools"),
  row("command-a", 256 * K, "tools"),
  row("smollm", 2 * K),
  row("smollm2", 8 * K, "tools"),
  row("smollm3", 64 * K, "tools", "thinking"),
  row("hermes3", 128 * K, "tools"),
  row("cogito", 128 * K, "tools", "thinking"),
  row("nemotron", 128 * K, "tools"),
  row("nemotron3", 256 * K, "tools", "thinking"),
  row("lfm2", 32 * K, "tools"),
  row("olmo3", 64 * K, "tools"),
  row("exaone", 32 * K),
  row("starcoder2", 16 * K),

  row("claude", 200_000, "tools", "thinking"),
  row("claude3", 200_000, "tools"),
  row("claude3-7", 200_000, "tools", "thinking"),
  row("gpt", 128_000, "tools"),
  row("gpt3.5", 16_385, "tools"),
  row("gpt4", 8192, "tools"),
  row("gpt4-turbo", 128_000, "tools"),
  row("gpt4o", 128_000, "tools"),
  row("gpt4.1", 1_047_576, "tools"),
  row("gpt5", 400_000, "tools", "thinking"),
  row("gpt5-chat", 128_000, "tools"),
  row("o1", 200_000, "tools", "thinking"),
  row("o3", 200_000, "tools", "thinking"),
  row("o4-mini", 200_000, "tools", "thinking"),
];

/**
 * A model that nobody here has heard of: tools stand in its prompt, which works with every server, while some drop
 * `tools` in silence.
 */
export const UNKNOWN: Omit<Row, "prefix"> = {
  context: 32 * K,
  tools: false,
  thinking: false,
  cache: false,
};
