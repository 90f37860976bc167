import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, readFileSync, truncateSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { openStore } from "../../../src/sessions/session-store.ts";
import { ABOUT } from "../../contract/store-words.ts";
import { scratch } from "../../fixtures/scratch.ts";

const WRITER = path.join(import.meta.dirname, "../../fixtures/audit-writer.ts");
const KILLS = 32;

test(
  `${KILLS} kills at any moment leave a chain that holds, with every line that was told`,
  { timeout: 200_000 },
  async () => {
    await using place = await scratch();
    const state = place.at("state");
    using store = openStore(state);
    const { id, audit } = store.create(ABOUT);
    let told = 0;
    for (let kill = 0; kill < KILLS; kill += 1) {
      const child = spawn(process.execPath, [WRITER, state, id], { stdio: ["ignore", "pipe", "inherit"] });
      let text = "";
      child.stdout.on("data", (chunk: Buffer) => (text += chunk.toString()));
      const closed = once(child, "close");
      await once(child.stdout, "data");
      await sleep(Math.random() * 12);
      child.kill("SIGKILL");
      await closed;
      told += text.split("\n").length - 1;
      const { ok, broken, file } = audit.verify();
      assert.ok(ok, JSON.stringify(broken));
      const kept = readFileSync(file, "utf8")
        .split("\n")
        .filter((line) => line.includes('"kind":"notice"'));
      assert.ok(kept.length >= told, `${kept.length} of ${told}`);
      told = kept.length;
    }
  },
);

test("a torn last line stays as it is, and a line behind it says so", async () => {
  await using place = await scratch();
  using store = openStore(place.at("state"));
  const { audit } = store.create(ABOUT);
  audit.write([{ kind: "run.started" }]);
  const { file } = audit.verify();
  appendFileSync(file, '{"kind":"call.sta');
  assert.deepEqual(audit.verify().notes, ["its last line is torn: the run was killed"]);
  const before = readFileSync(file, "utf8");
  audit.write([{ kind: "run.started" }]);
  const { ok, lines, notes } = audit.verify();
  assert.deepEqual([ok, lines], [true, 5]);
  assert.deepEqual(notes, [
    "line 4 goes on after a kill",
    "the run that line 2 began was killed",
    "the run that line 5 began has no end: it was killed, or it goes on now",
  ]);
  assert.ok(readFileSync(file, "utf8").startsWith(`${before}\n{"kind":"recovered"`));
});

test("a torn line is no cover for lines that were whole", async () => {
  await using place = await scratch();
  using store = openStore(place.at("state"));
  const { audit } = store.create(ABOUT);
  audit.write([{ kind: "run.started" }]);
  audit.write([{ kind: "call.started", call: "c1" }]);
  const { file } = audit.verify();
  truncateSync(file, readFileSync(file).length - 20);
  assert.deepEqual(audit.verify().broken, { line: 3, why: "1 line is missing from here on" });
  audit.write([{ kind: "run.started" }]);
  assert.equal(audit.verify().broken?.line, 3);
});
