import assert from "node:assert/strict";
import { appendFile, chmod, mkdir, rename, rm, symlink, writeFile } from "node:fs/promises";
import test from "node:test";
import type { SearchMemory } from "../fakes/search-store.ts";
import { gnu as skip } from "../fixtures/index.ts";
import { type Scratch, scratch } from "../fixtures/scratch.ts";
import { assertLikeFresh, FILES, later, updated } from "./in-part.ts";

// own process: it starts many programs, and each start costs by the memory of the process

interface Row {
  readonly what: string;
  readonly change: (at: (name: string) => string, place: Scratch) => Promise<unknown>;
  readonly listed: readonly string[];
}

const ROWS: readonly Row[] = [
  { what: "nothing", change: () => Promise.resolve(), listed: [] },
  {
    what: "a text",
    change: (at) => appendFile(at("one/deep/c.ts"), "more"),
    listed: [".", "./one", "./one/deep"],
  },
  { what: "a mode", change: (at) => chmod(at("a.ts"), 0o600), listed: ["."] },
  { what: "a new file", change: (at) => writeFile(at("one/n.ts"), "new"), listed: [".", "./one"] },
  { what: "a removed file", change: (at) => rm(at("two/d.ts")), listed: [".", "./two"] },
  {
    what: "a removed folder",
    change: (at) => rm(at("one"), { recursive: true }),
    listed: ["."],
  },
  {
    what: "a new folder",
    change: (_, place) => place.write("work/one/new/er/n.ts", "new"),
    listed: [".", "./one", "./one/new/**"],
  },
  {
    what: "a renamed folder",
    change: (at) => rename(at("one"), at("three")),
    listed: [".", "./three/**"],
  },
  {
    what: "a new folder without indexed files",
    change: (_, place) => place.write("work/two/logs/x.log", "log"),
    listed: [],
  },
  {
    what: "a link replacing a file",
    change: async (at) => {
      await rm(at("two/d.ts"));
      await symlink("../a.ts", at("two/d.ts"));
    },
    listed: [".", "./two"],
  },
  {
    what: "a link replacing a folder",
    change: async (at) => {
      await rename(at("one"), at("../outside"));
      await symlink("../outside", at("one"));
    },
    listed: ["."],
  },
  {
    what: "a folder replacing a file",
    change: async (at) => {
      await rm(at("a.ts"));
      await mkdir(at("a.ts"));
      await writeFile(at("a.ts/in.ts"), "in it");
    },
    listed: [".", "./a.ts/**"],
  },
  { what: "names like options", change: (at) => mkdirWith(at("-delete")), listed: [".", "./-delete/**"] },
  { what: "other rules", change: (at) => appendFile(at("two/.gitignore"), "d.ts\n"), listed: ["./**"] },
  { what: "removed rules", change: (at) => rm(at("two/.gitignore")), listed: ["./**"] },
  { what: "new rules", change: (at) => writeFile(at("one/.gitignore"), "deep\n"), listed: ["./**"] },
  {
    what: "new rules in a new folder",
    change: async (at) => {
      await mkdirWith(at("four"));
      await writeFile(at("four/.gitignore"), "*\n");
    },
    listed: ["./**"],
  },
  { what: "own rules", change: (at) => writeFile(at(".harnessignore"), "one\n"), listed: ["./**"] },
  {
    what: "a name that is not text",
    change: (at) => writeFile(Buffer.from(`${at("one")}/bad\xff.ts`, "latin1"), "bad"),
    listed: ["./**"],
  },
];

async function mkdirWith(folder: string): Promise<void> {
  await mkdir(folder);
  await writeFile(`${folder}/in.ts`, "in it");
}

for (const { what, change, listed } of ROWS)
  test(`changed: ${what}; listed: ${listed.join(", ") || "nothing"}`, { skip }, async (t) => {
    await using place = await scratch(FILES);
    const memory: SearchMemory = new Map();
    later(t);
    assert.deepEqual((await updated(place, { memory })).listed, ["./**"]);
    await change((name) => place.at("work", name), place);
    const told = await updated(place, { memory });
    assert.deepEqual(told.listed.toSorted(), listed);
    await assertLikeFresh(place, memory, told);
    await assertLikeFresh(place, memory, await updated(place, { memory }));
  });

const RACES: readonly Omit<Row, "listed">[] = [
  {
    what: "a folder that has become a link",
    change: async (at) => {
      await rename(at("one"), at("../outside"));
      await symlink("../outside", at("one"));
    },
  },
  { what: "a folder that is gone", change: (at) => rm(at("one"), { recursive: true }) },
  { what: "new rules", change: (at) => writeFile(at("one/.gitignore"), "deep\n") },
  { what: "other rules above it", change: (at) => writeFile(at(".harnessignore"), "one\n") },
  { what: "rules in a folder that is new", change: (at) => writeFile(at("new/.gitignore"), "deep\n") },
  { what: "a folder that has come back", change: (at) => rename(at("../away"), at("two")) },
];

for (const { what, change } of RACES)
  test(`changed between look and listing: ${what}; then everything is listed`, { skip }, async (t) => {
    await using place = await scratch(FILES);
    const memory: SearchMemory = new Map();
    const at = (name: string): string => place.at("work", name);
    later(t);
    await updated(place, { memory });
    await appendFile(at("one/b.ts"), "more");
    if (what.endsWith("new")) await place.write("work/new/deep/e.ts", "export const e = 1;\n");
    if (what.endsWith("back")) await rename(at("two"), at("../away"));
    const told = await updated(place, { memory, meanwhile: () => change(at, place) });
    assert.equal(told.listed.at(-1), "./**");
    await assertLikeFresh(place, memory, told);
  });

test("the box learns no name that it did not report itself", { skip }, async (t) => {
  await using place = await scratch(FILES);
  const memory: SearchMemory = new Map();
  later(t);
  await updated(place, { memory });
  // As if the host had read another folder than the box's: what it has found there is of no use in a box.
  const gone = () => rm(place.at("work/one/private"), { recursive: true });
  await place.write("work/one/private/name.ts", "text");
  const { listed, changed } = await updated(place, { memory, meanwhile: gone });
  assert.deepEqual([listed, changed], [[".", "./one"], 0]);
});

test("after an incomplete update or a loss in the store everything is listed", { skip }, async (t) => {
  await using place = await scratch(FILES);
  const memory: SearchMemory = new Map();
  later(t);
  await updated(place, { memory });
  for (const { files } of memory.values()) files.delete("a.ts");
  const told = await updated(place, { memory });
  assert.deepEqual([told.listed, told.changed], [["./**"], 1]);
  await assertLikeFresh(place, memory, told);
});

test("beyond a number of changed folders everything is listed", { skip }, async (t) => {
  const names = Array.from({ length: 60 }, (_, number) => `work/d${number}/f.ts`);
  await using place = await scratch(Object.fromEntries(names.map((name) => [name, "text"])));
  const memory: SearchMemory = new Map();
  later(t);
  await updated(place, { memory });
  for (const name of names) await appendFile(place.at(name), "more");
  const told = await updated(place, { memory });
  assert.deepEqual([told.listed, told.changed], [["./**"], 60]);
  await assertLikeFresh(place, memory, told);
});
