import { OpenAiWire } from "../../src/models/providers/openai-api.ts";
import {
  type Answered,
  type Asked,
  bytesOf,
  isRefused,
  KEY,
  type Opened,
  type Part,
  type Refused,
  type Reply,
  type Scenario,
} from "../contract/provider-server.ts";
import { EVENTS, type Heard, JSON_TYPE, type Served, startLoopback } from "./loopback.ts";

/** A server with OpenAI's chat API, and the adapter connected to it. */

const HEAD = { id: "chatcmpl-1", object: "chat.completion.chunk", created: 1, model: "contract-model" };

/** One event of a stream. */
export const chunk = (delta: object, finish: string | null = null): string =>
  event({ ...HEAD, choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }] });

export const event = (value: unknown): string => `data: ${JSON.stringify(value)}\n\n`;

export const DONE = "data: [DONE]\n\n";

export const usageChunk = (usage: object): string => event({ ...HEAD, choices: [], usage });

/** A stream that ends well. */
export const chat = (...events: readonly string[]): Served => ({ headers: EVENTS, body: [...events, DONE] });

export const refusedChat = (status: number, error: unknown, headers: object = {}): Served => ({
  status,
  headers: { ...JSON_TYPE, ...headers },
  body: JSON.stringify({ error }),
});

export async function openChat({ replies: [first, ...others] }: Scenario): Promise<Opened> {
  const server = await startLoopback([servedReply(first), ...others.map(servedReply)]);
  if (isRefused(first) && first.refuses === "unreachable") await server.close();
  return {
    wire: new OpenAiWire({ baseUrl: `${server.url}/v1`, key: KEY }),
    asked: () => server.heard.map(seenRequest),
    left: server.left,
    [Symbol.asyncDispose]: () => server.close(),
  };
}

function seenRequest({ text }: Heard): Asked {
  const { tools = [] } = JSON.parse(text) as { tools?: readonly { function: { name: string } }[] };
  return { tools: tools.map((tool) => tool.function.name), body: text };
}

const servedReply = (answered: Answered): Served =>
  isRefused(answered) ? refusal(answered) : reply(answered);

function reply({ parts, ends = "done", stop, usage, slice }: Reply): Served {
  const calls = callsBefore(parts, parts.length);
  const body = [
    chunk({ role: "assistant", content: "" }),
    ...parts.flatMap((part, at) => partEvents(part, callsBefore(parts, at), slice)),
    ...(ends === "done" && !parts.some(({ type }) => type === "error")
      ? [
          chunk({}, FINISH[stop ?? (calls > 0 ? "calls" : "end")]),
          ...(usage === undefined ? [] : [usageChunk(counted(usage))]),
          DONE,
        ]
      : []),
  ];
  return {
    headers: EVENTS,
    body: body.map((piece) => (typeof piece === "string" ? bytesOf(piece) : piece)),
    ends,
    ...(slice === undefined ? {} : { slice }),
  };
}

const callsBefore = (parts: readonly Part[], end: number): number =>
  parts.slice(0, end).filter(({ type }) => type === "call").length;

const FINISH = {
  end: "stop",
  calls: "tool_calls",
  length: "length",
  filtered: "content_filter",
  unknown: "?",
};

const counted = ({ prompt, completion }: NonNullable<Reply["usage"]>): object => ({
  prompt_tokens: prompt,
  completion_tokens: completion,
  total_tokens: prompt + completion,
  prompt_tokens_details: { cached_tokens: 0 },
});

function partEvents(part: Part, index: number, slice: number | undefined): readonly (string | number)[] {
  switch (part.type) {
    case "text":
      return [chunk({ content: part.text })];
    case "thinking":
      return [chunk({ reasoning_content: part.text })];
    case "pause":
      return [part.ms];
    case "error":
      return [event({ error: { message: part.message, type: "server_error", code: 500 } })];
    case "garbage":
      return [part.text];
    case "call": {
      const { name, args, id = `call_${index}` } = part;
      const begin = { index, id, type: "function", function: { name, arguments: "" } };
      return [
        chunk({ tool_calls: [begin] }),
        ...pieces(args, slice).map((piece) =>
          chunk({ tool_calls: [{ index, function: { arguments: piece } }] }),
        ),
      ];
    }
  }
}

/** Splits between UTF-16 units: JSON escapes lone surrogates. */
export function pieces(text: string, size = Math.max(text.length, 1)): readonly string[] {
  return Array.from({ length: Math.ceil(text.length / size) }, (_, at) =>
    text.slice(at * size, (at + 1) * size),
  );
}

function refusal({ refuses, says = "", retryAfter }: Refused): Served {
  const headers = retryAfter === undefined ? {} : { "retry-after": String(retryAfter) };
  switch (refuses) {
    case "unauthorised":
      return refusedChat(401, {
        message: `Incorrect API key provided: ${says}.`,
        type: "invalid_request_error",
        param: null,
        code: "invalid_api_key",
      });
    case "no_model":
      return refusedChat(404, {
        message: `The model \`contract-model\` does not exist or you do not have access to it. ${says}`,
        type: "invalid_request_error",
        param: null,
        code: "model_not_found",
      });
    case "too_long":
      return refusedChat(400, {
        message: `This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens. ${says}`,
        type: "invalid_request_error",
        param: "messages",
        code: "context_length_exceeded",
      });
    case "rate_limited":
      return refusedChat(429, { message: `Rate limit reached. ${says}`, type: "requests" }, headers);
    case "server":
      return refusedChat(500, { message: `The server had an error. ${says}`, type: "server_error" }, headers);
    case "error_in_200":
      return refusedChat(200, { message: says, type: "server_error", code: 500 });
    case "no_schema":
      return refusedChat(400, {
        message: `Invalid schema for response_format 'call_or_answer': this model takes none. ${says}`,
        type: "invalid_request_error",
        param: "response_format",
        code: null,
      });
    case "no_tools":
      return refusedChat(400, {
        message: `"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set ${says}`,
        type: "BadRequestError",
        param: null,
        code: 400,
      });
    case "unreachable":
      return {};
  }
}
