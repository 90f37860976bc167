import assert from "node:assert/strict";
import test from "node:test";
import { EMBED_MODEL, startEmbeddingOllama } from "../fakes/embedding-ollama.ts";
import { hashVector } from "../fakes/embedder.ts";
import { sendJson } from "../fakes/ollama-server.ts";
import { runProgram } from "../fixtures/cli.ts";
import { skip } from "../fixtures/engine.ts";
import type { Scratch } from "../fixtures/scratch.ts";
import { household } from "./box-command.ts";
import { search } from "./index-of.ts";
import { harness, type Ran } from "./run-command.ts";

const FILES = Object.fromEntries(
  Array.from({ length: 40 }, (_, at) => [`src/f${at}.ts`, `export function gate${at}(): void {}\n`]),
);

type Fields = Readonly<Record<string, unknown>>;
interface Told {
  readonly chunks: number;
  readonly vectors: Fields;
}

async function told(ran: Promise<Ran>): Promise<Told & { readonly stderr: string }> {
  const { code, stdout, stderr } = await ran;
  assert.equal(code, 0, stderr + stdout);
  return { ...(JSON.parse(stdout) as Told), stderr };
}

const vectorsOf = async (place: Scratch, env: Readonly<Record<string, string>>): Promise<Fields> =>
  (await told(harness(place, ["index", "--status", "--json"], { env }))).vectors;

test("indexing waits for a server busy with other work, and says so", { skip }, async () => {
  await using place = await household(FILES);
  const free = Promise.withResolvers<void>();
  await using ollama = await startEmbeddingOllama({
    instead: (texts, response, request) => {
      if (request > 1) return false;
      void free.promise.then(() =>
        sendJson(response, { embeddings: texts.map((text) => [...hashVector(text, 64)]) }),
      );
      return true;
    },
  });
  const ran = await runProgram("bin/harness", ["index", "--json"], {
    home: place.path,
    cwd: place.at("work"),
    env: { OLLAMA_HOST: ollama.server.url, HARNESS_EMBED_MODEL: EMBED_MODEL },
    // Longer than a search would wait.
    onStderr: (text) => void (text.includes("waiting for") && setTimeout(free.resolve, 1500)),
  });
  assert.match(ran.stderr, new RegExp(`^note: waiting for ${EMBED_MODEL}, which may be loading or busy`));
  const { chunks, vectors } = JSON.parse(ran.stdout) as Told;
  assert.deepEqual(
    [vectors["kind"], vectors["embedded"], vectors["share"], vectors["next"]],
    ["whole", chunks, 1, ""],
  );
});

test("while an index gets its vectors, another search is answered by words", { skip }, async () => {
  await using place = await household(FILES);
  const [free, searchable] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  await using ollama = await startEmbeddingOllama({
    instead: (texts, response, request) => {
      // The model is there; what it takes long for is the pieces.
      if (request === 1) return false;
      void free.promise.then(() =>
        sendJson(response, { embeddings: texts.map((text) => [...hashVector(text, 64)]) }),
      );
      return true;
    },
  });
  const env = { OLLAMA_HOST: ollama.server.url, HARNESS_EMBED_MODEL: EMBED_MODEL };
  const state = { ended: false };
  const indexing = runProgram("bin/harness", ["index", "--json"], {
    home: place.path,
    cwd: place.at("work"),
    env,
    onStderr: (text) => void (text.includes("searchable by words now") && searchable.resolve()),
  }).finally(() => {
    state.ended = true;
    searchable.resolve();
  });
  await searchable.promise;
  const { results } = await search(place, "gate7", { env });
  assert.deepEqual([results[0]?.path, state.ended], ["src/f7.ts", false]);
  free.resolve();
  const { chunks, vectors } = JSON.parse((await indexing).stdout) as Told;
  assert.deepEqual([vectors["kind"], vectors["embedded"]], ["whole", chunks]);
});

test(
  "an index with missing vectors says so in its status and in each search, until it is completed",
  { skip },
  async () => {
    await using place = await household(FILES);
    const busy = { is: true };
    await using ollama = await startEmbeddingOllama({ instead: () => busy.is });
    const env = {
      OLLAMA_HOST: ollama.server.url,
      HARNESS_EMBED_MODEL: EMBED_MODEL,
      HARNESS_FIRST_TOKEN_TIMEOUT: "1s",
    };
    const bare = await harness(place, ["index"], { env });
    assert.equal(bare.code, 0, bare.stderr);
    assert.match(
      bare.stdout,
      /^0 of 40 chunks have vectors: .* returned no vector in time .*\n.*by their words only; harness index adds the rest$/m,
    );
    assert.deepEqual(await vectorsOf(place, env), {
      model: null,
      embedded: 0,
      awaited: EMBED_MODEL,
      worth: null,
      share: 0,
      next: "harness index",
    });
    const found = await search(place, "gate7", { env });
    assert.match(
      found.stderr,
      /^note: 0 % of the index is searched by meaning, .*; harness index completes it\n$/,
    );

    // It fails in the midst of the pieces: what is done stays, and its share is known.
    busy.is = false;
    const failing = await startEmbeddingOllama({
      instead: (_texts, response, request) => {
        if (request < 4) return false;
        response.writeHead(400, { "content-type": "application/json" });
        response.end('{"error":"the runner has ended"}');
        return true;
      },
    });
    const part = await told(
      harness(place, ["index", "--json"], { env: { ...env, OLLAMA_HOST: failing.server.url } }),
    );
    await failing[Symbol.asyncDispose]();
    assert.equal(part.vectors["kind"], "partial");
    assert.match(String(part.vectors["reason"]), /the runner has ended/);
    const { embedded, share, next, awaited } = await vectorsOf(place, env);
    assert.ok(typeof embedded === "number" && embedded > 0 && embedded < 40, String(embedded));
    assert.deepEqual([share, next, awaited], [embedded / 40, "harness index", null]);
    const shown = await harness(place, ["index", "--status"], { env });
    assert.match(
      shown.stdout,
      /with vectors \(\d+ %\) of .*\n.*: not all vectors were computed; harness index adds the rest$/m,
    );

    const whole = await told(harness(place, ["index", "--json"], { env }));
    assert.deepEqual([whole.vectors["kind"], whole.vectors["next"]], ["whole", ""]);
    assert.ok(Number(whole.vectors["asked"]) <= 40 - embedded, "what was done is not done again");
    const again = await search(place, "gate7", { env });
    assert.deepEqual([again.stderr, again.vectors.share], ["", 1]);
  },
);
