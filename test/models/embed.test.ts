import assert from "node:assert/strict";
import test from "node:test";
import { EXIT, HarnessError } from "../../src/core/errors.ts";
import { type Ask, BatchEmbedder, ollamaEmbedder, openAiEmbedder } from "../../src/models/embeddings.ts";
import { WireFailure } from "../../src/models/model-api.ts";
import { type Served, startLoopback } from "../fakes/loopback.ts";

const NEVER = new AbortController().signal;
const json = (value: unknown, status = 200): Served => ({ status, body: JSON.stringify(value) });
const numbers = (vectors: readonly Float32Array[]): readonly (readonly number[])[] =>
  vectors.map((each) => [...each]);

/** One number for each text: its length. */
const lengths: Ask = (texts) => Promise.resolve(texts.map(({ length }) => [length]));

/** A one for each letter. */
const ones: Ask = ([text = ""]) => Promise.resolve([Array.from(text, () => 1)]);

async function failureOf(
  embedding: Promise<unknown>,
): Promise<{ exit: number; message: string; remedy: string }> {
  try {
    await embedding;
  } catch (thrown) {
    assert.ok(thrown instanceof HarnessError, String(thrown));
    return { exit: thrown.exit, message: thrown.message, remedy: thrown.remedy };
  }
  return assert.fail("it gave vectors");
}

test("OpenAI's embeddings are returned in the order of their texts, whatever the order of the answer", async () => {
  await using server = await startLoopback([
    json({
      data: [
        { index: 1, embedding: [3, 4] },
        { index: 0, embedding: [1, 2] },
      ],
      usage: { prompt_tokens: 2 },
    }),
  ]);
  const embedder = openAiEmbedder({ baseUrl: `${server.url}/v1`, key: "sk-1" }, "small");
  assert.deepEqual(numbers(await embedder.embed(["a", " "], NEVER)), [
    [1, 2],
    [3, 4],
  ]);
  const [heard] = server.heard;
  assert.deepEqual([heard?.path, heard?.headers.authorization], ["/v1/embeddings", "Bearer sk-1"]);
  assert.deepEqual(JSON.parse(heard?.text ?? ""), {
    model: "small",
    input: ["a", " "],
    encoding_format: "float",
  });
});

test("vectors as base64 bytes are read", async () => {
  const bytes = Buffer.from(new Float32Array([0.5, -2]).buffer).toString("base64");
  await using server = await startLoopback([json({ data: [{ embedding: bytes }] })]);
  const embedder = openAiEmbedder({ baseUrl: `${server.url}/v1` }, "small");
  assert.deepEqual(numbers(await embedder.embed(["a"], NEVER)), [[0.5, -2]]);
});

test("Ollama's embeddings are read", async () => {
  await using server = await startLoopback([
    json({
      model: "nomic",
      embeddings: [
        [1, 2],
        [3, 4],
      ],
    }),
  ]);
  assert.deepEqual(numbers(await ollamaEmbedder(server.url, "nomic").embed(["a", "b"], NEVER)), [
    [1, 2],
    [3, 4],
  ]);
  assert.equal(server.heard[0]?.path, "/api/embed");
  assert.deepEqual(JSON.parse(server.heard[0]?.text ?? ""), {
    model: "nomic",
    input: ["a", "b"],
    truncate: true,
  });
});

test("an empty list of texts needs no server", async () => {
  assert.deepEqual(await ollamaEmbedder("http://127.0.0.1:1", "nomic").embed([], NEVER), []);
});

test("many texts are sent in batches, limited by number and size", async () => {
  const batches: (readonly string[])[] = [];
  const ask: Ask = (texts, signal) => {
    batches.push(texts);
    return lengths(texts, signal);
  };
  const texts = ["a", "bb", "ccc", "dddddddd", "e", ""];
  const embedder = new BatchEmbedder(ask, { texts: 2, chars: 5 });
  assert.deepEqual(numbers(await embedder.embed(texts, NEVER)), [[1], [2], [3], [8], [1], [1]]);
  assert.deepEqual(batches, [["a", "bb"], ["ccc"], ["dddddddd"], ["e", " "]]);
});

test("a batch that is too long is halved, and a text that is too long is cut", async () => {
  const most = 100;
  const ask: Ask = (texts, signal) =>
    texts.join("").length > most
      ? Promise.reject(new WireFailure("too_long", "too long"))
      : lengths(texts, signal);
  const texts = ["a".repeat(60), "b".repeat(60), "c".repeat(300)];
  assert.deepEqual(numbers(await new BatchEmbedder(ask).embed(texts, NEVER)), [[60], [60], [75]]);
});

test("a passing failure is retried, and others are not", async () => {
  const busy: Served = { ...json({ error: "busy" }, 503), headers: { "retry-after": "0" } };
  await using server = await startLoopback([busy, busy, json({ embeddings: [[1]] })]);
  assert.deepEqual(numbers(await ollamaEmbedder(server.url, "nomic").embed(["a"], NEVER)), [[1]]);
  await using broken = await startLoopback([json({ error: "this model does not support embeddings" }, 400)]);
  const { exit, message } = await failureOf(ollamaEmbedder(broken.url, "llama").embed(["a"], NEVER));
  assert.deepEqual(
    [exit, message],
    [EXIT.model, "embeddings: HTTP 400: this model does not support embeddings"],
  );
  assert.equal(broken.heard.length, 1);
});

const WRONG: readonly (readonly [string, Served, RegExp])[] = [
  ["too few vectors", json({ embeddings: [[1]] }), /sent 1 vectors for 2 texts/],
  ["vectors of two lengths", json({ embeddings: [[1], [1, 2]] }), /2 numbers, the first one has 1/],
  ["an empty vector", json({ embeddings: [[], []] }), /0 numbers/],
  ["a value that is not a number", json({ embeddings: [[1], [null]] }), /not a number/],
  ["something other than a list", json({ embedding: 7 }), /not a list of vectors/],
  ["invalid JSON", { body: '{"embed' }, /not JSON/],
  ["a web page", { headers: { "content-type": "text/html" }, body: "<html></html>" }, /not a model server/],
  ["an error with status 200", { body: '{"error":"boom"}' }, /boom/],
];

for (const [sentence, served, says] of WRONG)
  test(`an answer with ${sentence} is a failure`, async () => {
    await using server = await startLoopback([served]);
    const failure = await failureOf(
      ollamaEmbedder(server.url, "nomic", { retries: 0 }).embed(["a", "b"], NEVER),
    );
    assert.equal(failure.exit, EXIT.model);
    assert.match(failure.message, says);
    assert.notEqual(failure.remedy, "");
  });

test("vectors whose length changes between batches are a failure", async () => {
  const { message } = await failureOf(new BatchEmbedder(ones, { texts: 1 }).embed(["a", "bb"], NEVER));
  assert.match(message, /2 numbers/);
});

test("a missing model or server is reported with the command that fixes it", async () => {
  await using server = await startLoopback([
    json({ error: 'model "nomic" not found, try pulling it first' }, 404),
  ]);
  const missing = await failureOf(ollamaEmbedder(server.url, "nomic").embed(["a"], NEVER));
  assert.match(missing.remedy, /ollama pull nomic$/);
  await server.close();
  assert.match(
    (await failureOf(ollamaEmbedder(server.url, "nomic").embed(["a"], NEVER))).remedy,
    /ollama serve$/,
  );
});

test("cancelling ends the request at once, and a server that is too slow is given up", async () => {
  await using server = await startLoopback([{ ends: "silent" }]);
  const abort = new AbortController();
  setTimeout(() => abort.abort(), 20);
  const embedder = ollamaEmbedder(server.url, "nomic", { timeoutMs: 500 });
  assert.equal((await failureOf(embedder.embed(["a"], abort.signal))).exit, EXIT.interrupted);
  const slow = ollamaEmbedder(server.url, "nomic", { timeoutMs: 40 });
  assert.match((await failureOf(slow.embed(["a"], NEVER))).message, /no vectors within 40 ms/);
  await server.left;
});
