/** The providers that are reached by an address and a key, each by its name in the settings. */

interface ProviderServer {
  /** As people know it. */
  readonly title: string;
  /** Where its key stands in the environment. */
  readonly variable: string;
  /** Where it answers unless base_url says otherwise; paths such as /chat/completions follow it. */
  readonly base: string;
  /** People run it themselves: it answers on this machine, and wants a key only where they set one. */
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
