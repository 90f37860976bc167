import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import test from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { openStore } from "../../src/sessions/session-store.ts";
import { ABOUT } from "../contract/store-words.ts";
import { many } from "../fixtures/property.ts";
import { scratch } from "../fixtures/scratch.ts";
import { killed } from "../kills/killed.ts";

const WRITER = path.join(import.meta.dirname, "../fixtures/audit-writer.ts");
const KILLS = many(8);

test(
  `${KILLS} kills at any moment leave a valid chain, with every line that was acknowledged`,
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

test("a torn last line is kept, and the line after it says so", async () => {
  await using place = await scratch();
  using store = openStore(place.at("state"));
  const { audit } = store.create(ABOUT);
  audit.write([{ kind: "run.started" }]);
  const { file } = audit.verify();
  appendFileSync(file, '{"kind":"call.sta');
  assert.deepEqual(audit.verify().notes, ["its last line is incomplete: the run was killed"]);
  const before = readFileSync(file, "utf8");
  audit.write([{ kind: "run.started" }]);
  const { ok, lines, notes } = audit.verify();
  assert.deepEqual([ok, lines], [true, 5]);
  assert.deepEqual(notes, [
    "line 4 continues after a kill or a failed write",
    "the run that starts at line 2 was killed",
    "the run that starts at line 5 has no end: it was killed, or is still running",
  ]);
  assert.ok(readFileSync(file, "utf8").startsWith(`${before}\n{"kind":"recovered"`));
});

test("a torn line does not hide the loss of complete lines", async () => {
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

/** A writer's first changes: opening its file, writing lines, recording them in the database. */
const FIRST_STEPS = [3, 4, 5];

for (const half of [false, true])
  test(`three writers killed in a row before the same ${half ? "half of a " : ""}change leave a valid chain`, async () => {
    for (const at of FIRST_STEPS) {
      await using place = await scratch();
      const state = place.at("state");
      const first = openStore(state);
      const { id, audit } = first.create(ABOUT);
      if (at % 2 === 0) audit.write([{ kind: "run.started" }]);
      first[Symbol.dispose]();
      for (let kill = 0; kill < 3; kill += 1) {
        await killed("fixtures/audit-writer.ts", [state, id], { kind: "step", at, half });
        using store = openStore(state);
        const { ok, broken } = store.open(id).audit.verify();
        assert.ok(ok, JSON.stringify({ at, kill, broken }));
      }
      using store = openStore(state);
      store.open(id).audit.write([{ kind: "run.finished" }]);
      assert.ok(store.open(id).audit.verify().ok);
    }
  });

test("successive writers whose own recovery lines were torn are reported", async () => {
  await using place = await scratch();
  using store = openStore(place.at("state"));
  const { audit } = store.create(ABOUT);
  audit.write([{ kind: "run.started" }]);
  const { file } = audit.verify();
  appendFileSync(file, '{"kind":"call.sta');
  appendFileSync(file, '\n{"kind":"recov');
  appendFileSync(file, '\n{"kind":"recovered","ts":"2026');
  assert.deepEqual(audit.verify().notes, ["its last line is incomplete: the run was killed"]);
  // Only the line feed of the next line reached the disk.
  appendFileSync(file, "\n");
  assert.ok(audit.verify().ok);
  audit.write([{ kind: "run.finished" }]);
  assert.deepEqual(audit.verify().notes[0], "line 6 continues after a kill or a failed write");
  assert.ok(audit.verify().ok);
  const whole = readFileSync(file, "utf8");
  writeFileSync(file, whole.replace('{"kind":"recov\n', '{"kind":"recow\n'));
  assert.equal(audit.verify().ok, false);
});

for (const [what, text] of [
  ["another torn line", '{"kind":"call.sta\n{"kind":"call.end'],
  ["an empty line", "\n"],
] as const)
  test(`${what} after the last line is not accepted as the trace of a kill`, async () => {
    await using place = await scratch();
    using store = openStore(place.at("state"));
    const { audit } = store.create(ABOUT);
    audit.write([{ kind: "run.started" }]);
    const { file } = audit.verify();
    appendFileSync(file, text);
    assert.equal(audit.verify().ok, false);
    audit.write([{ kind: "run.finished" }]);
    assert.equal(audit.verify().ok, false);
  });

test("lines that the database does not know, and that no recovery explains, are reported as added", async () => {
  await using place = await scratch();
  const state = place.at("state");
  let now = 1_000_000;
  using store = openStore(state, { now: () => (now += 1000) });
  const { audit } = store.create(ABOUT);
  audit.write([{ kind: "run.started" }]);
  const database = new DatabaseSync(path.join(state, "sessions.db"));
  const head = database.prepare("SELECT lines, bytes, hash FROM audits").get() ?? {};
  const asBefore = (): void => {
    const { lines = 0, bytes = 0, hash = "" } = head;
    database.prepare("UPDATE audits SET lines = ?, bytes = ?, hash = ?").run(lines, bytes, hash);
  };
  audit.write([{ kind: "notice", text: "one" }]);
  asBefore();
  assert.ok(audit.verify().ok);
  // It continues from the state in the database, like a writer after a kill.
  audit.write([{ kind: "notice", text: "two" }]);
  asBefore();
  assert.ok(audit.verify().ok);
  audit.write([{ kind: "notice", text: "three" }]);
  audit.write([{ kind: "notice", text: "four" }]);
  asBefore();
  database.close();
  assert.equal(audit.verify().broken?.line, 3);
});
