import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { ollamaEmbedder } from "../../src/models/embeddings.ts";
import { embedAll } from "../../src/search/embed-all.ts";
import { documentText, type EmbeddingModel } from "../../src/search/embed-model.ts";
import { modelOf } from "../fakes/embedder.ts";
import { EMBED_MODEL, startEmbeddingOllama } from "../fakes/embedding-ollama.ts";
import { sendJson } from "../fakes/ollama-server.ts";
import { scratch } from "../fixtures/scratch.ts";
import { NEVER } from "./stores/words.ts";
import { cacheIn, fill, OPTIONS, openIndex } from "./index-of.ts";

const WRITER = path.join(import.meta.dirname, "..", "fixtures", "vectors-writer.ts");
/** Texts of one request, and requests under way at a time. */
const UNDER_WAY = 2 * 32;

const modelAt = (url: string): EmbeddingModel =>
  modelOf(ollamaEmbedder(url, EMBED_MODEL, { retries: 1, timeoutMs: 5000 }), { name: EMBED_MODEL });

test("after kill -9 in the middle no chunk with a vector is sent again", async () => {
  await using place = await scratch();
  await using ollama = await startEmbeddingOllama({ delayMs: 20 });
  {
    await using store = openIndex(place.at("index"));
    await fill(store, 300);
  }
  let durable = 0;
  for (const enough of [100, 300, 500]) {
    const child = spawn(process.execPath, [WRITER, place.path, ollama.server.url], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const closed = once(child, "close");
    let said = "";
    for await (const piece of child.stdout) {
      said += String(piece);
      durable = Number(said.split("\n").slice(0, -1).at(-1));
      if (durable >= enough) child.kill("SIGKILL");
    }
    assert.deepEqual((await closed)[1], "SIGKILL", said);
    // Answers to the dead process's requests are lost.
    await sleep(100);
    await using store = openIndex(place.at("index"));
    const { embedded } = await store.counts(NEVER);
    assert.ok(embedded >= durable && embedded <= durable + UNDER_WAY, `${embedded}, ${durable}`);
    const sent = ollama.requests.length;
    if (enough < 500) continue;

    const without = await store.unembedded(10_000, NEVER);
    assert.equal(without.length, 900 - embedded);
    using cache = cacheIn(place.at("cache"));
    const outcome = await embedAll(store, modelAt(ollama.server.url), cache, OPTIONS);
    assert.deepEqual([outcome.kind, outcome.embedded, outcome.chunks], ["whole", 900, 900]);
    const wanted = new Set(without.map((chunk) => documentText(modelAt(""), chunk)));
    const resumed = ollama.requests.slice(sent).flat();
    assert.ok(resumed.every((text) => wanted.has(text)));
    assert.equal(outcome.asked, resumed.length);
  }
  const texts = ollama.requests.flat();
  assert.equal(new Set(texts).size, 900);
  // Only texts in progress at one of the three kills were sent twice.
  assert.ok(texts.length <= 900 + 3 * UNDER_WAY, String(texts.length));
  assert.ok(texts.every((text) => text.startsWith("search_document: src/f")));
});

test("a server that goes away in the middle leaves the finished vectors, and the message says how to continue", async () => {
  await using place = await scratch();
  await using store = openIndex(place.at("index"));
  using cache = cacheIn(place.at("cache"));
  await fill(store, 60);
  let [port, done] = [0, 0];
  {
    await using ollama = await startEmbeddingOllama({
      instead: (_texts, response, request) => request > 3 && response.destroy() !== undefined,
    });
    port = Number(new URL(ollama.server.url).port);
    const outcome = await embedAll(store, modelAt(ollama.server.url), cache, OPTIONS);
    done = ollama.requests.slice(0, 3).flat().length;
    assert.deepEqual([outcome.kind, outcome.embedded], ["partial", done], outcome.reason);
    assert.match(outcome.reason, /^embeddings: /);
  }
  const gone = await embedAll(store, modelAt(`http://127.0.0.1:${port}`), cache, OPTIONS);
  assert.deepEqual([gone.kind, gone.embedded, gone.asked], ["partial", done, 0]);
  assert.match(`${gone.reason} ${gone.remedy}`, /ollama serve/);
  await using ollama = await startEmbeddingOllama();
  const rest = await embedAll(store, modelAt(ollama.server.url), cache, OPTIONS);
  assert.deepEqual([rest.kind, rest.embedded, ollama.requests.flat().length], ["whole", 180, 180 - done]);
});

test("a server that asks for a delay is waited for, and is sent nothing twice that it accepted", async () => {
  await using place = await scratch();
  await using store = openIndex(place.at("index"));
  using cache = cacheIn(place.at("cache"));
  await fill(store, 30);
  const taken: string[] = [];
  // Shorter than the requested wait, so it is over before the next attempt.
  const wait = { over: false };
  await using ollama = await startEmbeddingOllama({
    instead: (texts, response, request) => {
      if (request === 3) assert.ok(wait.over, "asked again at once");
      if (request !== 2) {
        taken.push(...texts);
        return false;
      }
      response.setHeader("retry-after", "1");
      void sleep(900).then(() => (wait.over = true));
      sendJson(response, { error: "too many requests" }, 429);
      return true;
    },
  });
  const outcome = await embedAll(store, modelAt(ollama.server.url), cache, { ...OPTIONS, concurrency: 1 });
  assert.deepEqual([outcome.kind, outcome.asked, taken.length], ["whole", 90, 90]);
  assert.ok(wait.over);
});
