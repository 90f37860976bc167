/** The providers that are accessed by an address and a key, by their names in the settings. */

interface ProviderServer {
  /** The name that people know. */
  readonly title: string;
  /** Environment variable of its key. */
  readonly variable: string;
  /** Its address unless base_url names another; paths such as /chat/completions are appended. */
  readonly base: string;
  /** The user runs it: by default on this machine, and with a key only if the user set one. */
  readonly local: boolean;
}

const hosted = (title: string, variable: string, base: string): ProviderServer => ({
  title,
  variable,
  base,
  local: false,
});
const own = (title: string, variable: string, port: number): ProviderServer => ({
  title,
  variable,
  base: `http://127.0.0.1:${port}/v1`,
  local: true,
});

export const PROVIDER_SERVERS = {
  openai: hosted("OpenAI", "OPENAI_API_KEY", "https://api.openai.com/v1"),
  anthropic: hosted("Anthropic", "ANTHROPIC_API_KEY", "https://api.anthropic.com"),
  gemini: hosted("Gemini", "GEMINI_API_KEY", "https://generativelanguage.googleapis.com/v1beta/openai"),
  deepseek: hosted("DeepSeek", "DEEPSEEK_API_KEY", "https://api.deepseek.com/v1"),
  openrouter: hosted("OpenRouter", "OPENROUTER_API_KEY", "https://openrouter.ai/api/v1"),
  mistral: hosted("Mistral", "MISTRAL_API_KEY", "https://api.mistral.ai/v1"),
  groq: hosted("Groq", "GROQ_API_KEY", "https://api.groq.com/openai/v1"),
  lmstudio: own("LM Studio", "LM_API_TOKEN", 1234),
  vllm: own("vLLM", "VLLM_API_KEY", 8000),
  llamacpp: own("llama-server", "LLAMA_API_KEY", 8080),
} as const satisfies Readonly<Record<string, ProviderServer>>;

export type KeyedProvider = keyof typeof PROVIDER_SERVERS;
