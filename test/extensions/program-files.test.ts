import assert from "node:assert/strict";
import test from "node:test";
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { broughtOf } from "../../src/extensions/brought.ts";
import {
  afterChanges,
  keptValues,
  MAX_VALUE,
  MAX_VALUES,
  projectHooks,
  projectTools,
} from "../../src/extensions/program-files.ts";
import { scratch } from "../fixtures/scratch.ts";

test("a project's hooks and tools are parsed like the user's, and errors are one line", () => {
  assert.deepEqual(projectHooks("h.json", '[{"event": "Stop", "command": "true"}, // why\n]'), [
    { event: "Stop", command: "true" },
  ]);
  assert.deepEqual(projectTools("t.json", '{"a": {"description": "d", "command": ["x"]}}'), {
    a: { description: "d", command: ["x"] },
  });
  const rows: readonly (readonly [() => unknown, RegExp])[] = [
    [() => projectHooks("h.json", "["), /^Error: h\.json: it is not JSON$/],
    [() => projectHooks("h.json", '[{"event": "Stop"}]'), /^Error: h\.json: 0\.command: expected a command/],
    [() => projectHooks("h.json", "[".repeat(99_999)), /nested too deep/],
    [() => projectTools("t.json", '{"a b": {"description": "d", "command": "x"}}'), /expected tool names/],
    [() => projectTools("t.json", '{"a": {"description": "d", "command": "x", "reads": true}}'), /a: /],
  ];
  for (const [read, why] of rows) assert.throws(read, why);
});

test("files in .harness that a command starts are part of what is trusted, and a missing one stands for all of them", async () => {
  const hooks = JSON.stringify([
    { event: "Stop", command: ["node", ".harness/hooks/end.mjs", "src/index.js"] },
    { event: "PreToolUse", command: "cd x && ./.harness/guard.sh --quiet; python3 .harness/hooks/end.mjs" },
  ]);
  await using place = await scratch({
    ".harness/hooks.json": hooks,
    ".harness/hooks/end.mjs": "1",
    ".harness/guard.sh": "2",
    "src/index.js": "3",
  });
  const top = { top: place.path, dev: "0", ino: "0" };
  const brought = await broughtOf(top, "hooks");
  assert.deepEqual(brought?.usable === true && brought.files.map((file) => file.path), [
    ".harness/hooks.json",
    ".harness/hooks/end.mjs",
    ".harness/guard.sh",
  ]);
  await place.write(
    ".harness/tools.json",
    '{"a": {"description": "d", "command": ["sh", ".harness/gone.sh"]}}',
  );
  const tools = await broughtOf(top, "tools");
  assert.deepEqual(tools?.usable === true && tools.files.map((file) => file.path).toSorted(), [
    ".harness/guard.sh",
    ".harness/hooks/end.mjs",
    ".harness/tools.json",
  ]);
});

test("stored values are available later, separately for each workspace and owner", async () => {
  await using place = await scratch();
  const of = (workspace: string, owner: "user" | "project") =>
    keptValues({ stateDir: place.path, workspace, owner });
  assert.deepEqual(of("/a", "user").read(), {});
  assert.equal(await of("/a", "user").change({ seen: ["x"], n: 1 }), undefined);
  assert.equal(await of("/a", "project").change({ n: 2 }), undefined);
  assert.equal(await of("/a", "user").change({ n: null }), undefined);
  assert.deepEqual(
    [of("/a", "user").read(), of("/a", "project").read(), of("/b", "user").read()],
    [{ seen: ["x"] }, { n: 2 }, {}],
  );
});

test("two changes at the same time are both kept", async () => {
  await using place = await scratch();
  const values = () => keptValues({ stateDir: place.path, workspace: "/a", owner: "user" });
  await Promise.all(Array.from({ length: 8 }, (_, at) => values().change({ [`n${at}`]: at })));
  assert.equal(Object.keys(values().read()).length, 8);
});

test("a change beyond the limits is refused with the reason", () => {
  const before = { a: 1 };
  const many = Object.fromEntries(Array.from({ length: MAX_VALUES }, (_, at) => [`n${at}`, at]));
  const rows: readonly (readonly [Record<string, unknown>, RegExp])[] = [
    [{ "a b": 1 }, /not a valid name/],
    [{ b: "x".repeat(MAX_VALUE) }, /b has more than 4096 bytes/],
    [many, /more than 64 values/],
    [Object.fromEntries(Array.from({ length: 12 }, (_, at) => [`n${at}`, "x".repeat(3000)])), /in total/],
  ];
  for (const [changes, why] of rows) {
    const next = afterChanges(before, changes);
    assert.ok(typeof next === "string");
    assert.match(next, why);
  }
  assert.deepEqual(afterChanges(before, { ["__proto__"]: 1, a: null }), JSON.parse('{"__proto__": 1}'));
});

test("a damaged, linked or oversized file counts as empty", async () => {
  await using place = await scratch();
  const values = keptValues({ stateDir: place.path, workspace: "/a", owner: "user" });
  await values.change({ n: 1 });
  const folder = place.at("kept-values");
  const name = readdirSync(folder).find((file) => file.endsWith(".json")) ?? "";
  for (const text of ["{", "[1]", `{"a":"${"x".repeat(99_999)}"}`]) {
    writeFileSync(path.join(folder, name), text);
    assert.deepEqual(values.read(), {});
  }
  assert.equal(await values.change({ n: 2 }), undefined);
  assert.deepEqual(values.read(), { n: 2 });
});

test("an unwritable state folder stores nothing and reports the reason", async () => {
  await using place = await scratch({ state: "a file" });
  mkdirSync(place.at("other"));
  const values = keptValues({ stateDir: place.at("state"), workspace: "/a", owner: "user" });
  assert.match((await values.change({ n: 1 })) ?? "", /something that is not a folder has that name/);
  assert.deepEqual(values.read(), {});
});
