import assert from "node:assert/strict";
import test from "node:test";
import { safeEnvironment } from "../../src/platform/host-programs.ts";

for (const [what, PATH, expected] of [
  ["leads into the workspace", "/ws/node_modules/.bin:/usr/bin:/ws", { A: "1", PATH: "/usr/bin" }],
  ["leads there by a detour", "/usr/../ws/bin:/bin", { A: "1", PATH: "/bin" }],
  ["depends on the current folder", "bin::.:/bin", { A: "1", PATH: "/bin" }],
  ["is empty once cleaned, because an empty one means the current folder", "/ws/bin:.", { A: "1" }],
  ["was not set", undefined, { A: "1" }],
] as const)
  test(`a program on the host gets no PATH that ${what}`, () => {
    const env = PATH === undefined ? { A: "1" } : { A: "1", PATH };
    assert.deepEqual(safeEnvironment(env, "/ws"), expected);
  });
