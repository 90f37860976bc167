import assert from "node:assert/strict";
import test from "node:test";
import { kindOf } from "../../src/models/model-kinds.ts";

test("what a server says that a model can do tells what it is for", () => {
  assert.equal(kindOf("nomic-embed-text", ["completion", "tools"]), "chat");
  assert.equal(kindOf("qwen3:8b", ["embedding"]), "embedding");
  assert.equal(kindOf("qwen3:8b", ["image"]), "other");
});

for (const name of [
  "nomic-embed-text:latest",
  "all-minilm:22m",
  "all-MiniLM-L6-v2",
  "mxbai-embed-large",
  "snowflake-arctic-embed2:568m",
  "bge-m3",
  "BAAI/bge-small-en",
  "qwen3-embedding:0.6b",
  "embeddinggemma:300m",
  "text-embedding-3-small",
  "intfloat/e5-mistral-7b-instruct",
  "hf.co/gte-large",
  "bge-reranker-v2",
])
  test(`${name} is an embedder by its name, where no server says more`, () => {
    for (const silent of [null, []]) assert.equal(kindOf(name, silent), "embedding");
  });

for (const name of [
  "qwen3:8b",
  "gpt-oss:20b",
  "gpt-4o",
  "llama3.1:8b",
  "gemma3n:e4b",
  "some/model",
  "minimax-m2",
])
  test(`${name} is taken for a model that chats`, () => {
    for (const silent of [null, []]) assert.equal(kindOf(name, silent), "chat");
  });
