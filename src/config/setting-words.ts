/** Words of the settings: the possible values of some, other names, and what is said of a mistake. */
import { EXIT, HarnessError } from "../core/errors.ts";

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

/** Other names of settings. */
export const ALIASES: Readonly<Record<string, "max_turns">> = { max_steps: "max_turns" };

/** A mistake in a setting: where it stands, and what is wrong. */
export function configError(where: string, message: string): HarnessError {
  // The name of a flag or command is already in the message.
  const text = message.startsWith(`${where}: `) ? message : `${where}: ${message}`;
  return new HarnessError(EXIT.usage, text, nextFor(where));
}

/** The next step for a person. A typed value is in no file where it could be corrected. */
function nextFor(where: string): string {
  if (where.startsWith("--")) return "give it another value, or leave it out";
  return /^\/[a-z]+$/.test(where) ? `${where} ?` : "fix it there; harness doctor shows whether it is valid";
}
