import type { ToolCall } from "../../core/messages.ts";
import { fittedId, USUAL_ID } from "../history/fitted-ids.ts";
import type { Fields } from "../http/fields.ts";
import { conversationOf, type Turn } from "../history/turns.ts";
import type { WireRequest } from "../wire.ts";

/** A reply block for block, signed thoughts and all; undefined when it is not known so. */
export type ReplyOf = (text: string, calls: readonly ToolCall[]) => readonly Fields[] | undefined;

/** The API has no limit of its own; what the model cannot do is said in the refusal, and asked again with less. */
const MAX_TOKENS = 32_000;
const LEAST_THOUGHT = 1024;
/** They take a budget for thinking, and no choice of their own. */
const BUDGETED = /claude-(?:3-7|sonnet-4(?:-5)?(?:-2\d{7})?$|opus-4(?:-[015])?(?:-2\d{7})?$|haiku-4-5)/;
const BREAKPOINT = { cache_control: { type: "ephemeral" } } as const;

/** The whole body of a request. The same request gives the same bytes. */
export function messagesBody(request: WireRequest, replyOf: ReplyOf): Fields {
  const { model, messages, maxTokens = MAX_TOKENS } = request;
  const tools = request.nativeTools ? request.tools : [];
  const { system, turns } = conversationOf(messages);
  return {
    model,
    max_tokens: maxTokens,
    stream: true,
    ...(system === "" ? {} : { system: [{ type: "text", text: system, ...BREAKPOINT }] }),
    ...(tools.length === 0 ? {} : { tools: tools.map(toolOf) }),
    messages: marked(blocksOf(turns, replyOf)),
    ...manner(request, thinkingOf(request, maxTokens, isKnown(turns, replyOf))),
  };
}

/** A model that thinks takes no temperature. */
function manner({ temperature, format }: WireRequest, thinking: Fields | undefined): Fields {
  const thinks = thinking !== undefined && thinking["type"] !== "disabled";
  return {
    ...(temperature === undefined || thinks ? {} : { temperature }),
    ...(thinking === undefined ? {} : { thinking }),
    ...(format === undefined ? {} : { output_config: { format: { type: "json_schema", schema: format } } }),
  };
}

/** The last one closes the prefix of all tools. */
function toolOf(
  { name, description, schema }: WireRequest["tools"][number],
  index: number,
  all: WireRequest["tools"],
): Fields {
  const tool = { name, description, input_schema: schema };
  return index === all.length - 1 ? { ...tool, ...BREAKPOINT } : tool;
}

/** With a budget, a reply that is under way with calls has to begin with its thoughts; unknown, none can be had. */
function thinkingOf({ think, model }: WireRequest, maxTokens: number, known: boolean): Fields | undefined {
  if (think === undefined) return undefined;
  if (!think) return { type: "disabled" };
  if (!BUDGETED.test(model)) return { type: "adaptive", display: "summarized" };
  const budget = Math.min(16_000, Math.floor(maxTokens / 2));
  return known && budget >= LEAST_THOUGHT ? { type: "enabled", budget_tokens: budget } : undefined;
}

function isKnown(turns: readonly Turn[], replyOf: ReplyOf): boolean {
  const [called, last] = turns.slice(-2);
  if (last?.role !== "results" || called?.role !== "assistant") return true;
  return replyOf(called.text, called.calls) !== undefined;
}

interface Said {
  readonly role: "user" | "assistant";
  readonly content: readonly Fields[];
}

/** Results and what the user says after them are one message: roles take turns. */
function blocksOf(turns: readonly Turn[], replyOf: ReplyOf): readonly Said[] {
  const said: Said[] = [];
  for (const turn of turns) {
    const role = turn.role === "assistant" ? "assistant" : "user";
    const content = contentOf(turn, replyOf);
    const last = said.at(-1);
    if (last?.role === role) said.splice(-1, 1, { role, content: [...last.content, ...content] });
    else said.push({ role, content });
  }
  const opens = said[0]?.role === "assistant";
  return opens ? [{ role: "user", content: [{ type: "text", text: "Go on." }] }, ...said] : said;
}

function contentOf(turn: Turn, replyOf: ReplyOf): readonly Fields[] {
  if (turn.role === "user") return [{ type: "text", text: turn.text }];
  if (turn.role === "results")
    return turn.results.map(({ call, text }) => ({
      type: "tool_result",
      tool_use_id: fittedId(call, USUAL_ID),
      // A text of nothing but space is refused.
      ...(text.trim() === "" ? {} : { content: text }),
    }));
  return replyOf(turn.text, turn.calls) ?? rebuilt(turn);
}

const rebuilt = ({ text, calls }: Extract<Turn, { readonly role: "assistant" }>): readonly Fields[] => [
  ...(text.trim() === "" ? [] : [{ type: "text", text }]),
  ...calls.map(({ id, name, args }) => ({
    type: "tool_use",
    id: fittedId(id, USUAL_ID),
    name,
    input: args,
  })),
];

/** The ends of the last two messages of the user: the first of them was the end of the request before. */
function marked(said: readonly Said[]): readonly Fields[] {
  const places = said.flatMap(({ role }, index) => (role === "user" ? [index] : []));
  const ends = new Set(places.slice(-2));
  return said.map(({ role, content }, index) => ({
    role,
    content: ends.has(index)
      ? content.map((block, at) => (at === content.length - 1 ? { ...block, ...BREAKPOINT } : block))
      : content,
  }));
}
