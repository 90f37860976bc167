import assert from "node:assert/strict";
import { openEmbeddedStore } from "../../src/search/stores/open-store.ts";
import { answersIn } from "../../src/search/rank-hits.ts";
import type { SearchStore, StoredFile } from "../../src/search/search-store.ts";
import { hashVector } from "../fakes/embedder.ts";
import { scratch } from "../fixtures/scratch.ts";
import type { AddSearch } from "./search-store-suite.ts";
import { chunk, file, MODELLED, sha256, wordFor } from "./search-store-words.ts";

const THEMES = ["parse header", "walk tree", "close socket", "retry request", "lock file", "count words"];

/** Files of several roles and lengths with many words in common. */
const PROJECT: readonly StoredFile[] = Array.from({ length: 48 }, (_, at) => {
  const theme = THEMES[at % THEMES.length] ?? "";
  const role = at % 8 === 7 ? "test" : at % 11 === 10 ? "docs" : "source";
  const path = `${role === "docs" ? "docs" : "src"}/${theme.replace(" ", "-")}/part${at}.ts`;
  const texts = Array.from({ length: 1 + (at % 5) }, (_, line) =>
    [theme, ...Array.from({ length: (at * (line + 3)) % 9 }, (_, word) => wordFor((at + word * line) % 13))]
      .concat(THEMES[(at + line) % THEMES.length] ?? "", `${at}`)
      .join(" "),
  );
  const chunks = texts.map((text, line) =>
    chunk(path, line + 1, text, { role, symbol: line === 0 ? `${theme.replace(" ", "_")}_${at}` : null }),
  );
  return { path, hash: sha256(texts.join("\n")), chunks };
});

const QUESTIONS = [
  "parse the header of a request",
  "walk tree",
  "where is the file locked?",
  "lock_file_4",
  "src/retry-request/part3.ts",
  `retry ${wordFor(3)} ${wordFor(5)}`,
  "tests for counting words",
  "socket",
  "nothing of this is there",
];

const vectorOf = (text: string): Float32Array => hashVector(text, MODELLED.vectors?.dimension ?? 0);

async function fillStore(store: SearchStore, signal: AbortSignal): Promise<void> {
  await store.put(PROJECT, signal);
  await store.put([file("src/gone.ts", ["parse header gone"]), ...PROJECT.slice(0, 3)], signal);
  await store.remove(["src/gone.ts"], signal);
  // One chunk in three has no vector: an index may be embedded in part.
  const some = PROJECT.flatMap(({ chunks }) => chunks).filter((_, at) => at % 3 > 0);
  await store.embed(new Map(some.map(({ id, text }) => [id, vectorOf(text)])), signal);
}

export function alikeCases(add: AddSearch): void {
  add(
    "the same queries give the same results in the same order as in the embedded store",
    async (context) => {
      const { store, signal } = context;
      await using place = await scratch();
      await using embedded = openEmbeddedStore(place.at("index"), MODELLED);
      await fillStore(store, signal);
      await fillStore(embedded, signal);
      let found = 0;
      for (const text of QUESTIONS)
        for (const vector of [null, vectorOf(text)]) {
          const asked = { text, vector, limit: 10 };
          const here = (await answersIn(embedded, asked, signal)).map(
            ({ path, start }) => `${path}:${start}`,
          );
          const there = (await answersIn(store, asked, signal)).map(({ path, start }) => `${path}:${start}`);
          assert.deepEqual(there, here, `${text}, ${vector === null ? "words" : "vectors"}`);
          found += here.length;
        }
      assert.ok(found > QUESTIONS.length * 10, `${found}`);
    },
  );
}
