import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import test from "node:test";
import { ContentReader, MAX_BYTES } from "../../../src/sessions/checkpoints/entry.ts";
import { Packs } from "../../../src/sessions/checkpoints/packs.ts";
import { finishUndo, writeJournal } from "../../../src/sessions/checkpoints/undo-changes.ts";
import { forgetSession, keepWithin, RunCheckpoints } from "../../../src/sessions/checkpoints/recorder.ts";
import { CheckpointStore } from "../../../src/sessions/checkpoints/checkpoint-store.ts";
import { removeTree } from "../../../src/boxes/box-record.ts";
import { deep } from "../../fixtures/deep.ts";
import { keptRun } from "../../fixtures/kept-run.ts";
import { scratch } from "../../fixtures/scratch.ts";
import { pictureOf } from "../../fixtures/tree-picture.ts";
import { unprivileged } from "../../fixtures/unprivileged.ts";

test("a FIFO is listed and never opened, and git's own folder is left out", async () => {
  await using kept = await keptRun({ ".git/config": "x", "sub/.git": "y", ".harness/config.json": "{}" });
  execFileSync("mkfifo", [kept.place.at("work/pipe")]);
  using store = kept.open();
  const tree = await store.look();
  assert.deepEqual([...tree.keys()].toSorted(), ["", "pipe", "sub"]);
  assert.deepEqual(tree.get("pipe"), { kind: "odd", what: "fifo", mode: 0o644 });
});

test("a file that is too large is not kept, and refused by undo; one that the run made is still removed", async () => {
  await using kept = await keptRun({ "big.bin": "", "a.txt": "a" });
  const big = kept.place.at("work/big.bin");
  truncateSync(big, MAX_BYTES + 1);
  await kept.run(() => {
    truncateSync(big, MAX_BYTES + 2);
    writeFileSync(kept.place.at("work/new.bin"), "");
    truncateSync(kept.place.at("work/new.bin"), MAX_BYTES + 1);
  });
  const { refused } = await kept.undo();
  assert.deepEqual(refused, [{ path: "big.bin", reason: "its content was not saved: it was too large" }]);
  await kept.undo({ skip: true });
  assert.deepEqual(readdirSync(kept.root).toSorted(), ["a.txt", "big.bin"]);
});

test("a large file is kept in pieces, and a sparse one takes at most one of them", async () => {
  await using kept = await keptRun({ "sparse.bin": "" });
  truncateSync(kept.place.at("work/sparse.bin"), 64 * 2 ** 20);
  const before = pictureOf(kept.root);
  await kept.run(() => writeFileSync(kept.place.at("work/sparse.bin"), "x"));
  await kept.undo();
  assert.deepEqual(pictureOf(kept.root), before);
  using store = kept.open();
  const packs = readdirSync(store.packs.folder, { withFileTypes: true });
  const bytes = packs.map(({ name }) => readFileSync(path.join(store.packs.folder, name)).length);
  assert.ok(bytes.reduce((sum, each) => sum + each, 0) < 5 * 2 ** 20, String(bytes));
});

test("one look reads only so much of the holes that files have", async () => {
  await using kept = await keptRun({ "dense.bin": "x".repeat(2 ** 20) });
  for (const name of ["a", "b", "c"]) {
    writeFileSync(kept.place.at(`work/${name}`), "");
    truncateSync(kept.place.at(`work/${name}`), 2 ** 20);
  }
  using packs = new Packs(kept.place.at("packs"));
  const reader = new ContentReader(packs, 2 * 2 ** 20);
  const keeps = (name: string): boolean => reader.keeps(lstatSync(kept.place.at(`work/${name}`)));
  assert.deepEqual(["a", "b", "c", "dense.bin"].map(keeps), [true, true, false, true]);
  reader.begin();
  assert.equal(keeps("c"), true);
});

/** Counts the pieces that are stored from now on. */
function storedIn(packs: Packs): () => number {
  let stored = 0;
  const put = packs.put.bind(packs);
  packs.put = (content) => {
    stored += 1;
    return put(content);
  };
  return () => stored;
}

test("a file with many names is read once in a look, and again when it has changed", async () => {
  await using kept = await keptRun({ "one.bin": "x".repeat(2 ** 20) });
  const [one, two] = [kept.place.at("work/one.bin"), kept.place.at("work/two.bin")];
  linkSync(one, two);
  using packs = new Packs(kept.place.at("packs"));
  const stored = storedIn(packs);
  const reader = new ContentReader(packs);
  const pieces = [one, two].map((file) => reader.read(file)?.pieces);
  assert.deepEqual(pieces[0], pieces[1]);
  assert.equal(stored(), 1);
  writeFileSync(one, "y".repeat(2 ** 20));
  assert.notDeepEqual(reader.read(two)?.pieces, pieces[0]);
});

test("a small file with many names is read once in a look, and its holes count once", async () => {
  await using kept = await keptRun({ "small.bin": "x".repeat(1000), sparse: "" });
  truncateSync(kept.place.at("work/sparse"), 2 ** 20);
  for (const name of ["small.bin", "sparse"])
    linkSync(kept.place.at("work", name), kept.place.at("work", `${name}.other`));
  using packs = new Packs(kept.place.at("packs"));
  const stored = storedIn(packs);
  const reader = new ContentReader(packs, 2 ** 20);
  const read = (name: string): readonly string[] | undefined => {
    const file = kept.place.at("work", name);
    return reader.keeps(lstatSync(file)) ? reader.read(file)?.pieces : undefined;
  };
  for (const name of ["small.bin", "sparse"]) {
    const pieces = read(name);
    assert.ok(pieces !== undefined);
    assert.deepEqual(read(`${name}.other`), pieces);
  }
  assert.equal(stored(), 2);
});

test("a hole is hashed once, and comes back as a hole", async () => {
  await using kept = await keptRun({ "sparse.bin": "" });
  const file = kept.place.at("work/sparse.bin");
  truncateSync(file, 40 * 2 ** 20 + 5);
  using packs = new Packs(kept.place.at("packs"));
  const stored = storedIn(packs);
  const reader = new ContentReader(packs);
  assert.equal(reader.read(file)?.pieces.length, 11);
  assert.equal(stored(), 2);
  packs.discard();
  assert.equal(packs.has(reader.read(file)?.pieces[0] ?? ""), true);
  await kept.run(() => rmSync(file));
  await kept.undo();
  const { size, blocks } = lstatSync(file);
  assert.deepEqual([size, readFileSync(file).every((byte) => byte === 0)], [40 * 2 ** 20 + 5, true]);
  assert.ok(blocks * 512 < 2 ** 20, String(blocks));
});

test("a piece is checked for damage once, however many files hold it", async () => {
  await using kept = await keptRun({});
  using packs = new Packs(kept.place.at("packs"));
  const id = packs.put(Buffer.from("text"));
  packs.flush();
  let reads = 0;
  const get = packs.get.bind(packs);
  packs.get = (each) => {
    reads += 1;
    return get(each);
  };
  assert.deepEqual([packs.isWhole(id), packs.isWhole(id), packs.isWhole(id)], [true, true, true]);
  assert.equal(reads, 1);
});

test("a change that restores size and modification time is noticed", async () => {
  await using kept = await keptRun({ "a.txt": "one\n" });
  const file = kept.place.at("work/a.txt");
  utimesSync(file, 1000, 1000);
  await kept.run(() => {
    writeFileSync(file, "two\n");
    utimesSync(file, 1000, 1000);
  });
  await kept.undo();
  assert.equal(readFileSync(file, "utf8"), "one\n");
});

test("files become folders and back, and names may contain line ends and arbitrary bytes", async () => {
  await using kept = await keptRun({ "a/b.txt": "b", c: "c", "li\nne": "x" });
  writeFileSync(Buffer.concat([Buffer.from(`${kept.root}/`), Buffer.from([0x66, 0xff])]), "bytes");
  symlinkSync("nowhere", kept.place.at("work/link"));
  chmodSync(kept.place.at("work/c"), 0o755);
  linkSync(kept.place.at("work/c"), kept.place.at("work/hard"));
  const before = pictureOf(kept.root);
  await kept.run(() => {
    for (const name of readdirSync(kept.root, { encoding: "buffer" }))
      rmSync(Buffer.concat([Buffer.from(`${kept.root}/`), name]), { recursive: true });
    writeFileSync(kept.place.at("work/a"), "now a file");
    mkdirSync(kept.place.at("work/c/d"), { recursive: true });
    chmodSync(kept.place.at("work/c"), 0o555);
  });
  const { refused } = await kept.undo();
  assert.deepEqual([refused, pictureOf(kept.root)], [[], before]);
});

test("a run continues without checkpoints when they become too large, with one notice", async () => {
  await using kept = await keptRun({ "a.txt": "x".repeat(5000) }, 4096);
  let calls = 0;
  await kept.run(
    () => void (calls += 1),
    () => void (calls += 1),
  );
  assert.equal(calls, 2);
  assert.equal(kept.notices.length, 1);
  assert.match(
    kept.notices[0] ?? "",
    /cannot be undone: the files of the workspace are larger than 4\.0 KiB in total/,
  );
  assert.deepEqual(
    kept.steps.all().map(({ kind }) => kind),
    ["lost"],
  );
});

const skip = process.getuid?.() === 0 && process.platform === "linux" ? false : "only root mounts a disk";

test("a full disk ends the keeping, not the run; what was kept before stays complete", { skip }, async () => {
  await using place = await scratch();
  const disk = place.at("disk");
  mkdirSync(disk);
  execFileSync("mount", ["-t", "tmpfs", "-o", "size=1m", "tmpfs", disk]);
  try {
    await using kept = await keptRun({ "a.txt": "a\n" }, undefined, disk);
    const before = pictureOf(kept.root);
    await kept.run(
      () => writeFileSync(kept.place.at("work/a.txt"), "b\n"),
      () => writeFileSync(kept.place.at("work/much"), Buffer.alloc(3 * 2 ** 20, "incompressible")),
      () => writeFileSync(kept.place.at("work/later.txt"), "later\n"),
    );
    assert.equal(kept.notices.length, 1);
    assert.match(kept.notices[0] ?? "", /cannot be undone: .*ENOSPC/);
    rmSync(kept.place.at("work/much"));
    const { notes } = await kept.undo();
    assert.deepEqual(pictureOf(kept.root), before);
    assert.match(notes.join("\n"), /No checkpoint could be saved/);
  } finally {
    execFileSync("umount", [disk]);
  }
});

test("an undo interrupted by a full disk is completed when there is room", { skip }, async () => {
  await using kept = await keptRun();
  execFileSync("mount", ["-t", "tmpfs", "-o", "size=4m,mode=0755", "tmpfs", kept.root]);
  try {
    for (let at = 0; at < 6; at += 1)
      writeFileSync(kept.place.at(`work/f${at}`), Buffer.alloc(500_000, String(at)));
    const before = pictureOf(kept.root);
    await kept.run(() => {
      for (let at = 0; at < 6; at += 1) rmSync(kept.place.at(`work/f${at}`));
    });
    writeFileSync(kept.place.at("work/mine"), Buffer.alloc(2_500_000));
    await assert.rejects(kept.undo(), /there is no room in .*; nothing was changed/);
    assert.deepEqual(readdirSync(kept.root), ["mine"]);
    rmSync(kept.place.at("work/mine"));
    // The disk fills up meanwhile: the file of another program grows.
    const begin: typeof kept.steps.begin = (step) => {
      writeFileSync(kept.place.at("work/mine"), Buffer.alloc(2_500_000));
      return kept.steps.begin(step);
    };
    await assert.rejects(
      kept.undo({ steps: { ...kept.steps, begin } }),
      /stopped halfway, at f2, after 3 of 6 paths: .*ENOSPC/,
    );
    rmSync(kept.place.at("work/mine"));
    {
      const { finishUndo } = await import("../../../src/sessions/checkpoints/undo-changes.ts");
      using store = kept.open();
      assert.match((await finishUndo(store, () => kept.steps)) ?? "", /was finished\.$/);
    }
    assert.deepEqual(pictureOf(kept.root), before);
  } finally {
    execFileSync("umount", [kept.root]);
  }
});

test("a completed undo keeps what the user changed since it was interrupted", async () => {
  await using kept = await keptRun({ "a.txt": "a\n", "b.txt": "b\n" });
  const { finishUndo } = await import("../../../src/sessions/checkpoints/undo-changes.ts");
  using store = kept.open();
  const start = await store.look();
  const before = store.save("s", start);
  const ops = ["a.txt", "b.txt"].map((at) => ({ path: at, from: start.get(at) ?? null, to: null }));
  writeJournal(store.folder, { session: "s", step: 1, before, whole: true, aside: ".aside", ops });
  writeFileSync(kept.place.at("work/a.txt"), "mine\n");
  assert.match((await finishUndo(store, () => kept.steps)) ?? "", /left as they are, .*: a\.txt\.$/);
  assert.deepEqual(readdirSync(kept.root), ["a.txt"]);
});

test("the oldest checkpoints of other sessions make room, and their contents are removed", async () => {
  await using kept = await keptRun({ "a.txt": "a".repeat(20_000) });
  const state = kept.place.at("state");
  {
    using old = kept.open();
    await old.take("old");
  }
  writeFileSync(kept.place.at("work/a.txt"), "b".repeat(20_000));
  using store = kept.open();
  const own = await store.take("new");
  keepWithin(store, "new", state, 25_000);
  assert.deepEqual(store.trees.ids(), [own]);
  assert.equal(store.trees.live().size, 1);
  for (const piece of store.trees.live()) assert.equal(store.packs.get(piece)?.length, 20_000);
  const bytes = readdirSync(store.packs.folder).map(
    (name) => readFileSync(path.join(store.packs.folder, name)).length,
  );
  assert.ok(bytes.reduce((sum, each) => sum + each, 0) < 25_000, String(bytes));
});

test("a removed session takes its contents along; those of others stay", async () => {
  await using kept = await keptRun({ "a.txt": "only old\n", "b.txt": "both\n" });
  const place = { stateDir: kept.place.at("state"), workspace: kept.root };
  const before = await (async () => {
    using store = kept.open();
    await store.take("old");
    rmSync(kept.place.at("work/a.txt"));
    return store.take("new");
  })();
  forgetSession(place, "old");
  using store = kept.open();
  assert.deepEqual(store.trees.ids(), [before]);
  assert.equal(store.trees.live().size, 1);
  assert.ok([...store.trees.live()].every((piece) => store.packs.get(piece) !== undefined));
});

test("an undo that was cut short is finished after its session was removed", async () => {
  await using kept = await keptRun({ "a.txt": "only here\n" });
  const at = (name: string): string => kept.place.at(`work/${name}`);
  await kept.run(() => renameSync(at("a.txt"), at("b.txt")));
  {
    using store = kept.open();
    const [step] = kept.steps.all();
    const first = store.trees.load(step?.before ?? "").get("a.txt") ?? null;
    const last = store.trees.load(step?.after ?? "").get("b.txt") ?? null;
    const ops = [
      { path: "a.txt", from: null, to: first },
      { path: "b.txt", from: last, to: null },
    ];
    const rest = { before: step?.after ?? "", whole: true, aside: ".harness-undo-x" };
    writeJournal(store.folder, { session: "s", step: 2, ...rest, ops });
    // Killed when the new name was removed, and the old one was not there yet.
    rmSync(at("b.txt"));
  }
  forgetSession({ stateDir: kept.place.at("state"), workspace: kept.root }, "s");
  using store = kept.open();
  assert.equal(await finishUndo(store, () => undefined), "An interrupted undo was finished.");
  assert.equal(await kept.place.read("work/a.txt"), "only here\n");
  assert.deepEqual(store.trees.ids(), []);
});

test("the damaged record of an interrupted undo is set aside and named, and holds nothing up", async () => {
  await using kept = await keptRun({ "a.txt": "1\n" });
  const at = (name: string): string => kept.place.at(`work/${name}`);
  await kept.run(() => writeFileSync(at("a.txt"), "2\n"));
  for (const damaged of ["", '{"session":"s","step":2,"ops":[', "[]", '{"ops":1}', "\0\0\0"]) {
    using store = kept.open();
    const journal = path.join(store.folder, "journal");
    writeFileSync(journal, damaged);
    const told = (await finishUndo(store, () => kept.steps)) ?? "";
    assert.match(told, /was damaged, so it cannot be finished: .* It was set aside as /);
    assert.ok(told.includes(`${journal}.damaged`), told);
    assert.deepEqual(
      [existsSync(journal), readFileSync(`${journal}.damaged`, "utf8"), await kept.place.read("work/a.txt")],
      [false, damaged, "2\n"],
    );
    assert.equal(await finishUndo(store, () => kept.steps), undefined);
  }
  assert.deepEqual((await kept.undo()).refused, []);
  assert.equal(await kept.place.read("work/a.txt"), "1\n");
});

test("after old checkpoints were removed, earlier steps do not claim what the user changed later", async () => {
  await using kept = await keptRun({ "a.txt": "1\n", "mine.txt": "1\n" });
  const at = (name: string): string => kept.place.at(`work/${name}`);
  const writes = (text: string) => (): void => writeFileSync(at("a.txt"), text);
  await kept.run(writes("2\n"), writes("3\n"), writes("4\n"));
  forgetSession({ stateDir: kept.place.at("state"), workspace: kept.root }, "s");
  await kept.run(writes("5\n"));
  writeFileSync(at("mine.txt"), "2\n");
  await kept.run(writes("6\n"));
  await assert.rejects(kept.undo(), /the checkpoint s\.\d+ is gone or damaged/);
  await kept.undo({ target: 3 });
  assert.deepEqual([readFileSync(at("a.txt"), "utf8"), readFileSync(at("mine.txt"), "utf8")], ["4\n", "2\n"]);
});

test("a workspace that was removed or moved is reported as such", async () => {
  await using kept = await keptRun({ "a.txt": "a\n" });
  await kept.run(() => writeFileSync(kept.place.at("work/a.txt"), "b\n"));
  renameSync(kept.root, kept.place.at("moved"));
  await assert.rejects(kept.undo(), /the folder of this session no longer exists/);
});

test("a damaged checkpoint is reported, and nothing is touched", async () => {
  await using kept = await keptRun({ "a.txt": "a\n" });
  await kept.run(() => writeFileSync(kept.place.at("work/a.txt"), "b\n"));
  using store = kept.open();
  for (const id of store.trees.ids()) truncateSync(path.join(store.trees.folder, id), 10);
  await assert.rejects(kept.undo(), /the checkpoint s\.\d+ is gone or damaged/);
  assert.equal(await kept.place.read("work/a.txt"), "b\n");
});

test("damaged content is never written over a file", async () => {
  await using kept = await keptRun({ "a.txt": "a\n" });
  await kept.run(() => writeFileSync(kept.place.at("work/a.txt"), "b\n"));
  using store = new CheckpointStore({ stateDir: kept.place.at("state"), workspace: kept.root });
  for (const name of readdirSync(store.packs.folder).filter((each) => each.endsWith(".pack")))
    writeFileSync(path.join(store.packs.folder, name), "damaged");
  const { refused } = await kept.undo();
  assert.deepEqual(refused, [{ path: "a.txt", reason: "its content is no longer stored" }]);
  assert.equal(await kept.place.read("work/a.txt"), "b\n");
});

test("a workspace now reached through a link is not taken for an empty one", async () => {
  await using kept = await keptRun({ "a.txt": "a\n" });
  await kept.run(() => writeFileSync(kept.place.at("work/a.txt"), "b\n"));
  renameSync(kept.root, kept.place.at("moved"));
  symlinkSync("moved", kept.root);
  await assert.rejects(kept.undo(), /no longer exists, or is not a folder/);
  const store = new CheckpointStore({ stateDir: kept.place.at("other"), workspace: kept.root });
  await assert.rejects(store.look(), /is not the real path/);
  store[Symbol.dispose]();
});

test("an unreadable file is named, and restored once it is readable", async () => {
  await using kept = await keptRun({ "a.txt": "a\n", "closed/in.txt": "in\n" });
  const asRoot = process.getuid?.() === 0;
  if (asRoot)
    for (const at of ["", "state", "work", "work/a.txt", "work/closed", "work/closed/in.txt"]) {
      mkdirSync(kept.place.at("state"), { recursive: true });
      chownSync(kept.place.at(at), 1000, 1000);
    }
  if (asRoot) process.seteuid?.(1000);
  try {
    const before = pictureOf(kept.root);
    await kept.run(() => {
      chmodSync(kept.place.at("work/a.txt"), 0);
      chmodSync(kept.place.at("work/closed"), 0);
    });
    const { refused } = await kept.undo();
    assert.deepEqual([refused, pictureOf(kept.root)], [[], before]);
    chmodSync(kept.place.at("work/a.txt"), 0);
    using store = kept.open();
    const { why } = { why: undefined, ...(await store.look()).get("a.txt") };
    assert.equal(why, "unreadable");
  } finally {
    if (asRoot) process.seteuid?.(0);
  }
});

const modeOf = (file: string): number => lstatSync(file).mode & 0o7777;

test("what a run changed in folders that it closed is undone and redone", async () => {
  await using kept = await keptRun({ "closed/in.txt": "in\n", "listed/in.txt": "in\n", "b.txt": "b\n" });
  const at = (name: string): string => path.join(kept.root, name);
  await unprivileged(kept.place.path, async () => {
    const before = pictureOf(kept.root);
    await kept.run(() => {
      rmSync(at("closed/in.txt"));
      writeFileSync(at("closed/new.txt"), "new\n");
      writeFileSync(at("listed/in.txt"), "changed\n");
      mkdirSync(at("made/below"), { recursive: true });
      writeFileSync(at("made/below/f.txt"), "f\n");
      chmodSync(at("made/below"), 0o100);
      chmodSync(at("made"), 0);
      chmodSync(at("closed"), 0);
      chmodSync(at("listed"), 0o600);
    });
    assert.deepEqual(
      ["made", "closed", "listed"].map((name) => modeOf(at(name))),
      [0, 0, 0o600],
    );
    assert.deepEqual((await kept.undo()).refused, []);
    assert.deepEqual(pictureOf(kept.root), before);
    assert.deepEqual((await kept.undo({ redo: true })).refused, []);
    assert.deepEqual(
      ["made", "closed", "listed"].map((name) => modeOf(at(name))),
      [0, 0, 0o600],
    );
    for (const name of ["made", "closed", "listed"]) chmodSync(at(name), 0o700);
    assert.equal(readFileSync(at("listed/in.txt"), "utf8"), "changed\n");
    assert.deepEqual(readdirSync(at("closed")), ["new.txt"]);
    assert.equal(modeOf(at("made/below")), 0o100);
    chmodSync(at("made/below"), 0o700);
    assert.equal(readFileSync(at("made/below/f.txt"), "utf8"), "f\n");
  });
});

test("a folder that a run closed and the end of its box opened gets back the mode that it had", async () => {
  await using kept = await keptRun({ "closed/in.txt": "in\n" });
  const closed = path.join(kept.root, "closed");
  chmodSync(closed, 0o755);
  await kept.run(() => chmodSync(closed, 0o040));
  chmodSync(closed, 0o740);
  assert.deepEqual((await kept.undo()).refused, []);
  assert.equal(modeOf(closed), 0o755);
});

/** So many that they are not looked at within one slice of time. */
const MANY = 4000;

test("a cancelled call does not wait for a snapshot of a large workspace, and the next one has its checkpoint", async () => {
  await using kept = await keptRun({ "a.txt": "a\n" });
  for (let nth = 0; nth < MANY; nth += 1) writeFileSync(path.join(kept.root, `f${nth}`), `file ${nth}`);
  const { steps } = kept;
  const looks: string[] = [];
  const open = (): CheckpointStore => {
    const store = kept.open();
    const look = store.look.bind(store);
    store.look = (signal) =>
      look(signal).then(
        (tree) => (looks.push("whole"), tree),
        (cut: unknown) => {
          looks.push("cut");
          throw cut;
        },
      );
    return store;
  };
  const change = (text: string) => async (): Promise<void> =>
    writeFileSync(kept.place.at("work/a.txt"), text);
  {
    await using run = new RunCheckpoints({ session: "s", steps, open, notice: assert.fail });
    const cancelled = new AbortController();
    run.prepare();
    const done = run.around({ call: "c0", turn: 1, lasting: false }, change("b\n"), cancelled.signal);
    cancelled.abort();
    await done;
    assert.deepEqual([looks.filter((each) => each === "whole"), steps.all()], [[], []]);
    await run.around({ call: "c1", turn: 2, lasting: false }, change("c\n"), new AbortController().signal);
  }
  await kept.undo();
  assert.equal(await kept.place.read("work/a.txt"), "b\n");
});

test("a folder that a run made too deep stays, and undo says so", async () => {
  await using kept = await keptRun({ "a.txt": "a" });
  await kept.run(() => {
    mkdirSync(kept.place.at("work/d"));
    deep(kept.place.at("work/d"), 600, "f");
    mkdirSync(kept.place.at("work/other"));
  });
  const { ops, left } = await kept.undo();
  assert.deepEqual([ops.map(({ path: at }) => at), left[0]], [["other"], "d"]);
  assert.deepEqual(readdirSync(kept.root).toSorted(), ["a.txt", "d"]);
  await removeTree(kept.place.at("work/d"));
});
