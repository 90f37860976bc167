import assert from "node:assert/strict";
import test from "node:test";
import { mcpServers, projectServers, withoutValues } from "../../src/config/mcp-settings.ts";

const DEFAULTS = {
  enabled: true,
  tools: { allow: [], deny: [] },
  on_change: "warn",
  init_timeout: 5000,
  call_timeout: 60_000,
};

test("a server is a command in the box or a url, with defaults for the rest", () => {
  assert.deepEqual(
    mcpServers.parse({
      a: { command: "npx", args: ["-y", "x"] },
      b: { command: ["node", "s.js"], sandbox: false, env: { A: "${A}" }, cwd: "sub", call_timeout: "2m" },
      c: {
        type: "http",
        url: "https://a.org/mcp",
        headers: { Authorization: "Bearer ${T}" },
        enabled: false,
      },
    }),
    {
      a: { command: ["npx", "-y", "x"], env: {}, sandbox: true, ...DEFAULTS },
      b: {
        ...DEFAULTS,
        command: ["node", "s.js"],
        env: { A: "${A}" },
        cwd: "sub",
        sandbox: false,
        call_timeout: 120_000,
      },
      c: { ...DEFAULTS, url: "https://a.org/mcp", headers: { Authorization: "Bearer ${T}" }, enabled: false },
    },
  );
});

for (const [server, message] of [
  [{}, /either a command, or the url/],
  [{ command: "a", url: "https://a.org" }, /either a command, or the url/],
  [{ command: [] }, /a program and its arguments|expected a command/],
  [{ command: ["a"], args: ["b"] }, /args needs a command that is a single string/],
  [{ command: "a", headers: {} }, /headers are only for a server with a url/],
  [{ url: "https://a.org", env: {} }, /env is only for a server with a command/],
  [{ url: "https://a.org", sandbox: false }, /sandbox is only for a server with a command/],
  [{ url: "ftp://a.org" }, /http:\/\/ or https:\/\//],
  [{ url: "https://a.org", type: "sse" }, /only speak SSE are not supported/],
  [{ url: "https://a.org", headers: { Host: "b.org" } }, /that the harness does not set itself/],
  [{ url: "https://a.org", headers: { A: "b\r\nC: d" } }, /without line breaks/],
  [{ command: "a", type: "http" }, /always uses stdio/],
  [{ command: "a", env: { "A B": "c" } }, /variable's name/],
  [{ command: "a", sandbox: "no" }, /true or false/],
  [{ command: "a", init_timeout: "5h" }, /from 100ms to/],
  [{ command: "a", timeout: 5 }, /Unrecognized key/],
  [{ command: "a\0b" }, /NUL|expected a command/],
  [{ command: "a", tools: { only: [] } }, /Unrecognized key/],
] as const)
  test(`is not a server: ${JSON.stringify(server)}`, () => {
    const read = mcpServers.safeParse({ a: server });
    assert.ok(!read.success);
    assert.match(JSON.stringify(read.error.issues), message);
  });

for (const name of ["", "a__b", "_a", "a b", "a.b", "x".repeat(33), "\u0430"])
  test(`is not a server name: ${JSON.stringify(name)}`, () => {
    const read = mcpServers.safeParse({ [name]: { command: "a" } });
    assert.match(read.error?.issues[0]?.message ?? "", /a name such as github/);
  });

test("a file shared with other agents is read: an invalid server does not affect others, and unknown keys are tolerated", () => {
  const { servers, faults } = projectServers({
    mcpServers: {
      good: { command: "a", type: "stdio", disabled: false, alwaysAllow: ["x"], description: "d" },
      off: { command: "a", disabled: true },
      bad: { command: "a", colour: "red" },
      old: { type: "sse", url: "https://a.org" },
    },
  });
  assert.deepEqual(Object.keys(servers), ["good", "off"]);
  assert.equal(servers["off"]?.enabled, false);
  assert.match(faults.join("\n"), /bad: unknown: colour\nold: type: .*SSE/);
});

for (const value of [{}, [], { mcpServers: [] }, null, "x"])
  test(`contains no servers: ${JSON.stringify(value)}`, () => {
    assert.deepEqual(projectServers(value).faults, ["it contains no servers; expected the key mcpServers"]);
  });

test("a record keeps only names of variables, no literal values", () => {
  const servers = mcpServers.parse({
    a: { command: "a", env: { A: "secret", B: "${B}" } },
    b: { url: "https://a.org", headers: { Authorization: "Bearer secret" } },
  });
  assert.doesNotMatch(JSON.stringify(withoutValues(servers)), /secret/);
  assert.match(JSON.stringify(withoutValues(servers)), /\$\{B\}/);
});
