import assert from "node:assert/strict";
import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { setImmediate as turn, setTimeout as sleep } from "node:timers/promises";
import { OllamaWire } from "../../src/models/providers/ollama-api.ts";
import { chatLine, doneLine, errorLine } from "../fakes/ollama-chat.ts";
import { sendJson, startFakeOllama } from "../fakes/ollama-server.ts";
import {
  type Answered,
  type Asked,
  bytesOf,
  isRefused,
  type Opened,
  type Part,
  type Refused,
  type Reply,
  replyAt,
  type Scenario,
} from "./provider-server.ts";
import { providerSuite } from "./provider-suite.ts";

// From the sources the client loads Node's fetch, which takes longer than the suite lets a reply take to begin.
await import("ollama/browser");
assert.ok(Headers);

async function open(scenario: Scenario): Promise<Opened> {
  const left = Promise.withResolvers<void>();
  let count = 0;
  const fake = await startFakeOllama({
    models: [{ name: "contract-model" }],
    routes: {
      "/api/chat": (_body, response) => {
        response.once("close", () => {
          if (!response.writableEnded) left.resolve();
        });
        const answered = replyAt(scenario, count);
        count += 1;
        answer(answered, response).catch(() => response.destroy());
      },
    },
  });
  const [first] = scenario.replies;
  if (isRefused(first) && first.refuses === "unreachable") await fake[Symbol.asyncDispose]();
  return {
    wire: new OllamaWire({ baseUrl: fake.url, memory: null }),
    asked: () => fake.requests.filter(({ path }) => path === "/api/chat").map(({ body }) => askedIn(body)),
    left: left.promise,
    [Symbol.asyncDispose]: () => fake[Symbol.asyncDispose](),
  };
}

function askedIn(body: unknown): Asked {
  const { tools = [] } = body as { readonly tools?: readonly { readonly function: { name: string } }[] };
  return { tools: tools.map(({ function: { name } }) => name), body: JSON.stringify(body) };
}

async function answer(answered: Answered, response: ServerResponse): Promise<void> {
  if (isRefused(answered)) return refuse(answered, response);
  const { ends = "done", parts } = answered;
  // The head goes out with the first line.
  response.setHeader("content-type", "application/x-ndjson");
  let said = "";
  for (const part of parts) {
    if (part.type === "pause") {
      await write(response, said, answered.slice);
      said = "";
      await sleep(part.ms);
    } else said += lineOf(part);
  }
  if (ends === "done") said += doneLine(ending(answered));
  await write(response, said, answered.slice);
  if (ends === "done") response.end();
  if (ends === "cut") {
    response.flushHeaders();
    await sleep(10);
    response.destroy();
  }
  const last = parts.at(-1);
  if (ends === "endless" && last !== undefined && last.type !== "pause")
    await forEver(response, lineOf(last));
}

async function forEver(response: ServerResponse, text: string): Promise<void> {
  const gone = new AbortController();
  response.once("close", () => gone.abort());
  while (!response.destroyed)
    if (!response.write(text)) await once(response, "drain", { signal: gone.signal });
}

function ending({ parts, stop, usage }: Reply): Record<string, unknown> {
  const reason = stop === undefined || stop === "end" || stop === "calls" ? "stop" : stop;
  const failing = parts.some(({ type }) => type === "error");
  return {
    ...(failing ? {} : { done_reason: reason }),
    prompt_eval_count: usage?.prompt,
    eval_count: usage?.completion,
  };
}

async function write(
  response: ServerResponse,
  text: string,
  slice = Number.POSITIVE_INFINITY,
): Promise<void> {
  const bytes = bytesOf(text);
  for (let at = 0; at < bytes.length; at += slice) {
    response.write(bytes.subarray(at, Math.min(bytes.length, at + slice)));
    await turn();
  }
}

function lineOf(part: Exclude<Part, { readonly type: "pause" }>): string {
  switch (part.type) {
    case "text":
      return chatLine({ content: part.text });
    case "thinking":
      return chatLine({ thinking: part.text });
    case "call":
      return chatLine({
        calls: [
          {
            name: part.name,
            args: JSON.parse(part.args) as unknown,
            ...(part.id === undefined ? {} : { id: part.id }),
          },
        ],
      });
    case "error":
      return errorLine(part.message);
    default:
      return `${part.text}\n`;
  }
}

const TOO_LONG = JSON.stringify({
  error: {
    code: 400,
    message: "request (9127 tokens) exceeds the available context size (8192 tokens), try increasing it",
    type: "exceed_context_size_error",
    n_prompt_tokens: 9127,
    n_ctx: 8192,
  },
});

/** Status and words. */
const REFUSALS: Readonly<Record<Exclude<Refused["refuses"], "unreachable">, readonly [number, string]>> = {
  unauthorised: [401, "unauthorized"],
  no_model: [404, "model 'contract-model' not found"],
  too_long: [400, TOO_LONG],
  rate_limited: [503, "server busy, please try again.  maximum pending requests exceeded"],
  server: [500, "llama-server process has terminated: signal: killed"],
  error_in_200: [200, "unexpected server status: 1"],
  no_schema: [500, "failed to load model vocabulary required for format"],
  no_tools: [400, "registry.ollama.ai/library/contract-model:latest does not support tools"],
};

function refuse({ refuses, retryAfter, says }: Refused, response: ServerResponse): void {
  if (refuses === "unreachable") return void response.destroy();
  const [status, words] = REFUSALS[refuses];
  if (retryAfter !== undefined) response.setHeader("retry-after", String(retryAfter));
  sendJson(response, { error: says === undefined ? words : `${words}: ${says}` }, status);
}

providerSuite("ollama", {
  open,
  lacks: { "argument text": "Ollama sends arguments as an object, which it has read itself" },
});
