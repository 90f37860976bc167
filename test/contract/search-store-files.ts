import assert from "node:assert/strict";
import type { AddSearch } from "./search-store-suite.ts";
import { byWords, chunk, file, sha256, textsOf, wordFor } from "./search-store-words.ts";

const NOTHING = { files: 0, chunks: 0, embedded: 0 };

export function fileCases(add: AddSearch): void {
  putCases(add);
  replaceCases(add);
  removeCases(add);
  sizeCases(add);
}

function putCases(add: AddSearch): void {
  add("a new index is empty, and queries on it succeed", async ({ store, signal }) => {
    assert.deepEqual(await store.counts(signal), NOTHING);
    assert.deepEqual([...(await store.fileHashes(signal))], []);
    assert.deepEqual(await store.unembedded(10, signal), []);
    assert.deepEqual(await byWords(store, "anything"), []);
    await store.remove(["src/nowhere.ts"], signal);
    await store.clear(signal);
  });

  add("putting, removing or embedding nothing changes nothing", async ({ store, signal }) => {
    await store.put([], signal);
    await store.remove([], signal);
    await store.embed(new Map(), signal);
    assert.deepEqual(await store.counts(signal), NOTHING);
  });

  add("a stored file is listed by its hash and returned as it was", async ({ store, signal }) => {
    const method = chunk("src/a b.ts", 3, 'close(): void {\n\t"quoted" \\ \u0001 ünïcode 😀 }', {
      end: 4,
      kind: "method",
      symbol: "Store.close",
      trust: "trusted",
      role: "test",
    });
    const plain = chunk("src/a b.ts", 1, "");
    await store.put([{ path: "src/a b.ts", hash: sha256("x"), chunks: [plain, method] }], signal);
    assert.deepEqual([...(await store.fileHashes(signal))], [["src/a b.ts", sha256("x")]]);
    assert.deepEqual(await store.counts(signal), { files: 1, chunks: 2, embedded: 0 });
    assert.deepEqual(
      (await byWords(store, "quoted")).map(({ chunk }) => chunk),
      [method],
    );
  });

  add("identical chunks with the same id are accepted", async (context) => {
    const { store, signal } = context;
    const part = chunk("min.js", 1, "alike");
    await store.put([{ path: "min.js", hash: sha256("x"), chunks: [part, part] }], signal);
    assert.deepEqual([...(await store.fileHashes(signal)).keys()], ["min.js"]);
    assert.deepEqual(new Set(textsOf(await byWords(store, "alike"))), new Set(["alike"]));
  });

  add("a file without chunks is listed too", async ({ store, signal }) => {
    await store.put([file("empty.txt", []), file("a.ts", ["one"])], signal);
    assert.deepEqual(
      await store.fileHashes(signal),
      new Map([
        ["empty.txt", sha256("")],
        ["a.ts", sha256("one")],
      ]),
    );
    assert.deepEqual(await store.counts(signal), { files: 2, chunks: 1, embedded: 0 });
  });

  add("paths are distinguished character by character", async ({ store, signal }) => {
    const paths = [
      "a",
      "A",
      "a/b.ts",
      "a.ts",
      "ä.ts",
      "a\u0308.ts",
      "日本/語 🎌.md",
      "a'b\"c\\d.ts",
      "%",
      "*",
      "$x.{y}",
    ];
    await store.put(
      paths.map((path) => file(path, [`in ${path}`])),
      signal,
    );
    assert.deepEqual([...(await store.fileHashes(signal)).keys()].toSorted(), paths.toSorted());
    await store.remove(["a", "%", "*", "ä.ts"], signal);
    assert.deepEqual(
      [...(await store.fileHashes(signal)).keys()].toSorted(),
      paths.filter((path) => !["a", "%", "*", "ä.ts"].includes(path)).toSorted(),
    );
  });
}

function replaceCases(add: AddSearch): void {
  add("putting a file replaces everything stored for its path", async ({ store, signal }) => {
    await store.put([file("a.ts", ["alpha", "beta", "gamma"]), file("b.ts", ["delta"])], signal);
    await store.put([file("a.ts", ["alpha", "epsilon"])], signal);
    assert.equal((await store.fileHashes(signal)).get("a.ts"), sha256("alpha\nepsilon"));
    assert.deepEqual(await store.counts(signal), { files: 2, chunks: 3, embedded: 0 });
    for (const gone of ["beta", "gamma"]) assert.deepEqual(await byWords(store, gone), [], gone);
    for (const there of ["alpha", "epsilon", "delta"])
      assert.deepEqual(textsOf(await byWords(store, there)), [there]);
  });

  add("putting the same file again changes nothing", async ({ store, signal }) => {
    const files = [file("a.ts", ["alpha", "beta"]), file("empty", [])];
    await store.put(files, signal);
    await store.put(files, signal);
    assert.deepEqual(await store.counts(signal), { files: 2, chunks: 2, embedded: 0 });
    assert.equal((await store.fileHashes(signal)).size, 2);
  });

  add("a file that became empty or documentation has only its new chunks", async (context) => {
    const { store, signal } = context;
    await store.put([file("a", ["alpha"]), file("b", ["beta"])], signal);
    await store.put([file("a", []), file("b", ["beta"], { role: "docs", kind: "section" })], signal);
    assert.deepEqual(await store.counts(signal), { files: 2, chunks: 1, embedded: 0 });
    assert.deepEqual(await byWords(store, "alpha"), []);
    assert.deepEqual(
      (await byWords(store, "beta")).map(({ chunk }) => chunk.role),
      ["docs"],
    );
    assert.equal((await store.fileHashes(signal)).get("a"), sha256(""));
  });

  add("new metadata of a chunk replaces the old, though its text is the same", async ({ store, signal }) => {
    await store.put([file("a.ts", ["alpha"])], signal);
    await store.put([{ ...file("a.ts", ["alpha"], { trust: "trusted" }), hash: sha256("other") }], signal);
    assert.equal((await store.fileHashes(signal)).get("a.ts"), sha256("other"));
    assert.deepEqual(
      (await byWords(store, "alpha")).map(({ chunk }) => chunk.trust),
      ["trusted"],
    );
  });
}

function removeCases(add: AddSearch): void {
  add("a removed file is gone, and the rest stays", async ({ store, signal }) => {
    await store.put(
      [file("a.ts", ["alpha"]), file("b.md", ["beta"], { role: "docs" }), file("c", [])],
      signal,
    );
    await store.remove(["a.ts", "c", "never/there.ts"], signal);
    assert.deepEqual([...(await store.fileHashes(signal)).keys()], ["b.md"]);
    assert.deepEqual(await store.counts(signal), { files: 1, chunks: 1, embedded: 0 });
    assert.deepEqual(await byWords(store, "alpha"), []);
    await store.remove(["b.md"], signal);
    assert.deepEqual(await store.counts(signal), NOTHING);
  });

  add("a removed file can be put again", async ({ store, signal }) => {
    await store.put([file("a.ts", ["alpha"])], signal);
    await store.remove(["a.ts"], signal);
    await store.put([file("a.ts", ["alpha"])], signal);
    assert.deepEqual(textsOf(await byWords(store, "alpha")), ["alpha"]);
    assert.equal((await store.fileHashes(signal)).size, 1);
  });

  add("after clearing the store is empty and usable", async ({ store, signal }) => {
    await store.put([file("a.ts", ["alpha"]), file("b.md", ["beta"], { role: "docs" })], signal);
    await store.clear(signal);
    assert.deepEqual(await store.counts(signal), NOTHING);
    assert.deepEqual(await byWords(store, "alpha beta"), []);
    await store.put([file("c.ts", ["gamma"])], signal);
    assert.deepEqual([...(await store.fileHashes(signal)).keys()], ["c.ts"]);
  });
}

function sizeCases(add: AddSearch): void {
  add("a file of a thousand chunks is stored, found and replaced", async ({ store, signal }) => {
    const lines = Array.from({ length: 1000 }, (_, line) => `${wordFor(line)} of the long one`);
    await store.put([file("small.ts", ["small"]), file("long.ts", lines)], signal);
    assert.deepEqual(await store.counts(signal), { files: 2, chunks: 1001, embedded: 0 });
    for (const line of [0, 499, 999])
      assert.deepEqual(textsOf(await byWords(store, wordFor(line))), [lines[line]]);
    await store.put([file("long.ts", lines.slice(0, 3))], signal);
    assert.deepEqual(await store.counts(signal), { files: 2, chunks: 4, embedded: 0 });
  });

  add("many files at once are all stored and all removed", async ({ store, signal }) => {
    const files = Array.from({ length: 1500 }, (_, at) => file(`many/${at}.ts`, [wordFor(at)]));
    await store.put(files, signal);
    assert.deepEqual(await store.fileHashes(signal), new Map(files.map(({ path, hash }) => [path, hash])));
    assert.deepEqual(textsOf(await byWords(store, wordFor(1499))), [wordFor(1499)]);
    await store.remove(
      files.map(({ path }) => path),
      signal,
    );
    assert.deepEqual(await store.counts(signal), NOTHING);
  });

  add("chunks of a hundred kilobytes are returned whole", async ({ store, signal }) => {
    const lines = Array.from({ length: 40 }, (_, line) => `${wordFor(line)} ${"é\u0001x ".repeat(20_000)}`);
    await store.put([file("big.txt", lines)], signal);
    assert.deepEqual(textsOf(await byWords(store, wordFor(39))), [lines[39]]);
    assert.equal((await store.fileHashes(signal)).size, 1);
  });
}
