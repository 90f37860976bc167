import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { readdir, rm } from "node:fs/promises";
import path from "node:path";
import test from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { noOverlay } from "../docker/box/open-box.ts";
import type { Scratch } from "../fixtures/scratch.ts";
import { household } from "./box-command.ts";
import { engine } from "../fixtures/engine-api.ts";
import { finishedOf, harness, type Ran, type RunStart, startModel } from "./run-command.ts";

/** A run in a layer over `work` that does what the shell line does. */
async function runInLayer(place: Scratch, line: string, more: readonly string[] = []): Promise<Ran> {
  await using model = await startModel([{ calls: [["bash", { command: line }]] }, { text: "Done." }]);
  const flags = more.includes("--isolation") ? more : ["--isolation", "overlay", ...more];
  return await harness(place, ["run", "--json", "--intent", "change", ...flags, ...model.flags, "do it"]);
}

const FILES = {
  a: "one\ntwo\nthree\nfour\nfive\nsix\n",
  gone: "x\n",
  "old/file": "moved\n",
};

test(
  "apply moves a run's changes from its layer into the folder, and undo takes them back",
  { skip: noOverlay },
  async () => {
    await using place = await household(FILES);
    const ran = await runInLayer(
      place,
      "sed -i s/two/TWO/ a; rm gone; mv old new; mkdir empty; ln -s a link; printf '#!/bin/sh\\n' >run; chmod 755 run",
    );
    const { status } = finishedOf(ran);
    assert.equal(status, "done", ran.stderr + ran.stdout);
    assert.equal(await place.read("work/a"), FILES.a);
    await place.write("work/a", FILES.a.replace("six", "SIX"));
    const diff = await harness(place, ["diff"]);
    assert.match(diff.stdout, /^-two\n\+TWO\n three\n/m);
    assert.match(diff.stdout, /^rename from old\/file\nrename to new\/file$/m);
    assert.match(diff.stderr, /in the folder itself yet: harness apply/);
    const early = await harness(place, ["undo"]);
    assert.match(early.stdout, /^nothing to undo/);
    assert.match(early.stderr, /are not in the folder: harness diff \S+ shows them/);
    const applied = await harness(place, ["apply", "--json"]);
    assert.equal(applied.code, 0, applied.stderr + applied.stdout);
    assert.equal(await place.read("work/a"), FILES.a.replace("six", "SIX").replace("two", "TWO"));
    assert.equal(await place.read("work/new/file"), "moved\n");
    const back = await harness(place, ["undo"]);
    assert.equal(back.code, 0, back.stderr);
    assert.equal(await place.read("work/a"), FILES.a.replace("six", "SIX"));
    assert.equal(await place.read("work/old/file"), "moved\n");
    const again = await harness(place, ["apply"]);
    assert.deepEqual([again.code, /already applied/.test(again.stderr)], [2, true]);
  },
);

test(
  "changes in a layer can be applied although the session database was lost",
  { skip: noOverlay },
  async () => {
    await using place = await household({ a: "1\n" });
    const { session: id } = finishedOf(await runInLayer(place, "echo 2 >>a"));
    await place.write(".local/state/harness/sessions.db", "no database any more\n".repeat(500));
    for (const suffix of ["-wal", "-shm"])
      await rm(place.at(`.local/state/harness/sessions.db${suffix}`), { force: true });
    const listed = await harness(place, ["sessions", "checkpoints"]);
    assert.match(listed.stderr, new RegExp(`${id} has changes outside the folder`));
    const lost = await harness(place, ["apply"]);
    assert.deepEqual([lost.code, /damaged.*harness sessions checkpoints/s.test(lost.stderr)], [2, true]);
    const applied = await harness(place, ["apply", id]);
    assert.equal(applied.code, 0, applied.stderr);
    assert.equal(await place.read("work/a"), "1\n2\n");
    const back = await harness(place, ["undo", id]);
    assert.equal(back.code, 0, back.stderr);
    assert.equal(await place.read("work/a"), "1\n");
  },
);

test(
  "a further run continues on the layer, and an unknown folder or a bind session has nothing to apply",
  { skip: noOverlay },
  async () => {
    await using place = await household({ a: "1\n" });
    const none = await harness(place, ["apply"]);
    assert.deepEqual([none.code, /no session of/.test(none.stderr)], [2, true]);
    const first = await runInLayer(place, "echo 2 >>a");
    const second = await runInLayer(place, "echo 3 >>a; echo new >b", ["--continue"]);
    assert.equal(finishedOf(second).session, finishedOf(first).session);
    assert.deepEqual(finishedOf(second).changes?.added, ["b"]);
    const dry = await harness(place, ["apply", "--dry-run"]);
    assert.deepEqual([dry.code, await place.read("work/a")], [0, "1\n"], dry.stderr);
    assert.match(dry.stdout, /^changed +a\nadded +b\n2 paths would be applied$/m);
    const applied = await harness(place, ["apply", "--only", "a"]);
    assert.deepEqual([applied.code, await place.read("work/a")], [0, "1\n2\n3\n"]);
    const rest = await harness(place, ["apply"]);
    assert.deepEqual([rest.code, await place.read("work/b")], [0, "new\n"]);
    const bound = await runInLayer(place, "echo 4 >>a", ["--isolation", "bind"]);
    const refused = await harness(place, ["apply", finishedOf(bound).session]);
    assert.deepEqual([refused.code, /already applied/.test(refused.stderr)], [2, true]);
  },
);

test(
  "files that the host executes are reported by the run and require a yes",
  { skip: noOverlay },
  async () => {
    await using place = await household({ "package.json": "{}\n" });
    const script = `mkdir .vscode; echo '{}' >.vscode/tasks.json; ln -s /etc out; echo '{"scripts":{"test":"x"}}' >package.json`;
    await place.write("work/make.sh", script);
    const told = finishedOf(await runInLayer(place, "sh make.sh")).handoff;
    assert.deepEqual(
      told.map(({ path, tier }) => [path, tier]),
      [
        [".vscode/tasks.json", "dangerous"],
        ["out", "dangerous"],
        ["package.json", "look"],
      ],
    );
    const blocked = await harness(place, ["apply", "--json"]);
    assert.equal(blocked.code, 4);
    const said = JSON.parse(blocked.stdout) as { blocked: string[]; done: boolean };
    assert.deepEqual([said.blocked, said.done], [[".vscode/tasks.json", "out"], false]);
    assert.equal(await place.read("work/package.json"), "{}\n");
    const half = await harness(place, ["apply", "--accept", ".vscode/tasks.json"]);
    assert.equal(half.code, 4);
    const unknown = await harness(place, ["apply", "--accept", "nothing"]);
    assert.equal(unknown.code, 2);
    const yes = await harness(place, ["apply", "--accept", ".vscode/tasks.json", "--accept", "out"]);
    assert.equal(yes.code, 0, yes.stdout + yes.stderr);
    assert.equal(await place.read("work/.vscode/tasks.json"), "{}\n");
  },
);

test("a killed run leaves its layer, and removing the session removes it", { skip: noOverlay }, async () => {
  await using place = await household({ a: "1\n" });
  await using model = await startModel([
    { calls: [["bash", { command: "echo 2 >>a; rm -f x; echo y >made; sleep 60" }]] },
  ]);
  const words = ["run", "--isolation", "overlay", "--intent", "change", ...model.flags, "do it"];
  const layers = place.at(".local/state/harness/layers");
  const start: RunStart = {
    whenMade: [
      layers,
      async (child) => {
        const upper = async () =>
          (await readdir(layers).catch(() => [])).find((name) => !name.startsWith(".")) ?? "none";
        while (!existsSync(path.join(layers, await upper(), "upper/made"))) await sleep(20);
        child.kill("SIGKILL");
      },
    ],
  };
  const killed = await harness(place, words, start);
  assert.equal(killed.code, null);
  const busy = await harness(place, ["sandbox", "ls"]);
  assert.equal(busy.code, 0);
  const dry = await harness(place, ["apply", "--dry-run"]);
  assert.match(dry.stdout, /changed +a\nadded +made/, dry.stderr);
  const [id = ""] = await readdir(layers);
  const removed = await harness(place, ["sessions", "rm", id]);
  assert.equal(removed.code, 0, removed.stderr);
  assert.deepEqual(await readdir(layers), []);
  assert.equal(await place.read("work/a"), "1\n");
});

test("a copy is applied like a layer, and its volume is removed", { skip: noOverlay }, async () => {
  await using place = await household({ a: "1\n2\n3\n4\n", gone: "x\n", same: "x\n" });
  const line = "sed -i s/1/one/ a; rm gone; mkdir -p d/empty; printf x >$'d/new\\nline'; ln a d/second";
  const ran = await runInLayer(place, line, ["--isolation", "copy"]);
  await runInLayer(place, "echo 5 >>a", ["--isolation", "copy", "--continue"]);
  await place.write("work/mine", "user\n");
  const applied = await harness(place, ["apply", "--json"]);
  assert.equal(applied.code, 0, applied.stderr);
  assert.equal(await place.read("work/a"), "one\n2\n3\n4\n5\n");
  assert.equal(await place.read("work/d/new\nline"), "x");
  assert.equal(await place.read("work/mine"), "user\n");
  assert.equal(existsSync(place.at("work/gone")), false);
  const filters = { label: [`dev.harness.kept=${finishedOf(ran).session}`] };
  assert.deepEqual((await engine.api.listVolumes({ filters })).Volumes ?? [], []);
});

test(
  "a diff of changes that cannot be applied does not say that nothing changed",
  { skip: noOverlay },
  async () => {
    await using place = await household({ a: "1\n" });
    const ran = await runInLayer(place, "echo 2 >a");
    assert.equal(ran.code, 0, ran.stderr);
    await place.write("work/a", "mine\n");
    const diff = await harness(place, ["diff", "--stat"]);
    assert.match(diff.stderr, /^note: a would not be applied: the same lines were changed since$/m);
    assert.doesNotMatch(diff.stderr, /changed nothing/);
  },
);

test(
  "a copy missing from the engine is not mistaken for one with all files deleted",
  { skip: noOverlay },
  async () => {
    await using place = await household({ a: "1\n", b: "2\n" });
    const ran = await runInLayer(place, "echo 3 > a", ["--isolation", "copy"]);
    const id = finishedOf(ran).session;
    const record = `.local/state/harness/layers/${id}/layer`;
    const layer = JSON.parse(await place.read(record)) as { readonly volume: string; readonly at: string };
    assert.equal(layer.at, engine.endpoint.host);
    await engine.api.getVolume(layer.volume).remove();
    const here = ["--engine", engine.endpoint.host];
    for (const words of [["diff"], ["apply"]]) {
      const gone = await harness(place, [...words, id, ...here]);
      assert.equal(gone.code, 6, gone.stderr + gone.stdout);
      assert.match(gone.stderr, /the copy that .* has worked on is gone: the engine at .* has no volume/);
      // As a session whose runs were on another engine.
      await place.write(record, JSON.stringify({ ...layer, at: "ssh://dev@far.test" }));
      const other = await harness(place, [...words, id, ...here]);
      assert.equal(other.code, 2, other.stderr + other.stdout);
      assert.match(other.stderr, /copy on the engine at ssh:\/\/dev@far\.test, but the one at/);
      assert.match(other.stderr, /next: use --engine ssh:\/\/dev@far\.test$/m);
      await place.write(record, JSON.stringify(layer));
    }
    assert.deepEqual([await place.read("work/a"), await place.read("work/b")], ["1\n", "2\n"]);
    const removed = await harness(place, ["sessions", "rm", id]);
    assert.equal(removed.code, 0, removed.stderr);
  },
);
