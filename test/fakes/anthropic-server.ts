import { AnthropicWire } from "../../src/models/providers/anthropic-api.ts";
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
import { pieces } from "./openai-server.ts";

/** A server with Anthropic's Messages API, and the adapter connected to it. */

export const event = (value: { readonly type: string }): string =>
  `event: ${value.type}\ndata: ${JSON.stringify(value)}\n\n`;

export const start = (usage?: object): string =>
  event({
    type: "message_start",
    message: {
      id: "msg_1",
      type: "message",
      role: "assistant",
      model: "contract-model",
      content: [],
      stop_reason: null,
      stop_sequence: null,
      ...(usage === undefined ? {} : { usage }),
    },
  } as { type: string });

export const block = (index: number, content: object, ...deltas: readonly object[]): readonly string[] => [
  event({ type: "content_block_start", index, content_block: content } as { type: string }),
  ...deltas.map((delta) => event({ type: "content_block_delta", index, delta } as { type: string })),
  event({ type: "content_block_stop", index } as { type: string }),
];

export const textBlock = (index: number, ...texts: readonly string[]): readonly string[] =>
  block(index, { type: "text", text: "" }, ...texts.map((text) => ({ type: "text_delta", text })));

export const end = (stop: string, usage?: object): readonly string[] => [
  event({
    type: "message_delta",
    delta: { stop_reason: stop, stop_sequence: null },
    ...(usage === undefined ? {} : { usage }),
  } as { type: string }),
  event({ type: "message_stop" }),
];

export const messages = (...events: readonly string[]): Served => ({ headers: EVENTS, body: events });

export const refusedMessages = (
  status: number,
  type: string,
  message: string,
  headers: object = {},
): Served => ({
  status,
  headers: { ...JSON_TYPE, ...headers },
  body: JSON.stringify({ type: "error", error: { type, message }, request_id: "req_1" }),
});

export async function openMessages({ replies: [first, ...others] }: Scenario): Promise<Opened> {
  const server = await startLoopback([servedReply(first), ...others.map(servedReply)]);
  if (isRefused(first) && first.refuses === "unreachable") await server.close();
  return {
    wire: new AnthropicWire({ baseUrl: server.url, key: KEY }),
    asked: () => server.heard.map(seenRequest),
    left: server.left,
    [Symbol.asyncDispose]: () => server.close(),
  };
}

function seenRequest({ text }: Heard): Asked {
  const { tools = [] } = JSON.parse(text) as { tools?: readonly { name: string }[] };
  return { tools: tools.map(({ name }) => name), body: text };
}

const servedReply = (answered: Answered): Served =>
  isRefused(answered) ? refusal(answered) : reply(answered);

const STOP = { end: "end_turn", calls: "tool_use", length: "max_tokens", filtered: "refusal", unknown: "?" };

function reply({ parts, ends = "done", stop, usage, slice }: Reply): Served {
  const called = parts.some(({ type }) => type === "call");
  const body = [
    start(usage === undefined ? undefined : { input_tokens: usage.prompt, output_tokens: 1 }),
    event({ type: "ping" }),
    ...parts.flatMap((part, index) => partEvents(part, index, slice)),
    ...(ends === "done" && !parts.some(({ type }) => type === "error")
      ? end(
          STOP[stop ?? (called ? "calls" : "end")],
          usage === undefined ? undefined : { output_tokens: usage.completion },
        )
      : []),
  ];
  // Only content repeats endlessly, not the end of the reply.
  const said = ends === "endless" ? body.slice(0, -1) : body;
  return {
    headers: EVENTS,
    body: said.map((piece) => (typeof piece === "string" ? bytesOf(piece) : piece)),
    ends,
    ...(slice === undefined ? {} : { slice }),
  };
}

function partEvents(part: Part, index: number, slice: number | undefined): readonly (string | number)[] {
  switch (part.type) {
    case "text":
      return textBlock(index, part.text);
    case "thinking":
      return block(
        index,
        { type: "thinking", thinking: "", signature: "" },
        { type: "signature_delta", signature: "c2ln" },
        { type: "thinking_delta", thinking: part.text },
      );
    case "pause":
      return [part.ms];
    case "error":
      return [
        event({ type: "error", error: { type: "api_error", message: part.message } } as { type: string }),
      ];
    case "garbage":
      return [part.text];
    case "call": {
      const { name, args, id = `toolu_${index}` } = part;
      return block(
        index,
        { type: "tool_use", id, name, input: {} },
        ...pieces(args, slice).map((piece) => ({ type: "input_json_delta", partial_json: piece })),
      );
    }
  }
}

function refusal({ refuses, says = "", retryAfter }: Refused): Served {
  const headers = retryAfter === undefined ? {} : { "retry-after": String(retryAfter) };
  switch (refuses) {
    case "unauthorised":
      return refusedMessages(401, "authentication_error", `invalid x-api-key ${says}`);
    case "no_model":
      return refusedMessages(404, "not_found_error", "model: contract-model");
    case "too_long":
      return refusedMessages(400, "invalid_request_error", "prompt is too long: 9000 tokens > 8192 maximum");
    case "rate_limited":
      return refusedMessages(
        429,
        "rate_limit_error",
        `This request would exceed your rate limit. ${says}`,
        headers,
      );
    case "server":
      return refusedMessages(500, "api_error", `Internal server error ${says}`, headers);
    case "error_in_200":
      return refusedMessages(200, "api_error", says);
    case "no_schema":
    case "no_tools":
      return refusedMessages(
        400,
        "invalid_request_error",
        `tools: this model does not support tools ${says}`,
      );
    case "unreachable":
      return {};
  }
}
