import assert from "node:assert/strict";
import { appendFile, chmod, mkdir, rename, rm, symlink, truncate, writeFile } from "node:fs/promises";
import test, { type TestContext } from "node:test";
import type { CatalogFile } from "../../../src/search/catalog/rows.ts";
import { claimIndex } from "../../../src/search/catalog/workspace.ts";
import { HeldIndex } from "../../../src/search/index/held.ts";
import type { Updated } from "../../../src/search/index/update.ts";
import { hostBox } from "../../fakes/host-box.ts";
import type { SearchMemory } from "../../fakes/search-store.ts";
import { chunksIn, gnu as skip, meansOver, never } from "../../fixtures/index.ts";
import { fc } from "../../fixtures/property.ts";
import { type Scratch, scratch } from "../../fixtures/scratch.ts";

const FILES = {
  "work/a.ts": "export const a = 1;\n",
  "work/one/b.ts": "export const b = 1;\n",
  "work/one/deep/c.ts": "export const c = 1;\n",
  "work/two/d.ts": "export const d = 1;\n",
  "work/two/.gitignore": "*.log\n",
};

/** Files are old enough at once to be known by their stamps: what a test writes is never of one length twice. */
const later = (t: TestContext): void => t.mock.timers.enable({ apis: ["Date"], now: Date.now() + 3_600_000 });

interface Told extends Updated {
  /** Folders that were listed, each by itself or with all below it; the whole is a dot with all below it. */
  readonly listed: readonly string[];
  readonly catalog: readonly (readonly [string, CatalogFile])[];
}

interface Updating {
  readonly memory: SearchMemory;
  readonly state?: string;
  /** Just before the box lists. */
  readonly meanwhile?: () => Promise<unknown>;
}

async function updated(place: Scratch, { memory, state = "state", meanwhile }: Updating): Promise<Told> {
  const box = hostBox(place.at("work"));
  const listed: string[] = [];
  const exec: typeof box.exec = async (request, signal) => {
    const [program, ...words] = request.words;
    if (program === "find") {
      if (listed.length === 0) await meanwhile?.();
      const deep = words[words.indexOf("-maxdepth") + 1] !== "1";
      const starts = words.slice(0, words.indexOf("-mindepth"));
      listed.push(...starts.map((start) => (deep ? `${start}/**` : start)));
    }
    return box.exec(request, signal);
  };
  const at = claimIndex(place.at(state), place.at("work"));
  await using index = await HeldIndex.write(meansOver(memory), at, { patienceMs: 0, signal: never });
  const done = await index.update({ ...box, exec }, {}, never);
  return { ...done, listed, catalog: [...index.catalog.files()].toSorted(([a], [b]) => (a < b ? -1 : 1)) };
}

/** What one made anew says, and the same of this one. */
async function assertLikeFresh(place: Scratch, memory: SearchMemory, told: Told): Promise<void> {
  const anew: SearchMemory = new Map();
  const fresh = await updated(place, { memory: anew, state: "anew" });
  await rm(place.at("anew"), { recursive: true });
  assert.deepEqual(chunksIn(memory), chunksIn(anew));
  assert.deepEqual(told.catalog, fresh.catalog);
  const { files, chunks, skipped } = told;
  assert.deepEqual({ files, chunks, skipped }, pick(fresh));
}

const pick = ({ files, chunks, skipped }: Updated): Pick<Updated, "files" | "chunks" | "skipped"> => ({
  files,
  chunks,
  skipped,
});

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
  { what: "a file less", change: (at) => rm(at("two/d.ts")), listed: [".", "./two"] },
  {
    what: "a folder less",
    change: (at) => rm(at("one"), { recursive: true }),
    listed: ["."],
  },
  {
    what: "a new folder",
    change: (_, place) => place.write("work/one/new/er/n.ts", "new"),
    listed: [".", "./one", "./one/new/**"],
  },
  {
    what: "a folder with another name",
    change: (at) => rename(at("one"), at("three")),
    listed: [".", "./three/**"],
  },
  {
    what: "a new folder of which nothing is read",
    change: (_, place) => place.write("work/two/logs/x.log", "log"),
    listed: [],
  },
  {
    what: "a link in the place of a file",
    change: async (at) => {
      await rm(at("two/d.ts"));
      await symlink("../a.ts", at("two/d.ts"));
    },
    listed: [".", "./two"],
  },
  {
    what: "a link in the place of a folder",
    change: async (at) => {
      await rename(at("one"), at("../outside"));
      await symlink("../outside", at("one"));
    },
    listed: ["."],
  },
  {
    what: "a folder in the place of a file",
    change: async (at) => {
      await rm(at("a.ts"));
      await mkdir(at("a.ts"));
      await writeFile(at("a.ts/in.ts"), "in it");
    },
    listed: [".", "./a.ts/**"],
  },
  { what: "names like options", change: (at) => mkdirWith(at("-delete")), listed: [".", "./-delete/**"] },
  { what: "other rules", change: (at) => appendFile(at("two/.gitignore"), "d.ts\n"), listed: ["./**"] },
  { what: "rules less", change: (at) => rm(at("two/.gitignore")), listed: ["./**"] },
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
    what: "a name that is no text",
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
  { what: "a folder that has come back", change: (at) => rename(at("../away"), at("two")) },
];

for (const { what, change } of RACES)
  test(`between the look and the listing: ${what}; then the whole is listed`, { skip }, async (t) => {
    await using place = await scratch(FILES);
    const memory: SearchMemory = new Map();
    const at = (name: string): string => place.at("work", name);
    later(t);
    await updated(place, { memory });
    await appendFile(at("one/b.ts"), "more");
    if (what.endsWith("back")) await rename(at("two"), at("../away"));
    const told = await updated(place, { memory, meanwhile: () => change(at, place) });
    assert.equal(told.listed.at(-1), "./**");
    await assertLikeFresh(place, memory, told);
  });

test("no name is told to the box that it has not told before", { skip }, async (t) => {
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

test(
  "an update that did not end, and a store that has lost something, want the whole",
  { skip },
  async (t) => {
    await using place = await scratch(FILES);
    const memory: SearchMemory = new Map();
    later(t);
    await updated(place, { memory });
    for (const { files } of memory.values()) files.delete("a.ts");
    const told = await updated(place, { memory });
    assert.deepEqual([told.listed, told.changed], [["./**"], 1]);
    await assertLikeFresh(place, memory, told);
  },
);

test("more changed folders than are told one by one want the whole", { skip }, async (t) => {
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

const KINDS = `write write write remove folder move link linked chmod rules own unrule secret huge tools nameless`;
interface Step {
  readonly kind: string;
  readonly one: number;
  readonly other: number;
}

const STEP: fc.Arbitrary<Step> = fc.record({
  kind: fc.constantFrom(...KINDS.split(" ")),
  one: fc.nat(11),
  other: fc.nat(11),
});
const ROUNDS = fc.array(fc.array(STEP, { minLength: 1, maxLength: 4 }), { minLength: 2, maxLength: 4 });

const PLACES = ["", "p/", "p/q/", "p/q/r/", "s/", "s/-t/", "p/u v/"];
const RULES = ["*.md\n", "q/\n", "!f1.ts\nf*.ts\n", "/s\n", "r\n", "# nothing\n"];

const folderAt = (number: number): string => PLACES[number % PLACES.length] ?? "";
const fileAt = (number: number): string =>
  `${folderAt(number)}f${number % 4}.${number % 3 === 0 ? "md" : "ts"}`;

async function done(
  place: Scratch,
  step: typeof STEP extends fc.Arbitrary<infer S> ? S : never,
  round: number,
) {
  const { kind, one, other } = step;
  const at = (name: string): string => place.at("work", name);
  // Another length each time.
  const text = `export const v = 1;\n${"// more\n".repeat(round)}`;
  const folder = folderAt(one);
  const write = (name: string, content = text) => place.write(`work/${name}`, content);
  const STEPS: Readonly<Record<string, () => Promise<unknown>>> = {
    write: () => write(fileAt(one)),
    remove: () => rm(at(fileAt(one)), { recursive: true }),
    folder: () => (folder === "" ? Promise.resolve() : rm(at(folder), { recursive: true })),
    move: () =>
      rename(at(folder === "" ? fileAt(one) : folder.slice(0, -1)), at(`${folderAt(other)}moved${other}`)),
    link: () => rm(at(fileAt(one)), { recursive: true }).then(() => symlink("../keep.ts", at(fileAt(one)))),
    linked: async () => {
      if (folder === "") return;
      await rename(at(folder.slice(0, -1)), place.at(`outside${round}`));
      await symlink(place.at(`outside${round}`), at(folder.slice(0, -1)));
    },
    chmod: () => chmod(at(fileAt(one)), other % 2 === 0 ? 0o600 : 0o755),
    rules: () => write(`${folder}.gitignore`, `${RULES[other % RULES.length] ?? ""}${"#\n".repeat(round)}`),
    own: () => write(".harnessignore", `${RULES[other % RULES.length] ?? ""}${"#\n".repeat(round)}`),
    unrule: () => rm(at(other % 2 === 0 ? ".harnessignore" : `${folder}.gitignore`)),
    secret: () => write(`${folder}x.env`),
    huge: () => write(fileAt(one)).then(() => truncate(at(fileAt(one)), (1 << 20) + round)),
    tools: () => write(`${folder}${other % 2 === 0 ? "node_modules" : ".vscode"}/f.ts`),
    nameless: () => writeFile(Buffer.from(`${at(`bad${other}`)}\xff.ts`, "latin1"), text),
  };
  // Where nothing stands in the way, or nothing stands at all.
  await STEPS[kind]?.().catch((thrown: NodeJS.ErrnoException) => {
    if (typeof thrown.code !== "string" || !thrown.code.startsWith("E")) throw thrown;
  });
}

test("whatever is done between updates, they say what one made anew says", { skip }, async (t) => {
  later(t);
  const ways = { part: 0, whole: 0 };
  await fc.assert(
    fc.asyncProperty(ROUNDS, async (rounds) => {
      await using place = await scratch({
        ...FILES,
        "work/keep.ts": "export const keep = 1;\n",
        "work/p/q/f1.ts": "export const f = 1;\n",
        "work/s/f2.ts": "export const f = 2;\n",
      });
      const memory: SearchMemory = new Map();
      await updated(place, { memory });
      let count = 0;
      for (const steps of rounds) {
        for (const step of steps) await done(place, step, (count += 1));
        const told = await updated(place, { memory });
        ways[told.listed.includes("./**") ? "whole" : "part"] += 1;
        await assertLikeFresh(place, memory, told);
      }
    }),
    { numRuns: 15 },
  );
  assert.ok(ways.part > 8 && ways.whole > 8, JSON.stringify(ways));
});
