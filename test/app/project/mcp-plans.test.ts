import assert from "node:assert/strict";
import test from "node:test";
import { serverPlans } from "../../../src/app/project/mcp-plans.ts";
import { hostFrom } from "../../../src/app/host.ts";
import { mcpServers } from "../../../src/config/mcp-settings.ts";
import { type Scratch, scratch } from "../../fixtures/scratch.ts";
import { trustAll } from "../../fixtures/trust-all.ts";

const USER = ".config/harness/config.json";
const file = (servers: object): string => JSON.stringify({ mcpServers: servers });

async function plansIn(place: Scratch, mcp: object = {}, origin = place.at(USER)) {
  const host = hostFrom({ HOME: place.path });
  const settings = { mcp: mcpServers.parse(mcp) };
  const { servers, left } = await serverPlans({
    host,
    settings,
    origins: { mcp: origin },
    workspace: place.at("w"),
  });
  return {
    servers: servers.map(({ name, isOwn, origin: by }) => [name, isOwn, by.replace(`${place.path}/`, "")]),
    left: left.map(({ name, why }) => [name, why]),
  };
}

test("a project's servers are active once they are trusted, and not after any change of the file", async () => {
  await using place = await scratch({ "w/.git/HEAD": "", "w/.mcp.json": file({ a: { command: "x" } }) });
  const before = await plansIn(place);
  assert.deepEqual(before.servers, []);
  assert.match(String(before.left), /it is not trusted: harness trust/);
  await trustAll(hostFrom({ HOME: place.path }), place.at("w"));
  assert.deepEqual(await plansIn(place), { servers: [["a", false, "w/.mcp.json"]], left: [] });
  await place.write("w/.mcp.json", file({ a: { command: "y" } }));
  const changed = await plansIn(place);
  assert.deepEqual(changed.servers, []);
  assert.match(String(changed.left), /it has changed/);
});

test("of servers with the same name the user's takes precedence, then the project's own file, then the one shared by agents", async () => {
  await using place = await scratch({
    "w/.harness/mcp.json": file({ a: { command: "x" }, b: { command: "x" } }),
    "w/.mcp.json": file({ a: { command: "x" }, b: { command: "x" }, c: { command: "x" } }),
  });
  await trustAll(hostFrom({ HOME: place.path }), place.at("w"));
  const { servers, left } = await plansIn(place, { a: { command: "mine" } });
  assert.deepEqual(servers, [
    ["a", true, USER],
    ["b", false, "w/.harness/mcp.json"],
    ["c", false, "w/.mcp.json"],
  ]);
  assert.deepEqual(
    left.map(([name]) => name),
    ["a", "a", "b"],
  );
});

test("a project cannot start a server on the host, not even with trusted settings", async () => {
  await using place = await scratch({
    "w/.harness/mcp.json": file({ out: { command: "x", sandbox: false }, bad: { colour: "red" } }),
  });
  await trustAll(hostFrom({ HOME: place.path }), place.at("w"));
  const found = await plansIn(
    place,
    { set: { command: "x", sandbox: false } },
    place.at("w/.harness/config.json"),
  );
  assert.deepEqual(found.servers, []);
  assert.deepEqual(
    found.left.map(([name, why]) => [name, /runs in the box|bad:/.test(why ?? "")]),
    [
      ["set", true],
      ["out", true],
      ["", true],
    ],
  );
  for (const own of [place.at(USER), "HARNESS_MCP"]) {
    const { servers } = await plansIn(place, { set: { command: "x", sandbox: false } }, own);
    assert.equal(servers[0]?.[1], true);
  }
});

test("a disabled server is not started", async () => {
  await using place = await scratch({ "w/a": "" });
  const found = await plansIn(place, { a: { command: "x", enabled: false } });
  assert.deepEqual(found, { servers: [], left: [["a", "it is not enabled"]] });
});
