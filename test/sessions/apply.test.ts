import assert from "node:assert/strict";
import {
  chmodSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import test from "node:test";
import { bytesOfText } from "../../src/core/raw-data.ts";
import { hasJournal, undo } from "../../src/sessions/checkpoints/undo-changes.ts";
import { CheckpointStore } from "../../src/sessions/checkpoints/checkpoint-store.ts";
import { move, noteBase, prepareApply, type PreparedChanges } from "../../src/sessions/apply-layer.ts";
import { memorySteps } from "../fakes/steps.ts";
import { layerOf } from "../fixtures/layer-of.ts";
import { assertCostly, fc } from "../fixtures/property.ts";
import { edits, make } from "../fixtures/random-tree.ts";
import { pictureOf } from "../fixtures/tree-picture.ts";
import { unprivileged } from "../fixtures/unprivileged.ts";

interface Ground extends Disposable {
  readonly root: string;
  /** The box's view: a copy of the workspace that the test edits. */
  readonly seen: string;
  readonly store: CheckpointStore;
  readonly steps: ReturnType<typeof memorySteps>;
  readonly begin: () => Promise<void>;
  readonly prepare: (only?: readonly string[]) => Promise<PreparedChanges>;
  readonly apply: (only?: readonly string[]) => Promise<PreparedChanges & { readonly whole: boolean }>;
}

function ground(files: Readonly<Record<string, string>> = {}): Ground {
  const place = mkdtempSync(path.join(tmpdir(), "harness-apply-"));
  const [root, seen, stateDir] = ["work", "seen", "state"].map((name) => path.join(place, name)) as [
    string,
    string,
    string,
  ];
  mkdirSync(root);
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(path.dirname(path.join(root, name)), { recursive: true });
    writeFileSync(path.join(root, name), text);
  }
  const store = new CheckpointStore({ stateDir, workspace: root });
  const steps = memorySteps();
  const session = "s";
  const since = Date.now() + 60_000;
  const prepare = (only?: readonly string[]) =>
    prepareApply(store, {
      session,
      layer: layerOf(root, seen, since),
      ...(only === undefined ? {} : { only }),
    });
  return {
    root,
    seen,
    store,
    steps,
    begin: async () => {
      cpSync(root, seen, { recursive: true, verbatimSymlinks: true, preserveTimestamps: true });
      await noteBase(store, session, undefined);
    },
    prepare,
    apply: async (only) => {
      const prepared = await prepare(only);
      return { ...prepared, ...(await move(store, { session, steps }, prepared)) };
    },
    [Symbol.dispose]: () => {
      store[Symbol.dispose]();
      rmSync(place, { recursive: true, force: true });
    },
  };
}

const put = (root: string, name: string, text: string): void => writeFileSync(path.join(root, name), text);
const read = (root: string): Readonly<Record<string, string>> => pictureOf(root);

test("apply turns any tree into what the box saw, and undo takes it back", { timeout: 300_000 }, async () => {
  await assertCostly(
    fc.asyncProperty(edits, edits, async (first, second) => {
      using place = ground();
      for (const each of first) make(place.root, each);
      const before = read(place.root);
      await place.begin();
      for (const each of second) make(place.seen, each);
      const applied = await place.apply();
      assert.deepEqual([applied.refused, applied.whole], [[], true]);
      assert.deepEqual(read(place.root), read(place.seen));
      assert.equal(hasJournal(place.store.folder), false);
      const again = await place.apply();
      assert.deepEqual([again.ops, again.refused], [[], []]);
      const back = { session: "s", target: 0, redo: false, dryRun: false, skip: false };
      await undo(place.store, { ...back, steps: place.steps });
      assert.deepEqual(read(place.root), before);
    }),
    30,
  );
});

test("a user's own changes in the meantime are never lost", { timeout: 300_000 }, async () => {
  await assertCostly(
    fc.asyncProperty(edits, edits, edits, async (first, second, mine) => {
      using place = ground();
      for (const each of first) make(place.root, each);
      await place.begin();
      const start = read(place.root);
      for (const each of second) make(place.seen, each);
      for (const each of mine) make(place.root, each);
      const [user, box] = [read(place.root), read(place.seen)];
      const { refused, merged, left } = await place.apply();
      const after = read(place.root);
      const spoken = new Set(
        [...refused.map((one) => one.path), ...merged, ...left].map((each) => `/${latin(each)}`),
      );
      for (const name of new Set([...Object.keys(user), ...Object.keys(after)])) {
        if (user[name] === start[name] || user[name] === box[name]) continue;
        if (spoken.has(name) || start[name]?.startsWith("folder") === true) continue;
        assert.equal(after[name], withUsersPart(user[name], { start: start[name], box: box[name] }), name);
      }
    }),
    30,
  );
});

/** If the user changed only the mode of a file, or only its content, the other may come from the box. */
function withUsersPart(
  user: string | undefined,
  { start, box }: { readonly start: string | undefined; readonly box: string | undefined },
): string | undefined {
  const [mine, before, other] = [user, start, box].map((entry) => /^file (\S+) (.*)$/.exec(entry ?? ""));
  if (!mine || !before || !other) return user;
  const [mode, content] = [1, 2].map((at) => (mine[at] === before[at] ? other[at] : mine[at]));
  return `file ${mode} ${content}`;
}

const hex = (text: string): string => `file 644 ${Buffer.from(text).toString("hex")}`;
const latin = (text: string): string => bytesOfText(text).toString("latin1");

test("changes of both sides to a text are kept; where they conflict the user's stay and the file is named", async () => {
  using place = ground({ a: "1\n2\n3\n4\n5\n6\n7\n", b: "1\n2\n3\n", c: "x\n" });
  await place.begin();
  put(place.seen, "a", "1\nbox\n3\n4\n5\n6\n7\n");
  put(place.seen, "b", "1\nbox\n3\n");
  put(place.seen, "c", "box\n");
  put(place.root, "a", "1\n2\n3\n4\n5\nuser\n7\n");
  put(place.root, "b", "1\nuser\n3\n");
  const applied = await place.apply();
  assert.deepEqual(applied.merged, ["a"]);
  assert.deepEqual(applied.refused, [{ path: "b", reason: "the same lines were changed since" }]);
  const texts = read(place.root);
  assert.equal(texts["/a"], hex("1\nbox\n3\n4\n5\nuser\n7\n"));
  assert.equal(texts["/b"], hex("1\nuser\n3\n"));
  assert.equal(texts["/c"], hex("box\n"));
  assert.equal(applied.whole, false);
  const again = await place.apply();
  assert.deepEqual([again.ops, again.refused.map((one) => one.path)], [[], ["b"]]);
});

test("what cannot be moved is named: too large, with its place, and what is no file, also if a copy came without it", async () => {
  using place = ground({ a: "a", there: "mine" });
  await place.begin();
  writeFileSync(path.join(place.seen, "big"), "");
  truncateSync(path.join(place.seen, "big"), 2 ** 30 + 1);
  const layer = layerOf(place.root, place.seen, Date.now() + 60_000);
  rmSync(path.join(place.seen, "there"));
  const odd = { what: "added", kind: "odd", mode: 0o644 } as const;
  const changes = [...layer.changes, { path: "fifo", ...odd }, { path: "there", ...odd }];
  const prepared = await prepareApply(place.store, { session: "s", layer: { ...layer, changes } });
  const reason = "a FIFO is not recreated";
  assert.deepEqual(prepared.refused, [
    { path: "big", reason: `it is too large to be moved; copy it yourself, from ${place.seen}/big` },
    { path: "fifo", reason },
    { path: "there", reason },
  ]);
  const moved = await move(place.store, { session: "s", steps: place.steps }, prepared);
  assert.deepEqual([moved.whole, readFileSync(path.join(place.root, "there"), "utf8")], [false, "mine"]);
});

test("nothing is deleted or replaced that undo could not bring back, or that the box never saw", async () => {
  using place = ground({
    "d/big": "",
    "d/small": "1",
    changed: "",
    "closed/f": "mine",
    "closed/same": "same",
  });
  for (const name of ["d/big", "changed"]) truncateSync(path.join(place.root, name), 2 ** 30 + 1);
  await place.begin();
  rmSync(path.join(place.seen, "d"), { recursive: true });
  writeFileSync(path.join(place.seen, "changed"), "small");
  writeFileSync(path.join(place.seen, "closed/f"), "made anew");
  const layer = { ...layerOf(place.root, place.seen), unseen: ["closed"] };
  const prepared = await prepareApply(place.store, { session: "s", layer });
  assert.deepEqual(
    prepared.refused.map(({ path: at, reason }) => [at, reason.split(";", 1)[0]]),
    [
      ["closed/f", "something else is there now"],
      ["changed", "it is too large or cannot be read, so undo could not bring it back"],
      ["d/big", "it is too large or cannot be read, so undo could not bring it back"],
    ],
  );
  const moved = await move(place.store, { session: "s", steps: place.steps }, prepared);
  const left = ["d/big", "d/small", "changed"].map((name) => existsSync(path.join(place.root, name)));
  assert.deepEqual([moved.whole, left], [false, [true, false, true]]);
});

test("a change that cannot be reached in the layer is named, and never counts as applied", async () => {
  using place = ground({ a: "a" });
  await place.begin();
  writeFileSync(path.join(place.seen, "a"), "b");
  const layer = layerOf(place.root, place.seen);
  const far = `${"d".repeat(200)}/`.repeat(25);
  const changes = [...layer.changes, { path: `${far}f`, what: "added", kind: "file", mode: 0o644 } as const];
  const prepared = await prepareApply(place.store, { session: "s", layer: { ...layer, changes } });
  assert.deepEqual(prepared.refused, [
    { path: `${far}f`, reason: "it cannot be read in the layer, or its path is too long" },
  ]);
  const moved = await move(place.store, { session: "s", steps: place.steps }, prepared);
  assert.equal(moved.whole, false);
});

test("only the chosen paths are applied; an applied path no longer counts as a change, whatever happens to it", async () => {
  using place = ground({ "src/a": "1\n", "src/b": "1\n", c: "1\n" });
  await place.begin();
  for (const name of ["src/a", "src/b", "c"]) put(place.seen, name, "box\n");
  mkdirSync(path.join(place.seen, "new/deep"), { recursive: true });
  put(place.seen, "new/deep/file", "box\n");
  const first = await place.apply(["src", "new/deep/file"]);
  assert.deepEqual(
    first.ops.map((op) => op.path),
    ["new", "new/deep", "new/deep/file", "src/a", "src/b"],
  );
  put(place.root, "src/a", "user\n");
  const second = await place.apply();
  assert.deepEqual([second.ops.map((op) => op.path), second.refused, second.whole], [["c"], [], true]);
  assert.equal(read(place.root)["/src/a"], `file 644 ${Buffer.from("user\n").toString("hex")}`);
});

test("a link planted on the way does not lead outside", async () => {
  using place = ground({ "d/file": "1\n" });
  await place.begin();
  put(place.seen, "d/file", "box\n");
  const prepared = await place.prepare();
  const outside = mkdtempSync(path.join(tmpdir(), "harness-outside-"));
  writeFileSync(path.join(outside, "file"), "1\n");
  rmSync(path.join(place.root, "d"), { recursive: true });
  symlinkSync(outside, path.join(place.root, "d"));
  try {
    await assert.rejects(
      move(place.store, { session: "s", steps: place.steps }, prepared),
      /something else is changing the workspace/,
    );
    const after = await place.apply();
    assert.deepEqual(
      after.refused.map((one) => one.path),
      ["d/file"],
    );
    assert.deepEqual(read(outside)["/file"], `file 644 ${Buffer.from("1\n").toString("hex")}`);
    assert.equal(readlinkSync(path.join(place.root, "d")), outside);
  } finally {
    rmSync(outside, { recursive: true });
  }
});

test("git's own files are applied too; there a file that may have changed since is refused", async () => {
  using place = ground({ ".git/HEAD": "ref: x\n", ".git/index": "1", ".git/config": "old\n" });
  await place.begin();
  put(place.seen, ".git/index", "2");
  put(place.seen, ".git/config", "box\n");
  mkdirSync(path.join(place.seen, ".git/objects/ab"), { recursive: true });
  put(place.seen, ".git/objects/ab/cd", "blob");
  const applied = await place.apply();
  assert.deepEqual([applied.refused, applied.whole], [[], true]);
  assert.deepEqual(read(place.root), read(place.seen));
  put(place.seen, ".git/index", "3");
  const late = layerOf(place.root, place.seen, Date.now() - 60_000);
  using fresh = ground({ ".git/index": "mine" });
  const refused = await prepareApply(fresh.store, {
    session: "other",
    layer: { ...late, content: place.seen },
  });
  assert.deepEqual(
    refused.refused.map((one) => one.path),
    [".git/index"],
  );
  assert.equal(existsSync(path.join(fresh.root, ".git/index")), true);
});

test("a file that a command closed to its owner is applied with its mode, and the layer keeps that mode", async () => {
  using place = ground({ "a.txt": "old\n" });
  await place.begin();
  put(place.seen, "a.txt", "new\n");
  put(place.seen, "b.txt", "added\n");
  const layer = layerOf(place.root, place.seen, Date.now() + 60_000);
  const names = ["a.txt", "b.txt"];
  for (const name of names) chmodSync(path.join(place.seen, name), 0);
  const closed = { ...layer, changes: layer.changes.map((each) => ({ ...each, mode: 0 })) };
  await unprivileged(path.dirname(place.root), async () => {
    const prepared = await prepareApply(place.store, { session: "s", layer: closed });
    assert.deepEqual(prepared.refused, []);
    for (const name of names) assert.equal(lstatSync(path.join(place.seen, name)).mode & 0o777, 0);
    const { whole } = await move(place.store, { session: "s", steps: place.steps }, prepared);
    assert.equal(whole, true);
    for (const name of names) {
      assert.equal(lstatSync(path.join(place.root, name)).mode & 0o777, 0);
      chmodSync(path.join(place.root, name), 0o600);
    }
  });
  assert.deepEqual(
    names.map((name) => readFileSync(path.join(place.root, name), "utf8")),
    ["new\n", "added\n"],
  );
});
