import assert from "node:assert/strict";
import { test } from "node:test";
import { maskSecrets } from "../../src/core/secrets.ts";
import { tasksOf, documentText, queryText } from "../../src/search/embed-model.ts";
import { FakeEmbedder, modelOf } from "../fakes/embedder.ts";

const named = (name: string) => modelOf(new FakeEmbedder(), { name });

test("a model sees what it was trained to see before a text", () => {
  const rows: readonly (readonly [name: string, document: string, query: RegExp])[] = [
    ["nomic-embed-text", "search_document: ", /^search_query: $/],
    ["nomic-embed-text:v1.5", "search_document: ", /^search_query: $/],
    ["manutic/nomic-embed-code:7b", "", /^Represent this query for searching relevant code: $/],
    ["mxbai-embed-large", "", /^Represent this sentence/],
    ["snowflake-arctic-embed:335m", "", /^Represent this sentence/],
    ["snowflake-arctic-embed2", "", /^query: $/],
    ["snowflake-arctic-embed-l-v2.0", "", /^query: $/],
    ["jeffh/intfloat-multilingual-e5-large:f16", "passage: ", /^query: $/],
    ["intfloat/e5-base-v2", "passage: ", /^query: $/],
    ["intfloat/e5-mistral-7b-instruct", "", /^Instruct: /],
    ["bge-large", "", /^Represent this sentence/],
    ["BAAI/bge-small-en-v1.5", "", /^Represent this sentence/],
    ["bge-m3", "", /^$/],
    ["qwen3-embedding:0.6b", "", /^Instruct: .*\nQuery:$/],
    ["embeddinggemma", "title: none | text: ", /^task: code retrieval \| query: $/],
    ["all-minilm", "", /^$/],
    ["text-embedding-3-small", "", /^$/],
    ["some-code5-model", "", /^$/],
  ];
  for (const [name, document, query] of rows) {
    assert.equal(tasksOf(name).document, document, name);
    assert.match(tasksOf(name).query, query, name);
  }
});

test("of a chunk its place and its name are embedded before its text, as far as there is room", () => {
  const chunk = { path: "src/a.ts", symbol: "Store.close", text: "close() {}" };
  assert.equal(
    documentText(named("nomic-embed-text"), chunk),
    "search_document: src/a.ts\nStore.close\n\nclose() {}",
  );
  assert.equal(documentText(named("other"), { ...chunk, symbol: null }), "src/a.ts\n\nclose() {}");
  const long = documentText(named("other"), { ...chunk, text: "😀".repeat(20_000) });
  assert.ok(long.length <= 6000);
  assert.ok(long.isWellFormed());
  assert.ok(queryText(named("other"), ` ${"why ".repeat(2000)}`).length <= 2000);
});

test("what goes to another machine goes without its secrets, also where the text is cut", () => {
  const token = `ghp_${"a1B2c3D4e5".repeat(4)}`.slice(0, 40);
  const model = modelOf(new FakeEmbedder(), { mask: maskSecrets });
  const room = "x ".repeat(2985);
  for (const text of [
    documentText(model, { path: `${token}.ts`, symbol: token, text: `const a = "${token}"` }),
    documentText(model, { path: "a.ts", symbol: null, text: `${room}${token}` }),
    queryText(model, `who uses ${token}?`),
  ])
    assert.ok(!text.includes(token.slice(0, 12)), text.slice(-80));
  const local = documentText(modelOf(new FakeEmbedder()), { path: "a.ts", symbol: null, text: token });
  assert.ok(local.includes(token));
});
