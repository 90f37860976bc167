import assert from "node:assert/strict";
import test from "node:test";
import { broughtOf } from "../../src/extensions/brought.ts";
import { projectHooks, projectTools } from "../../src/extensions/program-files.ts";
import { scratch } from "../fixtures/scratch.ts";

test("a project's hooks and tools are read as the user's are, and what is wrong is said in a line", () => {
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

test("files of .harness that a command starts belong to what is trusted; one that is not there makes it useless", async () => {
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
  assert.equal((await broughtOf(top, "tools"))?.usable, false);
});
