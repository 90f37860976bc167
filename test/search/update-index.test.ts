import assert from "node:assert/strict";
import { appendFile, mkdir, rename, rm, stat, utimes, writeFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import test from "node:test";
import { claimIndex } from "../../src/search/index-folders.ts";
import type { Cutting } from "../../src/search/files/cutting.ts";
import type { IndexProgress } from "../../src/search/update-index.ts";
import { OpenedIndex } from "../../src/search/open-index.ts";
import type { SearchStore } from "../../src/search/search-store.ts";
import { hostBox } from "../fakes/host-box.ts";
import type { SearchMemory } from "../fakes/search-store.ts";
import { chunksIn, gnu as skip, isFresh, meansOver, updated } from "../fixtures/index.ts";
import { fc } from "../fixtures/property.ts";
import { type Scratch, scratch } from "../fixtures/scratch.ts";

const FILES = {
  "work/a.ts": "export const alpha = 1;\n",
  "work/b/c.py": "def gamma():\n    return 3\n",
  "work/.env": "KEY=1\n",
  "work/bin.dat": "\0\0\0",
  "work/empty.ts": "",
  "work/node_modules/x/i.js": "exports.x = 1;\n",
};

/** Waits until stamps can be trusted: files younger than their clock's resolution are read again. */
const settle = (): Promise<void> => sleep(150);

/** An index of these files, made when all their stamps could be trusted. */
async function indexed() {
  const place = await scratch(FILES);
  const memory: SearchMemory = new Map();
  const means = meansOver(memory);
  await settle();
  await updated(place, means);
  return { place, memory, means, [Symbol.asyncDispose]: () => place[Symbol.asyncDispose]() };
}

test("files are indexed or skipped with a reason, and excluded ones do not appear", { skip }, async () => {
  await using place = await scratch(FILES);
  const memory: SearchMemory = new Map();
  const first = await updated(place, meansOver(memory));
  assert.deepEqual(first, { files: 2, chunks: 2, skipped: { secret: 1, binary: 1 }, changed: 2, removed: 0 });
  assert.deepEqual(chunksIn(memory), [
    "a.ts:1-1 export const alpha = 1;\n",
    "b/c.py:1-2 def gamma():\n    return 3\n",
  ]);
});

test("only changed files are cut again, judged by stamp and then by content", { skip }, async () => {
  await using index = await indexed();
  const { place, means } = index;
  assert.equal(await isFresh(place, means), true);
  await utimes(place.at("work/a.ts"), 1, 1);
  assert.equal(await isFresh(place, means), false);
  await settle();
  assert.equal((await updated(place, means)).changed, 0, "only the times differ");
  assert.equal(await isFresh(place, means), true);
  await appendFile(place.at("work/a.ts"), "export const beta = 2;\n");
  await rm(place.at("work/b"), { recursive: true });
  await settle();
  const { changed, removed, files } = await updated(place, means);
  assert.deepEqual([changed, removed, files], [1, 1, 1]);
  assert.equal(await isFresh(place, means), true);
});

test("a store that was emptied unnoticed is not fresh, and is filled again", { skip }, async () => {
  await using index = await indexed();
  const { place, memory, means } = index;
  const before = chunksIn(memory);
  memory.clear();
  assert.equal(await isFresh(place, means), false);
  assert.equal((await updated(place, means)).changed, 2);
  assert.deepEqual([chunksIn(memory), await isFresh(place, means)], [before, true]);
});

test("a file as recent as the last look is looked at again", { skip }, async (t) => {
  await using place = await scratch(FILES);
  const means = meansOver(new Map());
  await writeFile(place.at("work/new.ts"), "export const fresh = 1;\n");
  const { ctimeMs } = await stat(place.at("work/new.ts"));
  t.mock.timers.enable({ apis: ["Date"], now: ctimeMs + 50 });
  await updated(place, means);
  assert.equal(await isFresh(place, means), false);
  t.mock.timers.setTime(ctimeMs + 3000);
  await updated(place, means);
  assert.equal(await isFresh(place, means), true);
});

test(
  "after an incomplete update missing and surplus files in the store are corrected",
  { skip },
  async () => {
    await using index = await indexed();
    const { place, memory, means } = index;
    const whole = chunksIn(memory);
    for (const { files } of memory.values()) {
      const other = files.get("b/c.py") ?? assert.fail();
      files.delete("a.ts");
      files.set("gone.ts", { ...other, path: "gone.ts" });
      files.set("gone-too.ts", { ...other, path: "gone-too.ts" });
    }
    await updated(place, means);
    assert.deepEqual(chunksIn(memory), whole);
  },
);

/** Fails after this many writes, like a kill: the last write is lost, or complete. */
function breaking(store: SearchStore, left: { writes: number }, keeps: boolean): SearchStore {
  const around = async (work: () => Promise<void>): Promise<void> => {
    left.writes -= 1;
    if (left.writes < 0) throw new Error("broken");
    if (left.writes > 0 || keeps) await work();
    if (left.writes === 0) throw new Error("broken");
  };
  return {
    ...store,
    put: (files, signal) => around(() => store.put(files, signal)),
    remove: (paths, signal) => around(() => store.remove(paths, signal)),
  };
}

type Step =
  | { readonly kind: "write"; readonly at: number; readonly text: number }
  | { readonly kind: "remove" | "move"; readonly at: number }
  | { readonly kind: "update"; readonly writes: number; readonly keeps: boolean };

const at = fc.nat(11);
const STEPS = fc.array(
  fc.oneof(
    fc.record({ kind: fc.constant("write" as const), at, text: fc.nat(99) }),
    fc.record({ kind: fc.constantFrom("remove" as const, "move" as const), at }),
    fc.record({ kind: fc.constant("update" as const), writes: fc.nat(3), keeps: fc.boolean() }),
  ),
  { maxLength: 14 },
);

const nameOf = (number: number): string =>
  number % 3 === 0 ? `f${number}.ts` : `d${number % 4}/f${number}.ts`;

async function done(place: Scratch, step: Exclude<Step, { kind: "update" }>): Promise<void> {
  const file = place.at("work", nameOf(step.at));
  if (step.kind === "write") {
    await mkdir(place.at("work", `d${step.at % 4}`), { recursive: true });
    await writeFile(file, `export const value${step.text} = ${step.text};\n`);
  } else if (step.kind === "remove") await rm(file, { force: true });
  else await rename(file, `${file.slice(0, -3)}-moved.ts`).catch(() => undefined);
}

test(
  "after any number of interrupted updates, a completed one gives the same index as a fresh one",
  { skip },
  async () => {
    await fc.assert(
      fc.asyncProperty(STEPS, async (steps) => {
        await using place = await scratch({ "work/keep.ts": "export const keep = 1;\n" });
        const memory: SearchMemory = new Map();
        const means = meansOver(memory);
        for (const step of steps) {
          if (step.kind !== "update") await done(place, step);
          else {
            const left = { writes: step.writes };
            const broken = {
              ...means,
              openStore: async (opening: Parameters<typeof means.openStore>[0]) =>
                breaking(await means.openStore(opening), left, step.keeps),
            };
            await updated(place, broken).catch((thrown: unknown) => {
              if (!(thrown instanceof Error) || thrown.message !== "broken") throw thrown;
            });
          }
        }
        await updated(place, means);
        const fresh: SearchMemory = new Map();
        await rm(place.at("state"), { recursive: true });
        await updated(place, meansOver(fresh));
        assert.deepEqual(chunksIn(memory), chunksIn(fresh));
      }),
      { numRuns: 15 },
    );
  },
);

test(
  "surplus files in the store are removed only once the index is marked incomplete",
  { skip },
  async () => {
    await using index = await indexed();
    const { place, memory, means } = index;
    const whole = chunksIn(memory);
    for (const { files } of memory.values()) {
      const other = files.get("b/c.py") ?? assert.fail();
      files.set("gone.ts", { ...other, path: "gone.ts" });
      files.set("a.ts", { path: "a.ts", hash: "0".repeat(64), chunks: [] });
    }
    const openStore: typeof means.openStore = async (opening) =>
      breaking(await means.openStore(opening), { writes: 1 }, true);
    await assert.rejects(updated(place, { ...means, openStore }), /broken/);
    await updated(place, means);
    assert.deepEqual(chunksIn(memory), whole);
  },
);

/** The files of a store that are certainly on disk: those present at the last flush. */
const filesIn = (memory: SearchMemory) =>
  new Map([...memory].map(([key, { files }]) => [key, new Map(files)]));

test(
  "after a power cut in which the store lost more than the catalog, everything is read again",
  { skip },
  async () => {
    for (const writes of [1, 2, 3, Number.POSITIVE_INFINITY]) {
      await using index = await indexed();
      const { place, memory, means } = index;
      const disk = { holds: filesIn(memory) };
      const left = { writes };
      const flushing = {
        ...means,
        openStore: async (opening: Parameters<typeof means.openStore>[0]) => {
          const store = await means.openStore(opening);
          const flush: SearchStore["flush"] = (signal) => (
            (disk.holds = filesIn(memory)),
            store.flush(signal)
          );
          return breaking({ ...store, flush }, left, true);
        },
      };
      await appendFile(place.at("work/a.ts"), "export const beta = 2;\n");
      await rename(place.at("work/b/c.py"), place.at("work/b/d.py"));
      await settle();
      await updated(place, flushing).catch((thrown: unknown) => {
        if (!(thrown instanceof Error) || thrown.message !== "broken") throw thrown;
      });
      for (const [key, { files }] of memory) {
        files.clear();
        for (const [at, file] of disk.holds.get(key) ?? []) files.set(at, file);
      }
      await updated(place, means);
      assert.deepEqual(chunksIn(memory), [
        "a.ts:1-2 export const alpha = 1;\nexport const beta = 2;\n",
        "b/d.py:1-2 def gamma():\n    return 3\n",
      ]);
    }
  },
);

test("many files cut by threads give the same result as few", { skip }, async () => {
  const names = Array.from({ length: 120 }, (_, number) => `work/f${number}.ts`);
  const files = Object.fromEntries(names.map((name, number) => [name, `export const v${number} = 1;\n`]));
  await using place = await scratch(files);
  const memory: SearchMemory = new Map();
  await updated(place, meansOver(memory));
  assert.deepEqual(
    chunksIn(memory),
    names.map((name, number) => `${name.slice(5)}:1-1 export const v${number} = 1;\n`).toSorted(),
  );
});

test("an update cancelled in the middle leaves the index marked incomplete", { skip }, async () => {
  await using place = await scratch(FILES);
  const means = meansOver(new Map());
  const stop = new AbortController();
  const stopping = {
    ...means,
    openStore: async (opening: Parameters<typeof means.openStore>[0]) => {
      const store = await means.openStore(opening);
      const put: SearchStore["put"] = (files, signal) => (
        stop.abort(new Error("stop")),
        store.put(files, signal)
      );
      return { ...store, put };
    },
  };
  await assert.rejects(updated(place, stopping, stop.signal));
  assert.equal(await isFresh(place, means), false);
});

test("an update can be aborted even if cutting a file never ends", { skip, timeout: 20_000 }, async () => {
  await using place = await scratch(FILES);
  const stop = new AbortController();
  const never: Cutting = {
    cut: () => new Promise(() => undefined),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
  const means = meansOver(new Map());
  const at = claimIndex(place.at("state"), place.at("work"));
  await using index = await OpenedIndex.write(means, at, { patienceMs: 0, signal: stop.signal });
  // When everything is read, and only the cutting is awaited.
  const onProgress = ({ done, total }: IndexProgress): void =>
    void (done === total && setTimeout(() => stop.abort(new Error("stop")), 100));
  const given = index.update(hostBox(place.at("work")), { kept: never, onProgress }, stop.signal);
  await assert.rejects(given, { message: "stop" });
  assert.equal(index.facts.whole, false);
});
