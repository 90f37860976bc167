/** The providers that are accessed by an address and a key, by their names in the settings. */
import type { Stats } from "node:fs";
import { quote } from "shell-quote";
import * as z from "zod";
import { errorCode, EXIT, HarnessError, reasonOf } from "../core/errors.ts";
import { parsedJson } from "../core/raw-data.ts";
import { NotRegularError, readRegularSync } from "../platform/safe-files.ts";

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

const hostedServer = (title: string, variable: string, base: string): ProviderServer => ({
  title,
  variable,
  base,
  local: false,
});
const localServer = (title: string, variable: string, port: number): ProviderServer => ({
  title,
  variable,
  base: `http://127.0.0.1:${port}/v1`,
  local: true,
});

export const PROVIDER_SERVERS = {
  openai: hostedServer("OpenAI", "OPENAI_API_KEY", "https://api.openai.com/v1"),
  anthropic: hostedServer("Anthropic", "ANTHROPIC_API_KEY", "https://api.anthropic.com"),
  gemini: hostedServer("Gemini", "GEMINI_API_KEY", "https://generativelanguage.googleapis.com/v1beta/openai"),
  deepseek: hostedServer("DeepSeek", "DEEPSEEK_API_KEY", "https://api.deepseek.com/v1"),
  openrouter: hostedServer("OpenRouter", "OPENROUTER_API_KEY", "https://openrouter.ai/api/v1"),
  mistral: hostedServer("Mistral", "MISTRAL_API_KEY", "https://api.mistral.ai/v1"),
  groq: hostedServer("Groq", "GROQ_API_KEY", "https://api.groq.com/openai/v1"),
  lmstudio: localServer("LM Studio", "LM_API_TOKEN", 1234),
  vllm: localServer("vLLM", "VLLM_API_KEY", 8000),
  llamacpp: localServer("llama-server", "LLAMA_API_KEY", 8080),
} as const satisfies Readonly<Record<string, ProviderServer>>;

export type KeyedProvider = keyof typeof PROVIDER_SERVERS;

/** A header value takes no other characters, and the error about a bad value would show the key. */
const key = z.string().regex(/^[\u0021-\u007e]{1,500}$/);
/** Maps a provider's name to its key. */
const keyFile = z.partialRecord(z.enum(Object.keys(PROVIDER_SERVERS) as KeyedProvider[]), key);

const MAX_KEY_FILE = 64 * 1024;
const GROUP_AND_OTHERS = 0o077;
/** Shorter keys are stand-ins such as `none`, and words this short occur everywhere. */
const MIN_HIDDEN_LENGTH = 8;

interface KeyPlaces {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The user's keys.json; it may be missing. */
  readonly file: string;
}

/** The API key of one provider: from the environment, else from the file; undefined if neither has it. */
export function readKey(name: KeyedProvider, { env, file }: KeyPlaces): string | undefined {
  const { variable } = PROVIDER_SERVERS[name];
  const value = env[variable]?.trim();
  if (value === undefined || value === "") return keysIn(file)[name];
  if (key.safeParse(value).success) return value;
  const remedy = `Copy it again from your account's page: export ${variable}=…`;
  throw new HarnessError(EXIT.usage, `${variable} has characters that no key has`, remedy);
}

/** Replaces every key in the text with a mark. */
export function redact(text: string, keys: readonly string[]): string {
  let clean = text;
  for (const key of keys) if (key.length >= MIN_HIDDEN_LENGTH) clean = clean.replaceAll(key, "[key]");
  return clean;
}

function keysIn(file: string): z.infer<typeof keyFile> {
  const text = readSecret(file);
  if (text === undefined) return {};
  const read = keyFile.safeParse(parsedJson(text));
  if (read.success) return read.data;
  const remedy = `Write it as {"openai": "sk-…", "anthropic": "sk-…"}; each of them may be left out.`;
  throw new HarnessError(EXIT.usage, `${file} is not a key file`, remedy);
}

/** Reads the very file that was checked, and never blocks on opening it. */
function readSecret(file: string): string | undefined {
  const check = (stats: Stats): void => {
    checkSecret(file, stats);
  };
  try {
    return readRegularSync(file, { links: "follow", max: MAX_KEY_FILE, check }).toString();
  } catch (thrown) {
    if (thrown instanceof HarnessError) throw thrown;
    if (errorCode(thrown) === "ENOENT" || errorCode(thrown) === "ENOTDIR") return undefined;
    if (thrown instanceof NotRegularError) throw noKeys(file);
    throw new HarnessError(EXIT.usage, `cannot read ${file}: ${reasonOf(thrown)}`, `Fix it, or remove it.`);
  }
}

function checkSecret(file: string, { mode, size, uid }: Stats): void {
  if (size > MAX_KEY_FILE) throw noKeys(file);
  if ((mode & GROUP_AND_OTHERS) !== 0) {
    const shown = (mode & 0o777).toString(8).padStart(4, "0");
    const reason = `${file} has mode ${shown}, so others may read or change the keys in it`;
    throw new HarnessError(EXIT.usage, reason, `chmod 600 ${quote([file])}`);
  }
  if (uid !== process.getuid?.())
    throw new HarnessError(EXIT.usage, `${file} belongs to another user`, `Change its owner, or remove it.`);
}

const noKeys = (file: string): HarnessError =>
  new HarnessError(EXIT.usage, `${file} is not a key file`, `Fix it, or remove it.`);
