import assert from "node:assert/strict";
import test from "node:test";
import { storeHealth } from "../../src/search/health.ts";
import { startQdrant } from "../fakes/qdrant-server.ts";

test("a Qdrant that can be used is the store; one of another version only where it was asked for is an ailment", async () => {
  await using fit = await startQdrant({ version: "1.13.2" });
  await using old = await startQdrant({ version: "1.9.0" });
  for (const store of ["auto", "qdrant"] as const) {
    const health = await storeHealth(store, fit.url);
    assert.deepEqual([health.state, health.detail], ["ok", `Qdrant 1.13.2 at ${fit.url}`]);
  }
  const quiet = await storeHealth("auto", old.url);
  assert.equal(quiet.state, "ok");
  assert.match(quiet.detail, /^embedded index \(Qdrant 1\.9\.0 .*too old/);
  const told = await storeHealth("qdrant", old.url);
  assert.equal(told.state, "warn");
  assert.match(told.detail, /^Qdrant 1\.9\.0 .*too old: harness needs 1\.13/);
  assert.match(told.remedy, /start\.sh/);
});

test("without a Qdrant the embedded index serves, and is an ailment where Qdrant was asked for", async () => {
  const server = await startQdrant();
  await server.close();
  assert.equal((await storeHealth("auto", server.url)).state, "ok");
  assert.equal((await storeHealth("qdrant", server.url)).state, "warn");
  assert.equal((await storeHealth("embedded", server.url)).detail, "embedded index");
});
