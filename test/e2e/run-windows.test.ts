import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import test from "node:test";
import * as anthropic from "../fakes/anthropic-server.ts";
import { chatLine, doneLine } from "../fakes/ollama-chat.ts";
import { chunk, DONE } from "../fakes/openai-server.ts";
import { scratch } from "../fixtures/scratch.ts";
import { finishedOf, harness } from "./run-command.ts";

/** A window that is only believed from the name of a family keeps nothing from being sent: the server has the word. */

interface Api {
  readonly path: string;
  readonly base: string;
  readonly answer: string;
  readonly refusal: object;
}

const TOO_LONG = "prompt is too long: 220000 tokens > 200000 maximum";

const APIS = {
  openai: {
    path: "/v1/chat/completions",
    base: "/v1",
    answer: `${chunk({ content: "Done." }, "stop")}${DONE}`,
    refusal: { error: { message: TOO_LONG, code: "context_length_exceeded" } },
  },
  anthropic: {
    path: "/v1/messages",
    base: "",
    answer: [
      anthropic.start(),
      ...anthropic.block(0, { type: "text", text: "" }, { type: "text_delta", text: "Done." }),
      ...anthropic.end("end_turn"),
    ].join(""),
    refusal: { type: "error", error: { type: "invalid_request_error", message: TOO_LONG } },
  },
  ollama: {
    path: "/api/chat",
    base: "",
    answer: `${chatLine({ content: "Done." })}${doneLine()}`,
    refusal: { error: "the input length exceeds the context length" },
  },
} as const satisfies Readonly<Record<string, Api>>;

/** A server that says nothing of windows; what it was sent for a reply. */
async function served(api: Api, refuses: boolean) {
  const sent: string[] = [];
  const reply = (response: ServerResponse): void => {
    const type = api.path === "/api/chat" ? "application/x-ndjson" : "text/event-stream";
    response.writeHead(refuses ? 400 : 200, { "content-type": refuses ? "application/json" : type });
    response.end(refuses ? JSON.stringify(api.refusal) : api.answer);
  };
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (each: Buffer) => chunks.push(each));
    request.on("end", () => {
      if (request.url === "/api/version") return response.end('{"version":"0.30.0"}');
      if (request.url === "/api/tags") return response.end('{"models":[{"name":"gpt-9"}]}');
      if (request.url === "/api/ps") return response.end('{"models":[]}');
      if (request.url === "/api/show") return response.end('{"capabilities":["completion","tools"]}');
      if (request.url !== api.path) return response.writeHead(404).end("{}");
      sent.push(Buffer.concat(chunks).toString());
      return reply(response);
    });
  });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  const close = async (): Promise<void> => {
    server.closeAllConnections();
    await new Promise<void>((resolve) => void server.close(() => resolve()));
  };
  const { port } = server.address() as AddressInfo;
  return { sent, url: `http://127.0.0.1:${port}${api.base}`, [Symbol.asyncDispose]: close };
}

/** Some 200,000 tokens, where the family of `gpt-9` is said to take 128,000. */
const TASK = `Say done. ${"word ".repeat(160_000)}`;

async function asked(provider: keyof typeof APIS, refuses: boolean, settings: object = {}) {
  await using place = await scratch({ ".config/harness/config.json": JSON.stringify(settings) });
  await mkdir(place.at("work"));
  await using server = await served(APIS[provider], refuses);
  const words = ["run", "--json", "--intent", "direct", "--model", "gpt-9", "--provider", provider];
  const env = { OPENAI_API_KEY: "k", ANTHROPIC_API_KEY: "k" };
  const ran = await harness(place, [...words, "--base-url", server.url, "-"], { input: TASK, env });
  const { reason, answer } = finishedOf(ran);
  const whole = server.sent.filter((body) => body.includes(TASK.slice(0, 1000))).length;
  return { code: ran.code, reason, answer, whole, sent: server.sent.length };
}

for (const provider of ["openai", "anthropic", "ollama"] as const) {
  test(`${provider}: a task beyond a known model family's window is sent`, async () => {
    const { code, answer, whole, reason } = await asked(provider, false);
    assert.deepEqual([code, answer, whole], [0, "Done.", 1], reason);
  });

  test(`${provider}: a refusal by the server because of its length ends the run`, async () => {
    const { code, reason, sent } = await asked(provider, true);
    assert.deepEqual([code, sent > 0], [1, true], reason);
    assert.match(reason, /too long|exceeds/);
  });
}

test("a window set by the user blocks longer requests", async () => {
  for (const provider of ["openai", "anthropic"] as const) {
    const { code, reason, sent } = await asked(provider, false, { max_context_tokens: 100_000 });
    assert.deepEqual([code, sent], [1, 0], reason);
    assert.match(reason, /does not fit the model's window/);
  }
});
