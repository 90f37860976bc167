import { z } from "zod";
import { type Answer, askJson } from "../ollama/ollama-http.ts";
import { NO_WORD, type Word } from "./believed-capabilities.ts";

interface ServerQuestion {
  /** Ends in /v1 on most servers. */
  readonly base: string;
  /** Where its list of models is. */
  readonly list: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
}

export interface ServerAnswer {
  /** null when the server gave no list. */
  readonly models: readonly string[] | null;
  /** Why, in words that repeat nothing of the server's own. */
  readonly reason: string;
  readonly wordOn: (model: string) => Word;
}

/**
 * What an OpenAI-compatible server tells of its models. Its list first; LM Studio's own list and llama-server's /props
 * are asked for only where the list says nothing of a window. Never throws; all within `timeoutMs`.
 */
export async function askServer(question: ServerQuestion): Promise<ServerAnswer> {
  const signal = AbortSignal.any([question.signal, AbortSignal.timeout(question.timeoutMs)]);
  const get = async (url: string): Promise<unknown> => {
    const answer = await askJson(url, { signal, headers: question.headers });
    return answer.kind === "json" ? answer.value : undefined;
  };
  const answer = await askJson(question.list, { signal, headers: question.headers });
  if (answer.kind !== "json") return noList(whyNot(answer));
  const models = idsIn(answer.value);
  if (models === null) return noList("it answers with JSON of another kind");
  const told = models.map((model) => wordOf(entryIn(answer.value, model)));
  const root = question.base.replace(/\/v1$/, "");
  const silent = root !== question.base && told.every(({ context }) => context === null);
  const [studio, props] = silent
    ? await Promise.all([get(`${root}/api/v0/models`), get(`${root}/props`)])
    : [undefined, undefined];
  const slot = propsContext(props);
  return {
    models,
    reason: "",
    wordOn: (model) => {
      const own = wordOf(entryIn(studio, model) ?? entryIn(answer.value, model));
      return { ...own, context: own.context ?? slot };
    },
  };
}

const noList = (reason: string): ServerAnswer => ({ models: null, reason, wordOn: () => NO_WORD });

function whyNot(answer: Exclude<Answer, { readonly kind: "json" }>): string {
  return answer.kind === "refused" ? `HTTP ${answer.status}` : answer.reason;
}

/** What OpenAI-compatible servers tell of a model beyond its id, each in fields of its own. */

const tokens = z.number().int().positive().nullish().catch(null);
const words = z.array(z.string()).nullish().catch(null);

const listed = z.object({
  /** vLLM. */
  max_model_len: tokens,
  /** OpenRouter, Together. */
  context_length: tokens,
  /** OpenRouter: what the provider that it would choose takes. */
  top_provider: z.object({ context_length: tokens }).nullish().catch(null),
  supported_parameters: words,
  /** Groq. */
  context_window: tokens,
  /** LM Studio, with what the model could do beside it; Mistral's own API has only that. */
  loaded_context_length: tokens,
  max_context_length: tokens,
  state: z.string().nullish().catch(null),
  capabilities: z
    .union([z.array(z.string()), z.record(z.string(), z.unknown())])
    .nullish()
    .catch(null),
  /** llama.cpp. What it was trained for is no promise: the server may run with less, and /props tells. */
  meta: z.object({ n_ctx: tokens }).nullish().catch(null),
});
type Listed = z.infer<typeof listed>;

const list = z.object({ data: z.array(z.object({ id: z.string() }).loose()) });

/** One model's entry of /v1/models or of LM Studio's /api/v0/models, in the server's words. */
function entryIn(answer: unknown, model: string): unknown {
  return list.safeParse(answer).data?.data.find(({ id }) => id === model);
}

/** null when the answer is no list of models. */
const idsIn = (answer: unknown): readonly string[] | null =>
  list.safeParse(answer).data?.data.map(({ id }) => id) ?? null;

export function wordOf(entry: unknown): Word {
  const { data } = listed.safeParse(entry);
  if (data === undefined) return NO_WORD;
  return { context: contextOf(data), tools: toolsOf(data), thinking: thinkingOf(data), cache: null };
}

function contextOf(data: Listed): number | null {
  const told =
    data.max_model_len ??
    data.loaded_context_length ??
    data.top_provider?.context_length ??
    data.context_length ??
    data.context_window ??
    data.meta?.n_ctx;
  if (typeof told === "number") return told;
  // LM Studio loads a model on demand with far less than it could have.
  return data.state === null || data.state === undefined ? (data.max_context_length ?? null) : null;
}

/** A list that names other abilities and not this one says no; no list says nothing. */
function toolsOf({ supported_parameters, capabilities }: Listed): boolean | null {
  if (supported_parameters) return supported_parameters.includes("tools");
  if (Array.isArray(capabilities)) return capabilities.includes("tool_use");
  const calling = capabilities?.["function_calling"];
  return typeof calling === "boolean" ? calling : null;
}

const thinkingOf = ({ supported_parameters }: Listed): boolean | null =>
  supported_parameters ? supported_parameters.includes("reasoning") : null;

const props = z.object({
  default_generation_settings: z.object({ n_ctx: tokens }).nullish().catch(null),
  n_ctx: tokens,
});

/** llama-server's /props: the window of one slot, which is what a request gets. */
export function propsContext(answer: unknown): number | null {
  const { data } = props.safeParse(answer);
  return data?.default_generation_settings?.n_ctx ?? data?.n_ctx ?? null;
}
