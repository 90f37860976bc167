import { z } from "zod";
import { EXIT, HarnessError, reasonOf } from "../core/errors.ts";
import { ailing, broken, type Health, healthy } from "../core/health.ts";
import { type KeyName, readKey } from "./api-keys.ts";
import { ollamaAddress } from "./ollama/ollama-address.ts";
import { grouped, ollamaHealth, SMALL_CONTEXT } from "./ollama/ollama-health.ts";
import { type Answer, askJson } from "./ollama/ollama-http.ts";
import { readScenario } from "./providers/scenario.ts";

export interface ModelHealthRequest {
  readonly provider: "ollama" | "openai" | "anthropic" | "scripted";
  /** The settings base_url, chat_model and max_context_tokens. */
  readonly baseUrl: string | null;
  readonly model: string;
  readonly maxContext: number | null;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The user's keys.json; it need not be there. */
  readonly keysFile: string;
  readonly signal: AbortSignal;
  /** Bytes of memory of the machine that Ollama runs on; found out unless given. */
  readonly memory?: number | null;
}

/** A provider that is reached by a key. */
interface Keyed {
  readonly key: KeyName;
  readonly name: string;
  readonly variable: string;
  readonly publicBase: string;
  readonly listPath: string;
  readonly headers: (key: string) => Readonly<Record<string, string>>;
}

const OPENAI: Keyed = {
  key: "openai",
  name: "OpenAI",
  variable: "OPENAI_API_KEY",
  publicBase: "https://api.openai.com/v1",
  listPath: "/models",
  headers: (key) => ({ authorization: `Bearer ${key}` }),
};
const ANTHROPIC: Keyed = {
  key: "anthropic",
  name: "Anthropic",
  variable: "ANTHROPIC_API_KEY",
  publicBase: "https://api.anthropic.com",
  listPath: "/v1/models?limit=1000",
  headers: (key) => ({ "x-api-key": key }),
};
const ANTHROPIC_VERSION = { "anthropic-version": "2023-06-01" };
const TIMEOUT_MS = 5000;
const OTHER_BASE = "harness config set base_url URL";
const BASE_FORM = "http://host/path or https://host/path, without a password or a query";

const modelList = z.object({
  data: z.array(z.object({ id: z.string(), max_model_len: z.number().int().positive().nullish() })),
});
type Listed = z.infer<typeof modelList>["data"][number];

/** The state of the model that a run would use. Never throws; no key is part of any text. */
export async function modelHealth(request: ModelHealthRequest): Promise<readonly Health[]> {
  try {
    switch (request.provider) {
      case "ollama": {
        const baseUrl = ollamaAddress(request.env, request.baseUrl);
        return await ollamaHealth({ ...request, baseUrl, timeoutMs: TIMEOUT_MS });
      }
      case "openai":
        return await keyedHealth(OPENAI, request);
      case "anthropic":
        return await keyedHealth(ANTHROPIC, request);
      default:
        readScenario(request.model);
        return [healthy("model.server", "plays a scenario file")];
    }
  } catch (thrown) {
    const remedy = thrown instanceof HarnessError ? thrown.remedy : "";
    return [broken("model.server", reasonOf(thrown), remedy)];
  }
}

async function keyedHealth(provider: Keyed, request: ModelHealthRequest): Promise<readonly Health[]> {
  const key = readKey(provider.key, { env: request.env, file: request.keysFile }) ?? "";
  const { base, headers } = reach(provider, request.baseUrl, key);
  const setKey = `export ${provider.variable}=KEY`;
  if (key === "" && base === provider.publicBase)
    return [fail(`${provider.variable} is not set; ${base} needs it`, setKey)];
  const signal = AbortSignal.any([request.signal, AbortSignal.timeout(TIMEOUT_MS)]);
  const answer = await askJson(`${base}${provider.listPath}`, { signal, headers });
  const list = answer.kind === "json" ? modelList.safeParse(answer.value).data?.data : undefined;
  if (list === undefined) return [refusedHealth(provider, base, key === "", answer)];
  const model = list.find(({ id }) => id === request.model);
  const server = healthy("model.server", `${provider.name} API at ${base}`);
  return [server, nameHealth(request.model, model), contextHealth(provider, base, request, model)];
}

/** Where such a provider is asked for its models, and with what. The headers hold the key. */
export function keyedServer(
  provider: KeyName,
  { baseUrl, key }: { readonly baseUrl: string | null; readonly key: string },
): { readonly base: string; readonly list: string; readonly headers: Readonly<Record<string, string>> } {
  const keyed = provider === "openai" ? OPENAI : ANTHROPIC;
  const { base, headers } = reach(keyed, baseUrl, key);
  return { base, list: `${base}${keyed.listPath}`, headers };
}

function reach(provider: Keyed, baseUrl: string | null, key: string) {
  const headers = {
    ...(key === "" ? {} : provider.headers(key)),
    ...(provider === ANTHROPIC ? ANTHROPIC_VERSION : {}),
  };
  return { base: cleanBase(baseUrl ?? provider.publicBase), headers };
}

/** The server's own words are left out: some repeat the key that they refuse. */
function refusedHealth(provider: Keyed, base: string, keyless: boolean, answer: Answer): Health {
  switch (answer.kind) {
    case "json":
      return fail(`${base} does not answer as an ${provider.name} API does`, OTHER_BASE);
    case "foreign":
      return fail(`${base} is no ${provider.name} API: ${answer.reason}`, OTHER_BASE);
    case "unreachable":
      return fail(`${base} is not reached: ${answer.reason}`, OTHER_BASE);
    default:
      if (answer.status === 401 || answer.status === 403) {
        const detail = keyless
          ? `${provider.variable} is not set; ${base} needs it`
          : `${base} refuses the key`;
        return fail(`${detail} (HTTP ${answer.status})`, `export ${provider.variable}=KEY`);
      }
      if (answer.status === 404)
        return fail(`${base} has no list of models (HTTP 404)`, rightBase(provider, base));
      if (answer.status === 429)
        return ailing("model.server", `${base} asks to wait (HTTP 429)`, "harness doctor");
      return fail(`${base} answers HTTP ${answer.status}`, OTHER_BASE);
  }
}

const fail = (detail: string, remedy: string): Health => broken("model.server", detail, remedy);

/** The usual slip: of openai the base ends in /v1, of anthropic it does not. */
function rightBase(provider: Keyed, base: string): string {
  const root = base.replace(/\/v1$/, "");
  const right = provider === OPENAI ? `${root}/v1` : root;
  return right === base ? OTHER_BASE : `harness config set base_url ${right}`;
}

/** Only a warning: some servers take any name, and some list fewer than they have. */
const nameHealth = (model: string, listed: Listed | undefined): Health =>
  listed === undefined
    ? ailing("model.name", `${model} is not in the server's list`, "harness config set chat_model NAME")
    : healthy("model.name", model);

function contextHealth(
  provider: Keyed,
  base: string,
  { maxContext }: ModelHealthRequest,
  listed: Listed | undefined,
): Health {
  const bounds = [maxContext, listed?.max_model_len].filter((bound) => typeof bound === "number");
  const setIt = "harness config set max_context_tokens 32768";
  if (bounds.length > 0) {
    const tokens = Math.min(...bounds);
    if (tokens >= SMALL_CONTEXT) return healthy("model.context", `${grouped(tokens)} tokens`);
    return ailing("model.context", `${grouped(tokens)} tokens; too few for most tasks`, setIt);
  }
  return base === provider.publicBase
    ? healthy("model.context", "as the provider sets it")
    : ailing("model.context", "the server does not tell; without a bound a long prompt may be cut", setIt);
}

function cleanBase(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const plain = url !== undefined && `${url.username}${url.password}${url.search}` === "";
  if (plain && /^https?:$/.test(url.protocol)) return `${url.origin}${url.pathname}`.replace(/\/+$/, "");
  throw new HarnessError(EXIT.usage, `base_url: expected ${BASE_FORM}`, OTHER_BASE);
}
