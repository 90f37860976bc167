import assert from "node:assert/strict";
import { appendFile, mkdir, readdir, readFile, stat, symlink } from "node:fs/promises";
import test from "node:test";
import {
  DiagnosticsLog,
  entryText,
  type LogFields,
  keptLogs,
  type Level,
  MAX_BYTES,
  MAX_KEPT,
} from "../../src/telemetry/diagnostics-log.ts";
import { scratch } from "../fixtures/scratch.ts";
import { SECRET } from "../fixtures/secrets.ts";

const NOW = Date.UTC(2026, 10, 23, 12, 0, 0, 123);

const wrote = (log: DiagnosticsLog, what: string, fields: LogFields = {}, level: Level = "info"): void =>
  log.add({ at: NOW, level, what, fields });

test("a line is on disk once written, readable by its owner only; each process has one file", async () => {
  await using place = await scratch({});
  const folder = place.at("state/diagnostics");
  using log = new DiagnosticsLog({ folder, began: NOW, pid: 7 });
  wrote(log, "one", { n: 1 });
  using again = new DiagnosticsLog({ folder, began: NOW, pid: 7 });
  wrote(again, "two", { stack: "at a\nat b" }, "error");
  const [name = "", ...others] = await readdir(folder);
  assert.deepEqual([name, others], ["20261123T120000123Z-7.jsonl", []]);
  assert.equal((await stat(folder)).mode & 0o777, 0o700);
  assert.equal((await stat(`${folder}/${name}`)).mode & 0o777, 0o600);
  const [kept] = await keptLogs(folder);
  assert.deepEqual(kept?.entries.map(entryText), [
    "12:00:00.123 info  one  n=1",
    "12:00:00.123 error two\n    at a\n    at b",
  ]);
});

test("a line cut by a kill and invalid lines are skipped, and the others are read", async () => {
  await using place = await scratch({});
  using log = new DiagnosticsLog({ folder: place.path, began: NOW, pid: 1 });
  wrote(log, "before");
  const [name = ""] = await readdir(place.path);
  await appendFile(place.at(name), 'null\n7\n{"at":3}\n{"at":"2026-11-23T12:00:01.000Z","level":"in');
  const [kept] = await keptLogs(place.path);
  assert.deepEqual(
    kept?.entries.map(({ what }) => what),
    ["before"],
  );
  assert.deepEqual(await keptLogs(place.at("not-there")), []);
});

test("the logs of the last processes are kept, and other files are left alone", async () => {
  await using place = await scratch({ "notes.txt": "mine", "20261123T120000123Z-x.jsonl": "mine" });
  for (let pid = 1; pid <= MAX_KEPT + 5; pid += 1) {
    using log = new DiagnosticsLog({ folder: place.path, began: NOW + pid, pid });
    wrote(log, String(pid));
  }
  const kept = await keptLogs(place.path);
  assert.deepEqual(
    [kept.length, kept[0]?.entries[0]?.what, kept.at(-1)?.entries[0]?.what],
    [MAX_KEPT, "25", "6"],
  );
  const names = await readdir(place.path);
  assert.ok(names.includes("notes.txt") && names.includes("20261123T120000123Z-x.jsonl"));
});

test("a file is bounded, and errors are still written when nothing else is", async () => {
  await using place = await scratch({});
  using log = new DiagnosticsLog({ folder: place.path, began: NOW, pid: 1 });
  for (let at = 0; at < 3000; at += 1) wrote(log, "usual", { text: "x".repeat(200) });
  wrote(log, "late", { text: "x" });
  wrote(log, "broken", {}, "error");
  for (let at = 0; at < 200; at += 1)
    wrote(log, "broken again", { text: "y".repeat(10_000_000 / 200) }, "error");
  const [name = ""] = await readdir(place.path);
  assert.ok((await stat(place.at(name))).size <= 2 * MAX_BYTES + 10_000);
  const whats = (await keptLogs(place.path))[0]?.entries.map(({ what }) => what) ?? [];
  assert.ok(whats.includes("broken") && whats.includes("more than is kept") && !whats.includes("late"));
});

test("no kind of secret is written, however deeply nested", async () => {
  await using place = await scratch({});
  using log = new DiagnosticsLog({ folder: place.path, began: NOW, pid: 1 });
  for (const [kind, before, secret, behind] of SECRET)
    wrote(log, kind, { text: before + secret + behind, deep: [{ value: before + secret + behind }] });
  const [name = ""] = await readdir(place.path);
  const text = await readFile(place.at(name), "utf8");
  assert.equal(text.trimEnd().split("\n").length, SECRET.length);
  for (const [kind, , secret] of SECRET)
    for (const form of [secret, JSON.stringify(secret).slice(1, -1)]) assert.ok(!text.includes(form), kind);
});

test("an unwritable log is skipped without an error", async () => {
  await using place = await scratch({ file: "x" });
  using log = new DiagnosticsLog({ folder: place.at("file/below"), began: NOW, pid: 1 });
  wrote(log, "lost");
  await mkdir(place.at("linked"));
  await symlink(place.at("file"), place.at("linked/20261123T120000123Z-1.jsonl"));
  using linked = new DiagnosticsLog({ folder: place.at("linked"), began: NOW, pid: 1 });
  wrote(linked, "through a link");
  assert.equal(await place.read("file"), "x");
});
