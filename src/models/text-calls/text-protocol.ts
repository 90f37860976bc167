/** Calls written as text: how tools, calls and results are described to a model, and what is read of its replies. */

import type { MalformedCall, Message, ModelRequest, ToolCall, ToolOffer } from "../../core/model-provider.ts";

/**
 * Tools for a model or server without native tools: the system prompt describes the tools, and calls and results become
 * text, in the form that most models have met in training. The same conversation always gives the same bytes, and a
 * longer one begins with those of the shorter, so the server's cached prefix stays valid.
 */
export function inText(request: ModelRequest): ModelRequest {
  if (request.tools.length === 0 && !request.messages.some(isOfTools)) return request;
  const names = new Map<string, string>();
  const messages: Message[] = [];
  for (const message of withTools(request)) {
    const last = messages.at(-1);
    const converted = messageInText(message, names);
    if (message.role === "tool" && last?.role === "user")
      messages[messages.length - 1] = { role: "user", text: `${last.text}\n${converted.text}` };
    else messages.push(converted);
  }
  return { ...request, messages, tools: [] };
}

const isOfTools = (message: Message): boolean =>
  message.role === "tool" || (message.role === "assistant" && message.calls.length > 0);

/** A call in the form that the prompt asks for. */
export const writtenCall = ({ name, args }: Pick<ToolCall, "name" | "args">): string =>
  `<tool_call>\n${JSON.stringify({ name, arguments: args })}\n</tool_call>`;

function withTools({ messages, tools }: ModelRequest): readonly Message[] {
  if (tools.length === 0) return messages;
  const [first, ...others] = messages;
  const text = describe(tools);
  if (first?.role !== "system") return [{ role: "system", text }, ...messages];
  // Placed before the parts that differ between sessions, so that the server can reuse its cached prefix.
  const { standing = first.text.length } = first;
  const parts = [first.text.slice(0, standing), text, first.text.slice(standing).trimStart()];
  return [{ role: "system", text: parts.filter((part) => part !== "").join("\n\n") }, ...others];
}

function describe(tools: readonly ToolOffer[]): string {
  const lines = tools.map(({ name, description, schema }) =>
    JSON.stringify({ name, description, parameters: schema }),
  );
  return [
    "# Tools",
    "",
    "You can call these tools. Each line has a name, what the tool does, and the JSON schema of its arguments.",
    "<tools>",
    ...lines,
    "</tools>",
    "",
    "To call a tool, end your reply with a block of exactly this form, one block for each call:",
    writtenCall({ name: "the tool's name", args: { "an argument's name": "its value" } }),
    "The results come in the next message, inside of <tool_response>. Never write that block yourself.",
  ].join("\n");
}

/** The message without roles and fields for tools; `names` records the tool name of each call's id. */
function messageInText(message: Message, names: Map<string, string>): Message {
  if (message.role === "tool")
    return { role: "user", text: toolResponse(names.get(message.call) ?? "tool", message.text) };
  if (message.role !== "assistant" || message.calls.length === 0) return message;
  for (const { id, name } of message.calls) names.set(id, name);
  const parts = [message.text.trimEnd(), ...message.calls.map(writtenCall)];
  return { ...message, text: parts.filter((part) => part !== "").join("\n"), calls: [] };
}

/** The output of a tool cannot close its own block. */
const toolResponse = (name: string, text: string): string =>
  `<tool_response name=${JSON.stringify(name)}>\n${text.replaceAll(/<(?=\/?tool_response)/gi, "<\\")}\n</tool_response>`;

export type WrittenCall = Omit<ToolCall, "id">;

/** Its name is as written; empty if the name cannot be told. */
export type WrittenMalformed = Omit<MalformedCall, "id">;

/** Text that looks like a call but may not be run: the reply stays text, and the model is told. */
export type WrittenMiss = Required<WrittenMalformed>;

/** The id is the server's, if it gave one. */
type WithId<Call> = Call & { readonly id?: string };

export type TextCall = WithId<WrittenCall>;

export interface ReadCalls {
  readonly calls: readonly TextCall[];
  readonly malformed: readonly WithId<WrittenMalformed>[];
}

/** Searches the content of one reply for calls written as text. */
export interface TextCallReader {
  /** The prose that may be shown by now, possibly empty. */
  push(chunk: string): string;
  /** `prose` is all of the prose. It begins with the text from `push`, unless that turned out to be a thought. */
  end(): ReadCalls & {
    readonly prose: string;
    /** Text shaped like a call that stays text: it counts only if the reply contains no other call. */
    readonly missed?: ReadCalls["malformed"];
  };
}

export type TextCallReaderFor = (tools: readonly ToolOffer[]) => TextCallReader;

/** Content that is not searched: it has to fit a format, so calls inside it are data. */
export const plainText: TextCallReaderFor = () => {
  let prose = "";
  return {
    push: (chunk) => {
      prose += chunk;
      return chunk;
    },
    end: () => ({ calls: [], malformed: [], prose }),
  };
};

/** The models that accept no tools; a caller may keep this beyond one run. */
export interface Fallbacks {
  has(model: string): boolean;
  add(model: string, reason: string): void;
}

export class RememberedFallbacks implements Fallbacks {
  readonly #models = new Map<string, string>();

  has(model: string): boolean {
    return this.#models.has(model);
  }

  add(model: string, reason: string): void {
    this.#models.set(model, reason);
  }
}

/** An offered tool: a name, or a name with the schema that types its arguments. */
export type OfferedTool =
  | string
  | {
      readonly name: string;
      readonly parameters?: unknown;
      readonly schema?: unknown;
      /** Some APIs wrap the tool in this. */
      readonly function?: { readonly name?: unknown; readonly parameters?: unknown };
    };

export interface TextReading {
  readonly calls: readonly WrittenCall[];
  readonly malformed: readonly WrittenMalformed[];
  readonly missed: readonly WrittenMiss[];
  /** The text for the user: no calls, no thinking, no tokens. */
  readonly prose: string;
}

/** A call as read from one notation, before names and types are checked. */
export interface NotationCall {
  readonly name: string;
  readonly args: unknown;
  /** Reading it required inventing a quote, a bracket, a tag or an escape. */
  readonly repaired: boolean;
  /** Why the call can never be run. */
  readonly broken?: string;
}

/** What is at a place: calls, text up to `end`, or something that the end of the input cuts off. */
export type NotationResult =
  | {
      readonly kind: "calls";
      readonly found: readonly NotationCall[];
      readonly end: number;
      readonly cut: boolean;
    }
  | { readonly kind: "text"; readonly end: number }
  | { readonly kind: "more" };

export const CUT = "the call was cut off; send it again, whole";
export const GARBLED = "this cannot be read without guessing; send the call again as valid JSON";
