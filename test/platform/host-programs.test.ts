import assert from "node:assert/strict";
import test from "node:test";
import { safeEnvironment } from "../../src/platform/host-programs.ts";

for (const [what, PATH, expected] of [
  ["leads into the workspace", "/ws/node_modules/.bin:/usr/bin:/ws", { A: "1", PATH: "/usr/bin" }],
  ["leads there by a way around", "/usr/../ws/bin:/bin", { A: "1", PATH: "/bin" }],
  ["depends on the current folder", "bin::.:/bin", { A: "1", PATH: "/bin" }],
  ["leaves nothing, so that an empty one would mean the current folder", "/ws/bin:.", { A: "1" }],
  ["is not set", undefined, { A: "1" }],
] as const)
  test(`a program of the host is given no PATH that ${what}`, () => {
    const env = PATH === undefined ? { A: "1" } : { A: "1", PATH };
    assert.deepEqual(safeEnvironment(env, "/ws"), expected);
  });
