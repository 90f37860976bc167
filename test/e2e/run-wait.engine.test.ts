import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import test from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { chatLine, doneLine } from "../fakes/ollama-chat.ts";
import { startFakeOllama } from "../fakes/ollama-server.ts";
import { skip } from "../fixtures/engine.ts";
import { household } from "./box-command.ts";
import { noTerminal, onTerminal } from "./terminal.ts";

const PIECES = 40;

async function stream(response: ServerResponse, begin: Promise<void>): Promise<void> {
  await begin;
  response.writeHead(200, { "content-type": "application/x-ndjson" });
  for (let piece = 0; piece < PIECES; piece += 1) {
    response.write(chatLine({ content: "four " }));
    await sleep(100);
  }
  response.end(doneLine());
}

test(
  "on a terminal a run shows how much its model has to read, then how fast it writes",
  { skip: skip === false ? noTerminal : skip },
  async () => {
    await using place = await household();
    const begin = Promise.withResolvers<void>();
    await using ollama = await startFakeOllama({
      models: [{ name: "qwen3:8b", trained: 32_768 }],
      routes: { "/api/chat": (_body, response) => void stream(response, begin.promise) },
    });
    await using terminal = onTerminal(place, ["run", "'what is two plus two?'"], { OLLAMA_HOST: ollama.url });
    await terminal.until(/waiting for qwen3:8b \d+ s, [\d,]+ tokens to read/);
    begin.resolve();
    await terminal.until(/qwen3:8b: answering \d+ s, [\d.]+ tokens a second/);
    assert.equal(await terminal.ended, 0);
  },
);
