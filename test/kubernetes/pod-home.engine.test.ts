// slow: it loses the API server at many moments
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { readdir, readFile, readlink } from "node:fs/promises";
import test from "node:test";
import { setImmediate } from "node:timers/promises";
import { LazyBox } from "../../src/app/run/lazy-box.ts";
import { changesOfReturned, foldPieces } from "../../src/boxes/workspace/session-layer.ts";
import { type Layer, layerOf } from "../../src/boxes/workspace/layer-record.ts";
import type { OwnedBox } from "../../src/core/ports.ts";
import { asking, NEVER } from "../contract/box-words.ts";
import { image, skip } from "../fixtures/engine.ts";
import { podWants } from "../fixtures/pod-request.ts";
import { type StubPlace, stubPlace } from "./stub-pods.ts";

const keep = "session1";

/** A command that may write, like a call of a run. */
async function call(box: OwnedBox, line: string): Promise<string> {
  const { exit_code, stdout } = await box.exec(asking(["bash", "-ec", line]), NEVER);
  assert.equal(exit_code, 0);
  await box.home?.bring();
  return Buffer.from(stdout.head).toString();
}

const EVICTED = { reason: "Evicted", message: "The node was low on resource: memory." };

/** The pod is gone while a command runs in it. */
async function lose({ api }: StubPlace, box: OwnedBox, line: string): Promise<void> {
  const running = box.exec(asking(["bash", "-c", `${line}; sleep 60`]), NEVER);
  await api.evict(api.named("pods")[0] ?? "", EVICTED);
  await assert.rejects(running, /the box was lost: .*evicted/s);
  await box[Symbol.asyncDispose]();
}

async function layerIn({ place }: StubPlace): Promise<Layer> {
  const layer = await layerOf(place.at("state"), keep);
  assert.ok(layer !== undefined);
  return layer;
}

async function changesIn(place: StubPlace): Promise<readonly string[]> {
  const layer = await layerIn(place);
  await foldPieces(layer);
  const { changes } = await changesOfReturned(layer);
  return changes.map(({ path, what, kind }) => `${what} ${kind} ${path}`);
}

const FILES = {
  "a.txt": "one\n",
  "gone/deep/x": "x",
  "stays/x": "x",
  "stays/y": "y",
  "turns/in": "x",
  file: "f",
};

test("a lost pod loses only the call under way", { skip }, async () => {
  await using place = await stubPlace("none", FILES);
  const box = await place.open({ keep });
  await call(
    box,
    "echo two >> a.txt; rm -r gone stays/y; ln -s a.txt link; mkdir -p new/er && echo n > new/er/n",
  );
  await call(box, "rm -r turns file; echo now a file > turns; mkdir file && echo f > file/in; chmod 750 new");
  await call(box, "echo three >> a.txt; chmod 755 a.txt; rm link; ln -s new link; printf x > $'b\\377d'");
  await lose(place, box, "echo four >> a.txt; rm -r stays");
  assert.deepEqual(await changesIn(place), [
    "modified file a.txt",
    "added file b\udcffd",
    "deleted file file",
    "added folder file",
    "added file file/in",
    "deleted folder gone",
    "deleted folder gone/deep",
    "deleted file gone/deep/x",
    "added link link",
    "added folder new",
    "added folder new/er",
    "added file new/er/n",
    "deleted file stays/y",
    "deleted folder turns",
    "added file turns",
    "deleted file turns/in",
  ]);
  const { folder } = await layerIn(place);
  assert.equal(await readFile(`${folder}/tree/a.txt`, "utf8"), "one\ntwo\nthree\n");
  assert.equal(await readlink(`${folder}/tree/link`), "new");
  assert.deepEqual(await readdir(folder), ["layer", "tree"]);
  assert.equal(await place.place.read("project/a.txt"), "one\n");
  // Another box of the session continues with them, and can be lost too.
  const next = await place.open({ keep });
  assert.equal(await call(next, "cat a.txt turns; echo four >> a.txt"), "one\ntwo\nthree\nnow a file\n");
  await lose(place, next, "rm a.txt");
  await changesIn(place);
  assert.equal(await readFile(`${folder}/tree/a.txt`, "utf8"), "one\ntwo\nthree\nfour\n");
});

test(
  "a call that changed nothing copies nothing back, and later changes are listed together",
  { skip },
  async () => {
    await using place = await stubPlace("none", FILES);
    await using box = await place.open({ keep });
    await call(box, "cat a.txt; mkdir empty; touch /tmp/elsewhere");
    const { folder } = await layerIn(place);
    assert.deepEqual(await readdir(folder), ["layer"]);
    await call(box, "echo two >> a.txt");
    await call(box, "true");
    assert.deepEqual(await readdir(`${folder}/pieces`), ["000001", "base"]);
    const { all, incomplete } = await box.changes();
    assert.deepEqual(
      [[...all].map(({ what, path }) => `${what} ${path}`), incomplete],
      [["modified a.txt"], false],
    );
  },
);

test("a later change replaces an earlier one, and all changes are listed", { skip }, async () => {
  await using place = await stubPlace("none", FILES);
  await using box = await place.open({ keep });
  await call(box, "echo 1 > new; echo 1 > passing; rm gone/deep/x");
  await call(box, "echo 2 > new; rm passing; echo back > gone/deep/x");
  await call(box, "echo 3 > other");
  const { all } = await box.changes();
  assert.deepEqual(
    [...all].map(({ what, path }) => `${what} ${path}`),
    ["modified gone/deep/x", "added new", "added other"],
  );
  const { folder } = await layerIn(place);
  assert.equal(existsSync(`${folder}/pieces/000001/tree/new`), false);
  assert.equal(await readFile(`${folder}/pieces/000002/tree/new`, "utf8"), "2\n");
});

test(
  "a box that ends leaves its whole tree and no partial copies, and the tree is what counts",
  { skip },
  async () => {
    await using place = await stubPlace("none", FILES);
    {
      await using box = await place.open({ keep });
      await call(box, "echo two >> a.txt");
      await box.exec(asking(["bash", "-c", "echo three >> a.txt"]), NEVER);
    }
    const { folder } = await layerIn(place);
    assert.deepEqual(await readdir(folder), ["layer", "tree"]);
    assert.deepEqual(await changesIn(place), ["modified file a.txt"]);
    assert.equal(await readFile(`${folder}/tree/a.txt`, "utf8"), "one\ntwo\nthree\n");
  },
);

test(
  "changes too large to copy after a call are reported at once, and named when the pod is lost",
  { skip },
  async () => {
    await using place = await stubPlace("none", FILES);
    const wants = { ...podWants(image), disk: 2 ** 30 };
    const box = await place.open({ keep, wants });
    await call(box, "head -c 70000000 /dev/zero > large; echo small > beside");
    assert.match(
      place.said.join("\n"),
      /copied back only when the box ends, and is lost if the pod is lost first: 2 files of 67 MiB/,
    );
    await call(box, "echo two >> a.txt");
    await lose(place, box, "true");
    assert.match(
      place.said.join("\n"),
      /lost with the pod: 2 changed files \(beside, large\) and what was under way: /,
    );
    assert.deepEqual(await changesIn(place), ["modified file a.txt"]);
  },
);

test("folders that the image provides are not copied back", { skip }, async () => {
  await using place = await stubPlace("none", { "a.txt": "one\n", "deps/mine.txt": "the host's" });
  const from = "/usr/local/lib/harness/bin";
  const brought = [{ from, to: place.place.at("project/deps") }];
  const box = await place.open({ keep, wants: { ...podWants(image), brought } });
  await call(box, "touch deps/new; echo two >> a.txt");
  await lose(place, box, "true");
  assert.deepEqual(await changesIn(place), ["modified file a.txt"]);
});

test("a pod that is lost between two calls is replaced by one with their changes", { skip }, async () => {
  await using place = await stubPlace("none", FILES);
  const told: string[] = [];
  await using lazy = new LazyBox(
    () => place.open({ keep }),
    () => undefined,
    { tell: (text) => void told.push(text) },
  );
  const exec = async (line: string): Promise<string> => {
    const { stdout } = await (await lazy.box()).exec(asking(["bash", "-ec", line]), NEVER);
    await lazy.bringHome();
    return Buffer.from(stdout.head).toString();
  };
  await exec("echo two >> a.txt; echo n > new; rm stays/x");
  const first = await lazy.box();
  await place.api.evict(place.api.named("pods")[0] ?? "", EVICTED);
  await first.gone;
  assert.equal(lazy.noBox.aborted, false);
  assert.equal(await exec("cat a.txt; echo x > stays/x; rm new"), "one\ntwo\n");
  assert.match(lazy.untoldLoss() ?? "", /evicted/);
  assert.equal(lazy.untoldLoss(), undefined);
  assert.match(told.join("\n"), /the box was lost \(.*evicted/);
  const { all } = await (await lazy.box()).changes();
  assert.deepEqual(
    [...all].map(({ what, path }) => `${what} ${path}`),
    ["modified a.txt", "modified stays/x"],
  );
});

test(
  "a pod that reached its deadline is not replaced, and one whose network was requested is",
  { skip },
  async () => {
    await using place = await stubPlace("none", FILES);
    const lost = async (why: typeof EVICTED, asks: boolean): Promise<unknown> => {
      await using lazy = new LazyBox(
        () => place.open({ keep }),
        () => undefined,
      );
      const box = await lazy.box();
      if (asks) await lazy.network();
      await place.api.evict(place.api.named("pods")[0] ?? "", why);
      await box.gone;
      await setImmediate();
      if (asks) assert.notEqual(await lazy.box(), box);
      return lazy.noBox.reason;
    };
    const late = { reason: "DeadlineExceeded", message: "Pod was active on the node longer than it may be" };
    assert.match(String(await lost(late, false)), /deadline: Pod was active/);
    assert.equal(await lost(EVICTED, true), undefined);
  },
);

test("a repeated change of the same length is copied back each time", { skip }, async () => {
  await using place = await stubPlace("none", FILES);
  await using box = await place.open({ keep });
  const { folder } = await layerIn(place);
  for (let round = 10; round < 60; round += 1) {
    await call(box, `printf ${round} > a.txt`);
    const pieces = (await readdir(`${folder}/pieces`)).filter((name) => name !== "base");
    assert.equal(await readFile(`${folder}/pieces/${pieces.at(-1) ?? ""}/tree/a.txt`, "utf8"), String(round));
  }
});

test(
  "an API server that disappears and returns costs only the call under way, and the box is replaced",
  { skip },
  async () => {
    await using place = await stubPlace("none", FILES);
    await using lazy = new LazyBox(
      () => place.open({ keep }),
      () => undefined,
    );
    const box = await lazy.box();
    await box.exec(asking(["bash", "-c", "echo two >> a.txt"]), NEVER);
    await lazy.bringHome();
    const running = box.exec(asking(["bash", "-c", "echo lost >> a.txt; sleep 60"]), NEVER);
    place.api.away(true);
    const thrown = await running.then(
      () => undefined,
      (reason: unknown) => reason,
    );
    place.api.away(false);
    assert.match((await lazy.replacedAfter(thrown)) ?? "", /connection lost/);
    const { stdout } = await (await lazy.box()).exec(asking(["cat", "a.txt"]), NEVER);
    assert.equal(Buffer.from(stdout.head).toString(), "one\ntwo\n");
    assert.equal(place.api.named("pods").length, 1);
  },
);
