import assert from "node:assert/strict";
import test, { describe, type TestContext } from "node:test";
import type { Embedder } from "../../src/core/ports.ts";
import { HarnessError } from "../../src/core/errors.ts";
import { ollamaEmbedder, openAiEmbedder } from "../../src/models/embeddings.ts";
import { dot } from "../fixtures/vectors.ts";
import { realServer } from "./real-ollama.ts";

const { url } = realServer();
const model = process.env["HARNESS_REAL_EMBED_MODEL"] ?? realServer().model;

const EMBEDDERS: readonly (readonly [string, Embedder])[] = [
  ["ollama", ollamaEmbedder(url, model)],
  ["openai", openAiEmbedder({ baseUrl: `${url}/v1` }, model)],
];

const signal = new AbortController().signal;

/** A chat model makes no vectors, and its server reports that. */
async function vectorsOf(
  t: TestContext,
  embedder: Embedder,
  texts: readonly string[],
): Promise<readonly Float32Array[]> {
  try {
    return await embedder.embed(texts, signal);
  } catch (thrown) {
    if (!(thrown instanceof HarnessError) || !/does not support embed/i.test(thrown.message)) throw thrown;
    t.skip(`${thrown.message} (HARNESS_REAL_EMBED_MODEL names another)`);
    return [];
  }
}

const cosine = (a: Float32Array, b: Float32Array): number => {
  return dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));
};

describe("vectors of a real model", () => {
  for (const [name, embedder] of EMBEDDERS)
    test(`by ${name}: one vector per text, in order, and similar for similar texts`, async (t) => {
      const code = "export function add(a, b) {\n  return a + b;\n}";
      const texts = [code, "The ferry to the island leaves at noon.", code, "äöü 漢字 🙂"];
      const [first, other, same, wide] = await vectorsOf(t, embedder, texts);
      if (first === undefined || other === undefined || same === undefined || wide === undefined) return;
      assert.ok(first.length > 16 && [other, same, wide].every(({ length }) => length === first.length));
      assert.ok(cosine(first, same) > 0.999, `${cosine(first, same)}`);
      assert.ok(cosine(first, other) < cosine(first, same) - 0.01, `${cosine(first, other)}`);
      t.diagnostic(`${first.length} numbers; unlike texts: ${cosine(first, other).toFixed(3)}`);
    });
});
