import { z } from "zod";
import {
  warningHealth,
  unhealthy,
  EXIT,
  HarnessError,
  type Health,
  healthy,
  reasonOf,
} from "../core/errors.ts";
import { formatCount } from "../core/wording.ts";
import { NOT_REPORTED, type Reported } from "./capabilities.ts";
import { type HttpAnswer, askJson } from "./http-request.ts";
import { billions, kindOf } from "./model-kinds.ts";
import { type KeyedProvider, PROVIDER_SERVERS, readKey } from "./provider-servers.ts";
import { ollamaAddress } from "./providers/ollama-client.ts";
import { quoted } from "./providers/ollama-server.ts";
import { ollamaHealth, SMALL_CONTEXT } from "./providers/ollama-setup.ts";
import { readScenario } from "./providers/scenario.ts";
import { waitingTimeout } from "../platform/waits.ts";

export interface ModelHealthRequest {
  readonly provider: "ollama" | KeyedProvider | "scripted";
  /** The settings base_url, chat_model and max_context_tokens. */
  readonly baseUrl: string | null;
  readonly model: string;
  readonly maxContext: number | null;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The user's keys.json; it may be missing. */
  readonly keysFile: string;
  readonly signal: AbortSignal;
  /** Bytes of memory of the machine that Ollama runs on; detected if left out. */
  readonly memory?: number | null;
}

/** A provider that is accessed with a key. */
interface Keyed {
  readonly key: KeyedProvider;
  readonly name: string;
  readonly variable: string;
  readonly publicBase: string;
  readonly local: boolean;
  readonly listPath: string;
  readonly headers: (key: string) => Readonly<Record<string, string>>;
}

function keyedOf(key: KeyedProvider): Keyed {
  const { title, variable, base, local } = PROVIDER_SERVERS[key];
  const common = { key, name: title, variable, publicBase: base, local };
  return key === "anthropic"
    ? { ...common, listPath: "/v1/models?limit=1000", headers: (secret) => ({ "x-api-key": secret }) }
    : { ...common, listPath: "/models", headers: (secret) => ({ authorization: `Bearer ${secret}` }) };
}

const ANTHROPIC_VERSION = { "anthropic-version": "2023-06-01" };
const TIMEOUT_MS = 5000;
const OTHER_BASE = "harness config set base_url URL";
const BASE_FORM = "http://host/path or https://host/path, without a password or a query";

const modelList = z.object({
  data: z.array(z.object({ id: z.string(), max_model_len: z.number().int().positive().nullish() })),
});
type ListedModel = z.infer<typeof modelList>["data"][number];

/** The state of the model that a run would use. Never throws; no text contains a key. */
export async function modelHealth(request: ModelHealthRequest): Promise<readonly Health[]> {
  try {
    switch (request.provider) {
      case "ollama": {
        const baseUrl = ollamaAddress(request.env, request.baseUrl);
        return await ollamaHealth({ ...request, baseUrl, timeoutMs: TIMEOUT_MS });
      }
      case "scripted":
        readScenario(request.model);
        return [healthy("model.server", "plays a scenario file")];
      default:
        return await keyedHealth(keyedOf(request.provider), request);
    }
  } catch (thrown) {
    const remedy = thrown instanceof HarnessError ? thrown.remedy : "";
    return [unhealthy("model.server", reasonOf(thrown), remedy)];
  }
}

async function keyedHealth(provider: Keyed, request: ModelHealthRequest): Promise<readonly Health[]> {
  const key = readKey(provider.key, { env: request.env, file: request.keysFile }) ?? "";
  const { base, headers } = reach(provider, request.baseUrl, key);
  const setKey = `export ${provider.variable}=KEY`;
  if (key === "" && needsKey(provider, base))
    return [fail(`${provider.variable} is not set; ${base} needs it`, setKey)];
  const signal = AbortSignal.any([request.signal, waitingTimeout(TIMEOUT_MS)]);
  const answer = await askJson({ url: `${base}${provider.listPath}`, signal, headers });
  const list = answer.kind === "json" ? modelList.safeParse(answer.value).data?.data : undefined;
  if (list === undefined) return [refusedHealth(provider, base, key === "", answer)];
  const model = list.find(({ id }) => id === request.model);
  const server = healthy("model.server", `${provider.name} API at ${base}`);
  return [server, nameHealth(request.model, model, list), contextHealth(provider, base, request, model)];
}

/** The address of a keyed provider's model list, and the request headers, which hold the key. */
export function keyedServer(
  provider: KeyedProvider,
  { baseUrl, key }: { readonly baseUrl: string | null; readonly key: string },
): { readonly base: string; readonly list: string; readonly headers: Readonly<Record<string, string>> } {
  const keyed = keyedOf(provider);
  const { base, headers } = reach(keyed, baseUrl, key);
  return { base, list: `${base}${keyed.listPath}`, headers };
}

const needsKey = (provider: Keyed, base: string): boolean => !provider.local && base === provider.publicBase;

/** Refuses to ask a provider's public address without the key that it needs. */
export function requireKey(provider: KeyedProvider, base: string, key: string): void {
  const keyed = keyedOf(provider);
  if (key !== "" || !needsKey(keyed, base)) return;
  const reason = `${keyed.variable} is not set; ${base} needs it`;
  throw new HarnessError(EXIT.usage, reason, `export ${keyed.variable}=KEY`);
}

function reach(provider: Keyed, baseUrl: string | null, key: string) {
  const headers = {
    ...(key === "" ? {} : provider.headers(key)),
    ...(provider.key === "anthropic" ? ANTHROPIC_VERSION : {}),
  };
  return { base: cleanBase(baseUrl ?? provider.publicBase), headers };
}

/** Omits the server's own words: some servers repeat the key that they refuse. */
function refusedHealth(provider: Keyed, base: string, keyless: boolean, answer: HttpAnswer): Health {
  switch (answer.kind) {
    case "json":
      return fail(`${base} does not answer like the ${provider.name} API`, OTHER_BASE);
    case "foreign":
      return fail(`${base} does not speak the ${provider.name} API: ${answer.reason}`, OTHER_BASE);
    case "unreachable":
      return fail(`${base} cannot be reached: ${answer.reason}`, OTHER_BASE);
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
        return warningHealth("model.server", `${base} asks to wait (HTTP 429)`, "harness doctor");
      return fail(`${base} answers HTTP ${answer.status}`, OTHER_BASE);
  }
}

const fail = (detail: string, remedy: string): Health => unhealthy("model.server", detail, remedy);

/** The usual mistake: most base addresses end in /v1, Anthropic's does not. */
function rightBase(provider: Keyed, base: string): string {
  const root = base.replace(/\/v1$/, "");
  const right = provider.publicBase.endsWith("/v1")
    ? `${root}/v1`
    : provider.key === "anthropic"
      ? root
      : base;
  return right === base ? OTHER_BASE : `harness config set base_url ${right}`;
}

/** Only a warning: some servers accept any name, and some do not list all their models. */
function nameHealth(model: string, listed: ListedModel | undefined, all: readonly ListedModel[]): Health {
  if (listed !== undefined) return healthy("model.name", model);
  const other = all.find(({ id }) => kindOf(id, null) === "chat")?.id;
  const remedy = `harness config set chat_model ${other === undefined ? "NAME" : quoted(other)}`;
  return warningHealth("model.name", `${model} is not in the server's list`, remedy);
}

function contextHealth(
  provider: Keyed,
  base: string,
  { maxContext }: ModelHealthRequest,
  listed: ListedModel | undefined,
): Health {
  const bounds = [maxContext, listed?.max_model_len].filter((bound) => typeof bound === "number");
  const setIt = "harness config set max_context_tokens 32768";
  if (bounds.length > 0) {
    const tokens = Math.min(...bounds);
    if (tokens >= SMALL_CONTEXT) return healthy("model.context", `${formatCount(tokens)} tokens`);
    return warningHealth("model.context", `${formatCount(tokens)} tokens; too few for most tasks`, setIt);
  }
  return needsKey(provider, base)
    ? healthy("model.context", "as the provider sets it")
    : warningHealth(
        "model.context",
        "the server does not report it; without a limit, a long prompt may be cut",
        setIt,
      );
}

function cleanBase(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const plain = url !== undefined && `${url.username}${url.password}${url.search}` === "";
  if (plain && /^https?:$/.test(url.protocol)) return `${url.origin}${url.pathname}`.replace(/\/+$/, "");
  throw new HarnessError(EXIT.usage, `base_url: expected ${BASE_FORM}`, OTHER_BASE);
}

interface ServerQuestion {
  /** Ends in /v1 on most servers. */
  readonly base: string;
  /** Address of the server's list of models. */
  readonly list: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
}

export interface ServerAnswer {
  /** null if the server gave no list. */
  readonly models: readonly string[] | null;
  /** Why there is no list, without any of the server's own words. */
  readonly reason: string;
  readonly wordOn: (model: string) => Reported;
}

/**
 * What an OpenAI-compatible server reports about its models: first from its list, then, if the list gives no window,
 * from LM Studio's own list and llama-server's /props. Never throws; takes at most `timeoutMs` in all.
 */
export async function askServer(question: ServerQuestion): Promise<ServerAnswer> {
  const signal = AbortSignal.any([question.signal, waitingTimeout(question.timeoutMs)]);
  const get = async (url: string): Promise<unknown> => {
    const answer = await askJson({ url, signal, headers: question.headers });
    return answer.kind === "json" ? answer.value : undefined;
  };
  const answer = await askJson({ url: question.list, signal, headers: question.headers });
  if (answer.kind !== "json") return noList(whyNot(answer));
  const models = idsIn(answer.value);
  if (models === null) return noList("it answers with unexpected JSON");
  const reports = models.map((model) => reportedIn(entryIn(answer.value, model)));
  const root = question.base.replace(/\/v1$/, "");
  const silent = root !== question.base && reports.every(({ context }) => context === null);
  const [studio, props] = silent
    ? await Promise.all([get(`${root}/api/v0/models`), get(`${root}/props`)])
    : [undefined, undefined];
  const slot = propsContext(props);
  return {
    models,
    reason: "",
    wordOn: (model) => {
      const own = reportedIn(entryIn(studio, model) ?? entryIn(answer.value, model));
      return { ...own, context: own.context ?? slot };
    },
  };
}

const noList = (reason: string): ServerAnswer => ({ models: null, reason, wordOn: () => NOT_REPORTED });

function whyNot(answer: Exclude<HttpAnswer, { readonly kind: "json" }>): string {
  return answer.kind === "refused" ? `HTTP ${answer.status}` : answer.reason;
}

/** What OpenAI-compatible servers report about a model beyond its id, each in its own fields. */

const tokens = z.number().int().positive().nullish().catch(null);
const names = z.array(z.string()).nullish().catch(null);

const listed = z.object({
  /** vLLM. */
  max_model_len: tokens,
  /** OpenRouter, Together. */
  context_length: tokens,
  /** OpenRouter: the window of the provider that it would choose. */
  top_provider: z.object({ context_length: tokens }).nullish().catch(null),
  supported_parameters: names,
  /** Groq. */
  context_window: tokens,
  /** LM Studio: the loaded window, then the largest one possible; Mistral's own API gives only the latter. */
  loaded_context_length: tokens,
  max_context_length: tokens,
  state: z.string().nullish().catch(null),
  capabilities: z
    .union([z.array(z.string()), z.record(z.string(), z.unknown())])
    .nullish()
    .catch(null),
  /** llama.cpp. The trained window is not a promise: the server may run with less, which /props reports. */
  meta: z.object({ n_ctx: tokens, n_params: tokens }).nullish().catch(null),
});
type ModelEntry = z.infer<typeof listed>;

const idList = z.object({ data: z.array(z.object({ id: z.string() }).loose()) });

/** One model's entry of /v1/models or of LM Studio's /api/v0/models, unparsed. */
function entryIn(answer: unknown, model: string): unknown {
  return idList.safeParse(answer).data?.data.find(({ id }) => id === model);
}

/** null if the answer is not a list of models. */
const idsIn = (answer: unknown): readonly string[] | null =>
  idList.safeParse(answer).data?.data.map(({ id }) => id) ?? null;

export function reportedIn(entry: unknown): Reported {
  const { data } = listed.safeParse(entry);
  if (data === undefined) return NOT_REPORTED;
  return {
    context: contextOf(data),
    tools: toolsOf(data),
    thinking: thinkingOf(data),
    cache: null,
    parameters: billions(data.meta?.n_params),
  };
}

function contextOf(data: ModelEntry): number | null {
  const reported =
    data.max_model_len ??
    data.loaded_context_length ??
    data.top_provider?.context_length ??
    data.context_length ??
    data.context_window ??
    data.meta?.n_ctx;
  if (typeof reported === "number") return reported;
  // LM Studio loads a model on demand with a far smaller window than the model allows.
  return data.state === null || data.state === undefined ? (data.max_context_length ?? null) : null;
}

/** A list of abilities without this one means no; a missing list means unknown. */
function toolsOf({ supported_parameters, capabilities }: ModelEntry): boolean | null {
  if (supported_parameters) return supported_parameters.includes("tools");
  if (Array.isArray(capabilities)) return capabilities.includes("tool_use");
  const calling = capabilities?.["function_calling"];
  return typeof calling === "boolean" ? calling : null;
}

const thinkingOf = ({ supported_parameters }: ModelEntry): boolean | null =>
  supported_parameters ? supported_parameters.includes("reasoning") : null;

const props = z.object({
  default_generation_settings: z.object({ n_ctx: tokens }).nullish().catch(null),
  n_ctx: tokens,
});

/** llama-server's /props: the window of one slot, which is the window of a request. */
export function propsContext(answer: unknown): number | null {
  const { data } = props.safeParse(answer);
  return data?.default_generation_settings?.n_ctx ?? data?.n_ctx ?? null;
}
