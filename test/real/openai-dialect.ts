import { type Body, MODEL, type ReplyPiece, type ReplyRequest, type Route, type Served } from "./served.ts";
import type { FoundCall } from "./tagged-calls.ts";

/**
 * OpenAI's chat API as self-hosted servers speak it: the server sets the window, and a prompt that is too long is an
 * error.
 */

const WINDOW = 8192;

export const openAiRoutes: Readonly<Record<string, Route>> = {
  "GET /v1/models": (_body, served) => Promise.resolve(served.json(models(served))),
  "POST /v1/chat/completions": complete,
  "POST /v1/embeddings": embed,
};

const models = ({ engine }: Served): object => ({
  object: "list",
  data: [
    {
      id: MODEL,
      object: "model",
      max_model_len: WINDOW,
      meta: { n_ctx: WINDOW, n_params: engine.parameters },
    },
  ],
});

async function complete(body: Body, served: Served): Promise<void> {
  await served.alone(async () => {
    const said = served.reply(askedIn(body));
    const first = await said.next();
    if (served.signal.aborted || first.done === true) return;
    if (body["stream"] !== true) return wholeReply(served, first.value, said);
    served.response.writeHead(200, { "content-type": "text/event-stream" });
    const chunks = new Chunks();
    const send = (piece: ReplyPiece): void => {
      for (const chunk of chunks.of(piece)) served.response.write(`data: ${JSON.stringify(chunk)}\n\n`);
    };
    send(first.value);
    for await (const piece of said) send(piece);
    served.response.end("data: [DONE]\n\n");
  });
}

/** The events of one streamed reply. */
class Chunks {
  #calls = 0;

  *of(piece: ReplyPiece): Generator<object> {
    if (piece.type === "text") yield chunk({ delta: { content: piece.text } });
    else if (piece.type === "call") {
      yield chunk({ delta: { tool_calls: [callOf(piece.call, this.#calls)] } });
      this.#calls += 1;
    } else {
      yield chunk({ delta: {}, finish_reason: this.#calls > 0 ? "tool_calls" : piece.reason });
      const { prompt, written } = piece.counts;
      yield { ...chunk(null), usage: usage(prompt, written) };
    }
  }
}

const chunk = (choice: object | null): object => ({
  id: "chatcmpl-0",
  object: "chat.completion.chunk",
  created: Math.floor(Date.now() / 1000),
  model: MODEL,
  choices: choice === null ? [] : [{ index: 0, ...choice }],
});

const usage = (prompt: number, completion: number): object => ({
  prompt_tokens: prompt,
  completion_tokens: completion,
  total_tokens: prompt + completion,
});

const callOf = ({ name, args }: FoundCall, index: number): object => ({
  index,
  id: `call_${index}`,
  type: "function",
  function: { name, arguments: JSON.stringify(args) },
});

async function wholeReply(served: Served, first: ReplyPiece, rest: AsyncIterable<ReplyPiece>): Promise<void> {
  const pieces = [first];
  for await (const piece of rest) pieces.push(piece);
  const last = pieces.at(-1);
  if (last?.type !== "end") return;
  const content = pieces.map((piece) => (piece.type === "text" ? piece.text : "")).join("");
  const calls = pieces.flatMap((piece) => (piece.type === "call" ? [piece.call] : [])).map(callOf);
  const message = { role: "assistant", content, ...(calls.length > 0 ? { tool_calls: calls } : {}) };
  served.json({
    ...chunk({ message, finish_reason: calls.length > 0 ? "tool_calls" : last.reason }),
    object: "chat.completion",
    usage: usage(last.counts.prompt, last.counts.written),
  });
}

const list = (value: unknown): readonly object[] =>
  Array.isArray(value) ? (value as readonly object[]) : [];

function askedIn(body: Body): ReplyRequest {
  const most = body["max_completion_tokens"] ?? body["max_tokens"];
  return {
    messages: list(body["messages"]).map(asTemplate),
    tools: body["tool_choice"] === "none" ? [] : list(body["tools"]),
    window: WINDOW,
    most: typeof most === "number" ? most : Number.POSITIVE_INFINITY,
    temperature: Number(body["temperature"] ?? 1),
    seed: body["seed"] === undefined ? undefined : Number(body["seed"]),
    format: formatIn(body["response_format"]),
  };
}

function formatIn(value: unknown): unknown {
  const { type, json_schema: named } = (value ?? {}) as {
    readonly type?: unknown;
    readonly json_schema?: Body;
  };
  if (type === "json_object") return "json";
  return type === "json_schema" ? named?.["schema"] : undefined;
}

/** Templates expect arguments as values and texts as text. */
function asTemplate(message: object): object {
  const { content, tool_calls: calls } = message as {
    readonly content?: unknown;
    readonly tool_calls?: unknown;
  };
  const text = Array.isArray(content)
    ? content.map((part: { readonly text?: string }) => part.text ?? "").join("")
    : (content ?? "");
  if (!Array.isArray(calls)) return { ...message, content: text };
  const parsed = calls.map((call: { readonly function: { readonly arguments: string } }) => ({
    ...call,
    function: { ...call.function, arguments: JSON.parse(call.function.arguments) as unknown },
  }));
  return { ...message, content: text, tool_calls: parsed };
}

async function embed({ input }: Body, served: Served): Promise<void> {
  const texts = (Array.isArray(input) ? input : [input]).map(String);
  const vectors = await served.alone(() => served.engine.vectors(texts, false));
  served.json({
    object: "list",
    model: MODEL,
    data: vectors.map((embedding, index) => ({ index, embedding })),
  });
}
