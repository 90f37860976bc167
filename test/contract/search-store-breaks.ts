import assert from "node:assert/strict";
import { setImmediate as turn } from "node:timers/promises";
import type { SearchStore, ServerStore } from "../../src/search/search-store.ts";
import type { AddSearch } from "./search-store-suite.ts";
import { axis, byWords, chunksOf, file, wordFor } from "./search-store-words.ts";

const versionOf = (version: string) =>
  Array.from({ length: 60 }, (_, at) =>
    file(
      `f${at}.${at % 3 === 0 ? "md" : "ts"}`,
      Array.from({ length: 8 }, (_, line) => `${version} ${wordFor(at)} line ${line}`),
      { role: at % 3 === 0 ? "docs" : "source" },
    ),
  );

/**
 * Checks that each held file has all chunks of the version with its hash. Chunks of other versions may exist beside
 * them. Resolves to the number of held files.
 */
export async function assertWhole(
  store: SearchStore | ServerStore,
  versions: readonly (readonly ReturnType<typeof file>[])[],
): Promise<number> {
  const held = await store.fileHashes(new AbortController().signal);
  const whole = [...held].map(([path, hash]) => {
    const version = versions.flat().find((file) => file.path === path && file.hash === hash);
    return version ?? assert.fail(`${path} is held as nothing that was put`);
  });
  // Finds each chunk by the word that only its file contains.
  const words = whole.map(({ chunks }) => chunks[0]?.text.split(" ")[1] ?? "");
  const found =
    "facts" in store
      ? await chunksOf(store, whole)
      : new Set((await byWords(store, words.join(" "), 2000)).map(({ chunk }) => chunk.id));
  const missing = whole.flatMap(({ chunks }) => chunks.filter(({ id }) => !found.has(id)));
  assert.deepEqual(missing, []);
  return held.size;
}

export function breakCases(add: AddSearch): void {
  add("a call cancelled beforehand is rejected and changes nothing", async ({ store, signal }) => {
    await store.put([file("a.ts", ["alpha"])], signal);
    const gone = AbortSignal.abort();
    const [whole] = versionOf("first");
    assert.ok(whole);
    const asked: readonly (() => Promise<unknown>)[] = [
      () => store.put([whole], gone),
      () => store.remove(["a.ts"], gone),
      () => store.fileHashes(gone),
      () => store.unembedded(1, gone),
      () => store.embed(new Map([[whole.chunks[0]?.id ?? "", axis(0)]]), gone),
      () => store.candidates({ text: "alpha", vector: null }, 1, gone),
      () => store.counts(gone),
      () => store.clear(gone),
    ];
    for (const ask of asked) await assert.rejects(ask(), String(ask));
    assert.deepEqual(await store.counts(signal), { files: 1, chunks: 1, embedded: 0 });
  });

  for (const turns of [0, 1, 3, 10, 40])
    add(
      `after a put is interrupted at turn ${turns} each file is complete or missing, and another put repairs it`,
      async (context) => {
        const { store, signal } = context;
        const [first, second] = [versionOf("first"), versionOf("second")];
        await store.put(first, signal);
        const leave = new AbortController();
        const putting = store.put(second, leave.signal).then(
          () => "done",
          () => "broken off",
        );
        for (let turned = 0; turned < turns; turned += 1) await turn();
        leave.abort();
        await putting;
        await assertWhole(store, [first, second]);
        await store.put(second, signal);
        assert.equal(await assertWhole(store, [second]), 60);
        assert.deepEqual(await store.counts(signal), { files: 60, chunks: 480, embedded: 0 });
        assert.deepEqual(await byWords(store, "first", 500), []);
      },
    );

  add("concurrent writes and queries do not disturb each other", async ({ store, signal }) => {
    const files = versionOf("first");
    const parts = [files.slice(0, 20), files.slice(20, 40), files.slice(40)];
    const asking = Array.from({ length: 10 }, () =>
      byWords(store, `${wordFor(1)} ${wordFor(21)} ${wordFor(41)}`, 50),
    );
    await Promise.all([...parts.map((part) => store.put(part, signal)), ...asking]);
    assert.equal(await assertWhole(store, [files]), 60);
    assert.deepEqual(await store.counts(signal), { files: 60, chunks: 480, embedded: 0 });
  });
}
