import { fittedId, type IdShape, MISTRAL_ID, USUAL_ID } from "../history/fitted-ids.ts";
import type { Fields } from "../http/fields.ts";
import { type Conversation, conversationOf, type Turn } from "../history/turns.ts";
import type { WireRequest } from "../wire.ts";

/** Who answers: what differs is how a limit and thinking are said. `local` is every server that people run themselves. */
export type Dialect = "openai" | "openrouter" | "local";

export function dialectOf(baseUrl: string): Dialect {
  const host = URL.canParse(baseUrl) ? new URL(baseUrl).hostname : "";
  if (host === "api.openai.com" || host.endsWith(".openai.azure.com")) return "openai";
  return host === "openrouter.ai" || host.endsWith(".openrouter.ai") ? "openrouter" : "local";
}

const CLAUDE = /claude/i;
const MISTRAL = /mi[sx]tral|devstral|codestral|ministral|magistral|pixtral/i;

/** The whole body of a chat request. The same request gives the same bytes. */
export function chatBody(request: WireRequest, dialect: Dialect): Fields {
  const { model, messages, tools, maxTokens, temperature, think, format } = request;
  const offered = request.nativeTools ? tools : [];
  return {
    model,
    messages: chatMessages(conversationOf(messages), model, dialect),
    ...(offered.length === 0 ? {} : { tools: offered.map(toolOf) }),
    // llama.cpp's server gives one call a reply unless it is asked for more.
    ...(offered.length > 0 && dialect === "local" ? { parallel_tool_calls: true } : {}),
    stream: true,
    stream_options: { include_usage: true },
    ...(maxTokens === undefined
      ? {}
      : { [dialect === "openai" ? "max_completion_tokens" : "max_tokens"]: maxTokens }),
    ...(temperature === undefined ? {} : { temperature }),
    ...(think === undefined ? {} : thinkingOf(think, dialect)),
    ...(format === undefined
      ? {}
      : { response_format: { type: "json_schema", json_schema: { name: "answer", schema: format } } }),
  };
}

const toolOf = ({ name, description, schema }: WireRequest["tools"][number]): Fields => ({
  type: "function",
  function: { name, description, parameters: schema },
});

/** The last one is what vLLM, SGLang and llama.cpp hand to the model's template. */
function thinkingOf(think: boolean, dialect: Dialect): Fields {
  if (dialect === "openai") return { reasoning_effort: think ? "medium" : "none" };
  if (dialect === "openrouter") return { reasoning: { enabled: think } };
  return { chat_template_kwargs: { enable_thinking: think } };
}

function chatMessages({ system, turns }: Conversation, model: string, dialect: Dialect): readonly Fields[] {
  const claude = CLAUDE.test(model);
  const shape = MISTRAL.test(model) ? MISTRAL_ID : USUAL_ID;
  const marked = claude ? markedTurns(turns) : new Set<Turn>();
  const head = system === "" ? [] : [{ role: "system", content: contentOf(system, claude) }];
  const own = { claude, shape, thoughts: !claude && dialect !== "openai" };
  return [...head, ...turns.flatMap((turn) => turnOf(turn, own, marked.has(turn)))];
}

interface Manner {
  readonly claude: boolean;
  readonly shape: IdShape;
  /** Whether thoughts are given back to models that called in the midst of them. */
  readonly thoughts: boolean;
}

function turnOf(turn: Turn, { claude, shape, thoughts }: Manner, mark: boolean): readonly Fields[] {
  if (turn.role === "user") return [{ role: "user", content: contentOf(turn.text, mark) }];
  if (turn.role === "results")
    return turn.results.map(({ call, text }, index) => ({
      role: "tool",
      tool_call_id: fittedId(call, shape),
      content: contentOf(text, mark && index === turn.results.length - 1),
    }));
  if (turn.calls.length === 0) return [{ role: "assistant", content: turn.text }];
  return [
    {
      role: "assistant",
      // Templates join an absent content to texts and fail; Anthropic refuses an empty one.
      content: turn.text === "" && claude ? null : turn.text,
      ...(thoughts && turn.thinking !== "" ? { reasoning_content: turn.thinking } : {}),
      tool_calls: turn.calls.map(({ id, name, args }) => ({
        id: fittedId(id, shape),
        type: "function",
        function: { name, arguments: JSON.stringify(args) },
      })),
    },
  ];
}

/** With a breakpoint: routers hand it on to Claude, which keeps only what stands before one. */
const contentOf = (text: string, breakpoint: boolean): unknown =>
  breakpoint && text !== "" ? [{ type: "text", text, cache_control: { type: "ephemeral" } }] : text;

/** The last two turns of the user's side: the first of them was the end of the request before. */
function markedTurns(turns: readonly Turn[]): ReadonlySet<Turn> {
  const asking = turns.filter(({ role }, index) => role !== "assistant" && turns[index + 1]?.role !== "user");
  return new Set(asking.slice(-2));
}
