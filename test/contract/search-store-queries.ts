import assert from "node:assert/strict";
import type { AddSearch } from "./search-store-suite.ts";
import { axis, byCosine, byVector, byWords, chunk, file, textsOf } from "./search-store-words.ts";

const PROJECT = [
  file("src/http.ts", ["parse the header of a request", "send the body of a reply"]),
  file("src/tree.ts", ["walk the tree", "the node of a tree"]),
  file("docs/guide.md", ["how to parse a header"], { role: "docs", kind: "section", language: "markdown" }),
];

export function queryCases(add: AddSearch): void {
  wordCases(add);
  vectorQueries(add);
  orderCases(add);
  limitCases(add);
}

function wordCases(add: AddSearch): void {
  add("words find the chunks that contain them, in code and in documentation", async ({ store, signal }) => {
    await store.put(PROJECT, signal);
    const found = await byWords(store, "parse header");
    assert.deepEqual(textsOf(found).toSorted(), ["how to parse a header", "parse the header of a request"]);
    for (const { lexical, dense } of found) {
      assert.ok(lexical !== null && lexical > 0, String(lexical));
      assert.equal(dense, null);
    }
  });

  add("chunks with more of the words or rarer words come first", async (context) => {
    const { store, signal } = context;
    await store.put([...PROJECT, file("src/more.ts", ["zebra", "the tree", "tree again", "a tree"])], signal);
    assert.equal(textsOf(await byWords(store, "walk tree"))[0], "walk the tree");
    assert.equal(textsOf(await byWords(store, "zebra tree"))[0], "zebra");
  });

  add("an identifier is found by its parts and as written", async ({ store, signal }) => {
    await store.put([file("a.ts", ["const parseHttpHeader = 1;", "const other_gadget = 2;"])], signal);
    for (const query of ["parseHttpHeader", "http header", "HTTP"])
      assert.deepEqual(textsOf(await byWords(store, query)), ["const parseHttpHeader = 1;"], query);
    assert.deepEqual(textsOf(await byWords(store, "gadget")), ["const other_gadget = 2;"]);
  });

  add("a chunk is found by its symbol", async ({ store, signal }) => {
    const method = chunk("a.ts", 1, "return 1;", { symbol: "Ledger.settle", kind: "method" });
    await store.put([{ path: "a.ts", hash: "00", chunks: [method, chunk("a.ts", 2, "return 2;")] }], signal);
    assert.deepEqual(textsOf(await byWords(store, "settle")), ["return 1;"]);
  });

  add("a query without matches or without words finds nothing", async ({ store, signal }) => {
    await store.put(PROJECT, signal);
    for (const query of ["quux", "", "   ", "!?", '"', "'", "\u0000", "😀"])
      assert.deepEqual(await byWords(store, query), [], query);
  });

  add("special characters of a query are treated as plain words", async ({ store, signal }) => {
    await store.put(PROJECT, signal);
    for (const query of [
      '"walk',
      "walk*",
      "NOT walk",
      "walk)",
      "text:walk",
      "^walk",
      "-walk",
      "a NEAR(walk",
      "walk'",
    ])
      assert.ok(textsOf(await byWords(store, query)).includes("walk the tree"), query);
    const long = `walk ${"lorem ipsum ".repeat(5000)}`;
    assert.deepEqual(textsOf(await byWords(store, long)), ["walk the tree"]);
  });
}

function vectorQueries(add: AddSearch): void {
  add("a vector finds its neighbours by cosine, in code and in documentation", async ({ store, signal }) => {
    await store.put(PROJECT, signal);
    const [http, tree, guide] = PROJECT;
    assert.ok(http?.chunks[0] && tree?.chunks[0] && guide?.chunks[0]);
    const vectors = [
      [http.chunks[0].id, axis(0)],
      [tree.chunks[0].id, axis(1).map((value) => value * 20)],
      [guide.chunks[0].id, axis(0, 1)],
    ] as const;
    await store.embed(new Map(vectors), signal);
    const found = await byVector(store, axis(0));
    assert.deepEqual(byCosine(found).slice(0, 2), [http.chunks[0].text, guide.chunks[0].text]);
    for (const { lexical, dense } of found) {
      assert.equal(lexical, null);
      assert.ok(dense !== null && dense <= 1.0001 && dense >= -1.0001, String(dense));
    }
    const cosines = found.map(({ chunk, dense }) => [chunk.id, Number(dense)] as const);
    const cosine = new Map(cosines);
    assert.ok(Math.abs(Number(cosine.get(http.chunks[0].id)) - 1) < 1e-4);
    assert.ok(Math.abs(Number(cosine.get(guide.chunks[0].id)) - Math.SQRT1_2) < 1e-4);
    const away = await byVector(store, axis(1));
    assert.equal(byCosine(away)[0], tree.chunks[0].text);
  });

  add(
    "with words and vector, a chunk found by both has both scores and comes first",
    async ({ store, signal }) => {
      await store.put(PROJECT, signal);
      const [http, tree] = PROJECT;
      assert.ok(http?.chunks[0] && tree?.chunks[0]);
      await store.embed(
        new Map([
          [http.chunks[0].id, axis(0)],
          [tree.chunks[0].id, axis(1)],
        ]),
        signal,
      );
      const found = await store.candidates({ text: "parse request", vector: axis(0) }, 10, signal);
      const best = found[0];
      assert.equal(best?.chunk.text, "parse the header of a request");
      assert.ok(best.lexical !== null && best.dense !== null);
      const words = found.find(({ chunk }) => chunk.role === "docs");
      assert.ok(words !== undefined && words.lexical !== null && words.dense === null);
      for (const { lexical, dense } of found) assert.ok(lexical !== null || dense !== null);
      assert.equal(new Set(found.map(({ chunk }) => chunk.id)).size, found.length);
    },
  );
}

function orderCases(add: AddSearch): void {
  add("the same query gives the same results, also among identical chunks", async ({ store, signal }) => {
    const alike = Array.from({ length: 30 }, (_, at) => file(`${at}.ts`, ["all the same words"]));
    await store.put(alike, signal);
    await store.embed(new Map(alike.flatMap(({ chunks }) => chunks).map(({ id }) => [id, axis(2)])), signal);
    for (const vector of [null, axis(2)])
      for (const text of ["same words", ""]) {
        const first = await store.candidates({ text, vector }, 7, signal);
        assert.deepEqual(await store.candidates({ text, vector }, 7, signal), first);
        const half = text === "" ? (vector === null ? 0 : 7) : 7;
        assert.ok(first.length >= half && first.length <= 14, `${first.length}`);
      }
  });

  add("results by words alone and by vector alone are sorted by score", async ({ store, signal }) => {
    const lines = Array.from({ length: 12 }, (_, at) => `tree ${"leaf ".repeat(at)}of ${at}`);
    const whole = file("a.ts", lines);
    await store.put([whole], signal);
    await store.embed(new Map(whole.chunks.map(({ id }, at) => [id, axis(0, at / 10)])), signal);
    const words = (await byWords(store, "leaf tree", 20)).map(({ lexical }) => Number(lexical));
    assert.deepEqual(
      words,
      words.toSorted((one, other) => other - one),
    );
    assert.equal(words.length, 12);
    const cosines = (await byVector(store, axis(0), 20)).map(({ dense }) => Number(dense));
    assert.deepEqual(
      cosines,
      cosines.toSorted((one, other) => other - one),
    );
    assert.equal(cosines.length, 12);
  });
}

function limitCases(add: AddSearch): void {
  add("the limit applies to each half", async ({ store, signal }) => {
    const lines = Array.from({ length: 20 }, (_, at) => `common word ${at}`);
    const code = file("a.ts", lines);
    await store.put([code, file("b.md", lines, { role: "docs" })], signal);
    await store.embed(new Map(code.chunks.map(({ id }, at) => [id, axis(at % 4, 0.1)])), signal);
    for (const limit of [0, 1, 5, 100]) {
      const words = await byWords(store, "common", limit);
      assert.equal(words.length, Math.min(limit, 40));
      const vectors = await byVector(store, axis(0), limit);
      assert.equal(vectors.length, Math.min(limit, 20));
      const both = await store.candidates({ text: "common", vector: axis(0) }, limit, signal);
      assert.ok(both.filter(({ lexical }) => lexical !== null).length <= limit);
      assert.ok(both.length >= Math.min(limit, 40) && both.length <= 2 * limit, `${limit}: ${both.length}`);
    }
  });
}
