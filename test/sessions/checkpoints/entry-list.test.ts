// also slow: all cases of its properties
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { promisify } from "node:util";
import { zstdCompressSync } from "node:zlib";
import { textOfBytes } from "../../../src/core/raw-data.ts";
import { CheckpointStore } from "../../../src/sessions/checkpoints/checkpoint-store.ts";
import type { Entry } from "../../../src/sessions/checkpoints/entry.ts";
import { EntryWriter } from "../../../src/sessions/checkpoints/entry-list.ts";
import {
  changesBetween,
  filtered,
  listOf,
  merged,
  overlaid,
  TreeFiles,
} from "../../../src/sessions/checkpoints/file-tree.ts";
import { fc, part } from "../../fixtures/property.ts";
import { scratch } from "../../fixtures/scratch.ts";
import { slowTest } from "../../fixtures/slow-test.ts";

const MANY = path.join(import.meta.dirname, "../../fixtures/checkpoint-many.ts");
const MIB = 2 ** 20;

const piece = fc
  .uint8Array({ minLength: 32, maxLength: 32 })
  .map((bytes) => Buffer.from(bytes).toString("base64url"));
const mode = fc.integer({ min: 0, max: 0o7777 });
const owned = fc.constantFrom({}, { owner: "1000:1000" }, { owner: "4294967294:65534" });
const number = fc.integer({ min: 0, max: 2 ** 40 });
const word = fc
  .uint8Array({ minLength: 1, maxLength: 12 })
  .map((bytes) => textOfBytes(bytes.map((each) => (each === 0 || each === 0x2f ? 0x61 : each))));
const withOwner = (entry: fc.Arbitrary<Entry>): fc.Arbitrary<Entry> =>
  fc.tuple(entry, owned).map(([each, owner]) => ({ ...each, ...owner }));
const entry = withOwner(
  fc.oneof(
    fc.record({
      kind: fc.constant("file" as const),
      mode,
      size: number,
      pieces: fc.array(piece, { maxLength: 3 }),
    }),
    fc.record({ kind: fc.constant("link" as const), target: word }),
    fc.record({ kind: fc.constant("folder" as const), mode }),
    fc.record({ kind: fc.constant("odd" as const), mode, what: fc.constantFrom("fifo", "socket", "device") }),
    fc.record({
      kind: fc.constant("unkept" as const),
      mode,
      why: fc.constantFrom("large", "unreadable", "deep"),
      folder: fc.boolean(),
      size: number,
      stamp: fc.constantFrom("1 2 3 4.5", "7 8"),
    }),
  ),
);
const trees = fc
  .array(
    fc.tuple(
      fc.array(fc.oneof(word, fc.constantFrom("a", "b", "a-b", "\u{1F600}", "\uFFFD")), { maxLength: 4 }),
      entry,
    ),
    { maxLength: 60 },
  )
  .map((all) => new Map(all.map(([names, each]) => [names.join("/"), each] as const)));

const asObject = (tree: Iterable<readonly [string, unknown]>): unknown => Object.fromEntries(tree);

const isShort = (path: string): boolean => path.length < 6;

test("a list returns its entries, and comparing two lists gives the same as comparing two maps", () => {
  fc.assert(
    fc.property(trees, trees, (before, after) => {
      const [older, newer] = [listOf(before), listOf(after)];
      assert.deepEqual(asObject(older), asObject(before));
      assert.equal(older.size, before.size);
      for (const [path, each] of after)
        assert.deepEqual(older.get(path), before.get(path), JSON.stringify(each));
      for (const [path] of before) assert.deepEqual(newer.get(path), after.get(path));
      assert.deepEqual(asObject(merged(older, newer)), asObject(new Map([...before, ...after])));
      const changes = new Map([...changesBetween(older, newer)].map(({ path, to }) => [path, to] as const));
      const changed = overlaid(before, changes);
      assert.deepEqual([...changed.keys()], [...newer.keys()]);
      assert.deepEqual([...changesBetween(changed, newer)], []);
      assert.deepEqual(
        asObject(filtered(older, isShort)),
        asObject([...before].filter(([path]) => isShort(path))),
      );
    }),
    { numRuns: part(300) },
  );
});

test("folders come directly before their contents", () => {
  const folder = { kind: "folder", mode: 0o755 } as const;
  const paths = ["", "a", "a/x", "a/x/y", "a-b", "a.b", "b", "\uFFFD", "\u{1F600}"];
  const list = listOf(paths.toReversed().map((each) => [each, folder] as const));
  assert.deepEqual([...list.keys()], ["", "a", "a/x", "a/x/y", "a-b", "a.b", "b", "\uFFFD", "\u{1F600}"]);
});

test("entries out of order are refused", () => {
  const writer = new EntryWriter();
  const folder = { kind: "folder", mode: 0o755 } as const;
  writer.add(Buffer.from("b"), folder);
  for (const key of ["a", "b"]) assert.throws(() => writer.add(Buffer.from(key), folder), /out of order/);
});

test("trees of many blocks are saved, loaded and walked unchanged", async () => {
  await using place = await scratch();
  const files = new TreeFiles(place.at("trees"));
  const all = new Map<string, Entry>();
  for (let at = 0; at < 4000; at += 1)
    all.set(`d${at % 7}/f${at}`, {
      kind: "file",
      mode: 0o644,
      size: at,
      pieces: [randomBytes(32).toString("base64url")],
    });
  let saved = files.save("s", listOf(all));
  const ids = [saved.id];
  for (let turn = 0; turn < 45; turn += 1) {
    all.delete(`d${turn % 7}/f${turn}`);
    all.set(`new${turn}`, { kind: "link", target: `${turn}` });
    saved = files.save("s", listOf(all), saved);
    ids.push(saved.id);
  }
  assert.equal(new Set(ids).size, 46);
  assert.equal(files.save("s", listOf(all), saved).id, saved.id);
  assert.deepEqual(asObject(files.load(saved.id)), asObject(all));
  const first = files.load(ids[0] ?? "");
  assert.equal(first.size, 4000);
  assert.equal([...changesBetween(first, files.load(saved.id))].length, 90);
});

test("trees written by an earlier version are read and continued", async () => {
  await using place = await scratch();
  const files = new TreeFiles(place.at("trees"));
  const file = {
    kind: "file",
    mode: 0o644,
    size: 1,
    pieces: [randomBytes(32).toString("base64url")],
  } as const;
  const folder = { kind: "folder", mode: 0o755 } as const;
  const write = (name: string, value: unknown): void =>
    writeFileSync(place.at("trees", name), zstdCompressSync(JSON.stringify(value)));
  write("s.1", {
    base: null,
    entries: [
      ["", folder],
      ["b", file],
      ["a", folder],
      ["a/x", file],
    ],
    gone: [],
  });
  write("s.2", { base: "s.1", entries: [["c", file]], gone: ["b"] });
  const second = files.load("s.2");
  assert.deepEqual(
    asObject(second),
    asObject([
      ["", folder],
      ["a", folder],
      ["a/x", file],
      ["c", file],
    ]),
  );
  const saved = files.save("s", overlaid(second, new Map([["c", undefined]])), {
    id: "s.2",
    tree: second,
    chain: 1,
  });
  assert.deepEqual([...files.load(saved.id).keys()], ["", "a", "a/x"]);
  assert.deepEqual([...files.live()], [...file.pieces]);
  writeFileSync(place.at("trees", "s.4"), "harness tree 2 s.3\nhalf");
  assert.throws(() => files.load("s.4"), /the checkpoint s.4 is gone or damaged/);
});

test("a large folder with names of every kind is read like a small one", async () => {
  await using place = await scratch();
  const work = place.at("work");
  mkdirSync(work);
  const names = [
    Buffer.from([0x66, 0xff, 0xfe]),
    Buffer.from("\u{1F600}"),
    Buffer.from("\uFFFD"),
    Buffer.from("a\n"),
  ];
  const write = (): void => {
    for (const name of names) writeFileSync(Buffer.concat([Buffer.from(`${work}/`), name]), "x");
  };
  write();
  using store = new CheckpointStore({ stateDir: place.at("state"), workspace: work });
  const small = [...(await store.look()).keys()];
  assert.deepEqual(small.toSorted(), ["", ...names.map(textOfBytes)].toSorted());
  for (let at = 0; at < 3000; at += 1) writeFileSync(path.join(work, `${at}`.padStart(200, "n")), "");
  const large = [...(await store.look()).keys()];
  assert.deepEqual(
    large.filter((name) => !name.startsWith("n")),
    small,
  );
  assert.equal(large.length, small.length + 3000);
});

const COUNT = 30_000;
/** Above the memory of the same process without them. One object per path took four times as much. */
const MAX_OVER = 90 * MIB;
const skip = existsSync("/proc/self/status") ? false : "no /proc here tells a process's memory";

slowTest(`${COUNT} new files at long paths stay within a memory limit`, { skip }, async (t) => {
  await using place = await scratch();
  const peakOf = async (
    ...words: readonly string[]
  ): Promise<{ peak: number; kept: number; notices: unknown }> => {
    const work = place.at(`work${words.length}`);
    mkdirSync(work);
    const told = await promisify(execFile)(process.execPath, [MANY, place.at("state"), work, ...words]);
    return JSON.parse(told.stdout) as { peak: number; kept: number; notices: unknown };
  };
  const plain = await peakOf(String(COUNT), "plain");
  const kept = await peakOf(String(COUNT));
  assert.deepEqual([plain.kept, kept.kept, kept.notices], [0, COUNT + 14, []]);
  const over = kept.peak - plain.peak;
  t.diagnostic(`${Math.round(over / MIB)} MiB over ${Math.round(plain.peak / MIB)} MiB`);
  assert.ok(over < MAX_OVER, `${Math.round(over / MIB)} MiB over ${Math.round(plain.peak / MIB)} MiB`);
});
