/** The possible values of settings that are one of a few words. */

export const PROVIDERS = [
  "ollama",
  "openai",
  "anthropic",
  "gemini",
  "deepseek",
  "openrouter",
  "mistral",
  "groq",
  "lmstudio",
  "vllm",
  "llamacpp",
  "scripted",
] as const;
export const ISOLATIONS = ["bind", "overlay", "copy"] as const;
export const ON_ASK = ["refuse", "contained", "park"] as const;
export const NOTIFY = ["off", "bell", "desktop", "both"] as const;
export const STORES = ["auto", "qdrant", "embedded"] as const;
export const SEARCH_SERVICES = ["searxng", "tavily", "exa", "brave"] as const;
