import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import test from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { OllamaWire } from "../../src/models/providers/ollama-api.ts";
import { chatLine, doneLine } from "../fakes/ollama-chat.ts";
import { startFakeOllama } from "../fakes/ollama-server.ts";

const REQUEST = {
  model: "qwen3:8b",
  messages: [{ role: "user", text: "hello" }],
  tools: [],
  nativeTools: true,
  connectMs: 1000,
} as const;

/** Chats answered by `answer`, and the connection that each of them used. */
async function connected(answer: (nth: number, response: ServerResponse) => void) {
  const ports: (number | undefined)[] = [];
  const fake = await startFakeOllama({
    models: [{ name: "qwen3:8b" }],
    routes: {
      "/api/chat": (_body, response) => {
        ports.push(response.socket?.remotePort);
        answer(ports.length, response);
      },
    },
  });
  const wire = new OllamaWire({ baseUrl: fake.url, memory: null });
  /** The types of its events. What a turn does behind its reply takes a moment. */
  const chat = async (): Promise<readonly string[]> => {
    const types: string[] = [];
    for await (const { type } of wire.send(REQUEST, new AbortController().signal)) types.push(type);
    await sleep(20);
    return types;
  };
  return { chat, ports, [Symbol.asyncDispose]: () => fake[Symbol.asyncDispose]() };
}

test("one connection serves successive requests", async () => {
  await using server = await connected((_nth, response) => response.end(doneLine()));
  for (let request = 0; request < 3; request += 1) await server.chat();
  assert.deepEqual([server.ports.length, new Set(server.ports).size], [3, 1]);
});

test("a connection that the server closes when it is reused is opened again", async () => {
  await using server = await connected((nth, response) => {
    if (nth === 2) response.destroy();
    else response.end(doneLine());
  });
  await server.chat();
  assert.ok((await server.chat()).includes("stop"));
  assert.equal(server.ports.length, 3);
});

test("a server that continues after its last line is disconnected", async () => {
  const left = Promise.withResolvers<void>();
  await using server = await connected((_nth, response) => {
    response.write(doneLine());
    const more = setInterval(() => response.write(chatLine({ content: "more" })), 5);
    response.once("close", () => {
      clearInterval(more);
      left.resolve();
    });
  });
  assert.ok((await server.chat()).includes("stop"));
  await left.promise;
});
