import type { Message } from "../../core/messages.ts";
import type { WireRequest } from "../wire.ts";
import type { ModelInForce } from "./session.ts";

/** The body of one /api/chat request. */
export interface ChatBody {
  readonly model: string;
  readonly messages: readonly object[];
  readonly tools?: readonly object[];
  readonly format?: object;
  readonly think?: boolean | "low";
  readonly stream: true;
  readonly keep_alive: string;
  readonly truncate: false;
  readonly shift: false;
  readonly options: Readonly<Record<string, number>>;
}

/** Longer than the server's own five minutes: a command in the box may take them all. */
const KEEP_ALIVE = "30m";

export function chatBody(request: WireRequest, facts: ModelInForce): ChatBody {
  const { model, messages, maxTokens, temperature } = request;
  const think = thinkFor(request, facts.thinks);
  return {
    model,
    messages: asOllama(messages),
    ...(sendsTools(request) ? { tools: request.tools.map(asTool) } : {}),
    ...(request.format === undefined || request.tools.length > 0 ? {} : { format: request.format }),
    ...(think === undefined ? {} : { think }),
    stream: true,
    keep_alive: KEEP_ALIVE,
    // Without both a prompt that is too long is cut without a word. A changed `shift` loads the model again.
    truncate: false,
    shift: false,
    options: {
      num_ctx: facts.window.tokens,
      ...(maxTokens === undefined ? {} : { num_predict: maxTokens }),
      ...(temperature === undefined ? {} : { temperature }),
    },
  };
}

/** What of the request is not part of the body, for the user. */
export function leftOut(request: WireRequest, facts: ModelInForce): readonly string[] {
  const notes: string[] = [];
  if (request.format !== undefined && request.tools.length > 0)
    notes.push("the form of the answer was not asked for: with it no tool would be called");
  if (request.think === true && facts.thinks === false)
    notes.push(`${request.model} does not think, so it was not asked to`);
  return notes;
}

const sendsTools = ({ nativeTools, tools }: WireRequest): boolean => nativeTools && tools.length > 0;

/** Said outright wherever the model can think: what a server does by itself differs from version to version. */
function thinkFor({ model, think }: WireRequest, thinks: boolean | null): boolean | "low" | undefined {
  if (thinks === false) return undefined;
  const wanted = think ?? (thinks === true ? true : undefined);
  // It cannot be switched off there, only kept short.
  return wanted === false && /(?:^|\/)gpt-oss/i.test(model) ? "low" : wanted;
}

const asTool = ({ name, description, schema }: WireRequest["tools"][number]): object => ({
  type: "function",
  function: { name, description, parameters: schema },
});

/** Templates name the tool of a result, so each result gets the name that its call had. */
function asOllama(messages: readonly Message[]): readonly object[] {
  const names = new Map<string, string>();
  return messages.map((message) => {
    if (message.role === "tool") {
      const name = names.get(message.call);
      return {
        role: "tool",
        content: message.text,
        ...(name === undefined ? {} : { tool_name: name }),
        tool_call_id: message.call,
      };
    }
    if (message.role !== "assistant") return { role: message.role, content: message.text };
    for (const { id, name } of message.calls) names.set(id, name);
    return {
      role: "assistant",
      content: message.text,
      ...(message.thinking === undefined ? {} : { thinking: message.thinking }),
      ...(message.calls.length === 0 ? {} : { tool_calls: message.calls.map(asCall) }),
    };
  });
}

const asCall = ({ id, name, args }: { id: string; name: string; args: object }, index: number): object => ({
  id,
  function: { index, name, arguments: args },
});
