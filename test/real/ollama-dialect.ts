import {
  type Body,
  MODEL,
  Refusal,
  type ReplyPiece,
  type ReplyRequest,
  type Route,
  type Served,
} from "./served.ts";
import type { Counts } from "./llama-engine.ts";

/** The part of Ollama's API that a client uses for one model and for replies. */

const NS_PER_MS = 1e6;
/** Ollama's default window on a machine without a large GPU. */
const WINDOW = 4096;

const summary = { name: MODEL, model: MODEL, size: 1, digest: "0".repeat(64), details: { format: "gguf" } };

export const ollamaRoutes: Readonly<Record<string, Route>> = {
  // Builds from source have no version number and count as new.
  "GET /api/version": (_body, served) => Promise.resolve(served.json({ version: "0.0.0" })),
  "GET /api/tags": (_body, served) => Promise.resolve(served.json({ models: [summary] })),
  "GET /api/ps": (_body, served) => Promise.resolve(served.json({ models: running(served) })),
  "POST /api/show": (_body, served) => Promise.resolve(served.json(shown(served))),
  "POST /api/chat": chat,
  "POST /api/generate": unload,
  "POST /api/embed": embed,
};

const running = ({ engine }: Served): readonly object[] =>
  engine.window === null ? [] : [{ ...summary, context_length: engine.window }];

const shown = ({ engine }: Served): object => ({
  details: summary.details,
  model_info: {
    "general.architecture": engine.architecture,
    "general.parameter_count": engine.parameters,
    [`${engine.architecture}.context_length`]: engine.trained,
  },
  capabilities: ["completion", ...(engine.callsInTags ? ["tools"] : [])],
});

/** Without a prompt this request loads or unloads a model; nothing else of it is supported here. */
async function unload({ keep_alive, prompt }: Body, served: Served): Promise<void> {
  if (prompt !== undefined && prompt !== "") throw new Refusal(501, "generate makes no text here");
  if (keep_alive !== 0) throw new Refusal(501, "only keep_alive 0 is known here");
  await served.alone(() => served.engine.unload());
  served.json({ model: MODEL, response: "", done: true, done_reason: "unload" });
}

async function chat(body: Body, served: Served): Promise<void> {
  if (body["think"] === true) throw new Refusal(400, `"${MODEL}" does not support thinking`);
  if (list(body["tools"]).length > 0 && !served.engine.callsInTags)
    throw new Refusal(400, `${MODEL} does not support tools`);
  const came = performance.now();
  await served.alone(async () => {
    const lines = linesOf(served.reply(askedIn(body)), () => (performance.now() - came) * NS_PER_MS);
    // A refusal needs a status, so nothing is sent before the first line exists.
    const first = await lines.next();
    if (served.signal.aborted || first.done === true) return;
    if (body["stream"] === false) return wholeReply(served, first.value, lines);
    served.response.writeHead(200, { "content-type": "application/x-ndjson" });
    served.response.write(`${JSON.stringify(first.value)}\n`);
    for await (const line of lines) served.response.write(`${JSON.stringify(line)}\n`);
    served.response.end();
  });
}

interface Line {
  readonly message: { readonly content: string; readonly tool_calls?: readonly object[] };
  readonly done: boolean;
}

async function wholeReply(served: Served, first: Line, rest: AsyncIterable<Line>): Promise<void> {
  let content = first.message.content;
  const calls = [...(first.message.tool_calls ?? [])];
  let last = first;
  for await (const line of rest) {
    content += line.message.content;
    calls.push(...(line.message.tool_calls ?? []));
    last = line;
  }
  const message = { role: "assistant", content, ...(calls.length > 0 ? { tool_calls: calls } : {}) };
  served.json({ ...last, message });
}

const head = (): object => ({ model: MODEL, created_at: new Date().toISOString() });

async function* linesOf(said: AsyncIterable<ReplyPiece>, sinceNs: () => number): AsyncGenerator<Line> {
  let calls = 0;
  for await (const piece of said) {
    if (piece.type === "text") yield { ...head(), message: message({ content: piece.text }), done: false };
    else if (piece.type === "call") {
      const { name, args } = piece.call;
      const called = { id: `call_${calls}`, function: { index: calls, name, arguments: args } };
      calls += 1;
      yield { ...head(), message: message({ content: "", tool_calls: [called] }), done: false };
    } else {
      const ending = { done_reason: piece.reason, total_duration: sinceNs(), ...countsOf(piece.counts) };
      yield { ...head(), message: message({ content: "" }), done: true, ...ending };
    }
  }
}

const message = <T extends object>(parts: T): T & { readonly role: "assistant" } => ({
  role: "assistant",
  ...parts,
});

const countsOf = ({ prompt, written, loadMs, readMs, writeMs }: Counts): object => ({
  load_duration: loadMs * NS_PER_MS,
  prompt_eval_count: prompt,
  prompt_eval_duration: readMs * NS_PER_MS,
  eval_count: written,
  eval_duration: writeMs * NS_PER_MS,
});

function askedIn(body: Body): ReplyRequest {
  const options = (body["options"] ?? {}) as Body;
  const most = Number(options["num_predict"] ?? -1);
  return {
    messages: list(body["messages"]),
    tools: list(body["tools"]),
    window: Number(options["num_ctx"] ?? WINDOW),
    most: most < 0 ? Number.POSITIVE_INFINITY : most,
    temperature: Number(options["temperature"] ?? 0.8),
    seed: options["seed"] === undefined ? undefined : Number(options["seed"]),
    format: body["format"],
  };
}

const list = (value: unknown): readonly object[] =>
  Array.isArray(value) ? (value as readonly object[]) : [];

async function embed({ input, truncate }: Body, served: Served): Promise<void> {
  const texts = (Array.isArray(input) ? input : [input]).map(String);
  const embeddings = await served.alone(() => served.engine.vectors(texts, truncate !== false));
  served.json({ model: MODEL, embeddings });
}
