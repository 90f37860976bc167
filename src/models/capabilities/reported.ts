import { z } from "zod";
import { NO_WORD, type Word } from "./believe.ts";

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
export function entryIn(answer: unknown, model: string): unknown {
  return list.safeParse(answer).data?.data.find(({ id }) => id === model);
}

/** null when the answer is no list of models. */
export const idsIn = (answer: unknown): readonly string[] | null =>
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
