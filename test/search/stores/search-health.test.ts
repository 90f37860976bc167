import assert from "node:assert/strict";
import test from "node:test";
import { storeHealth } from "../../../src/search/stores/search-health.ts";
import { startLoopback } from "../../fakes/loopback.ts";
import { startQdrant } from "../../fakes/qdrant-server.ts";

test("a usable Qdrant is the store; one of another version is a problem only if Qdrant was chosen", async () => {
  await using fit = await startQdrant({ version: "1.13.2" });
  await using old = await startQdrant({ version: "1.9.0" });
  for (const store of ["auto", "qdrant"] as const) {
    const health = await storeHealth({ store, url: fit.url });
    assert.deepEqual([health.state, health.detail], ["ok", `Qdrant 1.13.2 at ${fit.url}`]);
  }
  const quiet = await storeHealth({ store: "auto", url: old.url });
  assert.equal(quiet.state, "ok");
  assert.match(quiet.detail, /^embedded index \(Qdrant 1\.9\.0 .*too old/);
  const told = await storeHealth({ store: "qdrant", url: old.url });
  assert.equal(told.state, "warn");
  assert.match(told.detail, /^Qdrant 1\.9\.0 .*too old: harness needs 1\.13/);
  assert.match(told.remedy, /start\.sh/);
});

test("without a Qdrant the embedded index serves, which is a problem only if Qdrant was chosen", async () => {
  const { url, close } = await startQdrant();
  await close();
  const quiet = await storeHealth({ store: "auto", url });
  assert.deepEqual([quiet.state, quiet.detail], ["ok", `embedded index (no Qdrant at ${url})`]);
  const told = await storeHealth({ store: "qdrant", url });
  assert.deepEqual(
    [told.state, /cannot be reached.*ECONNREFUSED/.test(told.detail)],
    ["warn", true],
    told.detail,
  );
  assert.match(told.remedy, /start\.sh/);
  assert.equal((await storeHealth({ store: "embedded", url })).detail, "embedded index");
});

test("a protected Qdrant is the store with its key, and without one the reason is given", async () => {
  await using server = await startQdrant({ apiKey: "right", readOnlyKey: "reader" });
  const { url } = server;
  for (const apiKey of ["right", "reader"])
    assert.equal((await storeHealth({ store: "qdrant", url, apiKey })).detail, `Qdrant 1.19.0 at ${url}`);
  for (const [apiKey, why] of [
    [undefined, /requires a key, and QDRANT_API_KEY is not set/],
    ["wrong", /rejects the key/],
  ] as const) {
    const told = await storeHealth({ store: "qdrant", url, apiKey });
    assert.equal(told.state, "warn");
    assert.match(told.detail, why);
    assert.match(told.remedy, /export QDRANT_API_KEY/);
    assert.match((await storeHealth({ store: "auto", url, apiKey })).detail, /^embedded index \(Qdrant /);
  }
});

test("a server that is not a Qdrant, redirects or is silent is reported as such", async () => {
  for (const [served, why] of [
    [{ body: "<html>" }, /not a Qdrant server that harness understands/],
    [{ status: 307, headers: { location: "http://127.0.0.1:1/" }, body: "" }, /it redirects/],
    [{ body: [], ends: "silent" }, /took longer than 2 s/],
  ] as const) {
    await using server = await startLoopback([served, served, served]);
    const told = await storeHealth({ store: "qdrant", url: server.url, apiKey: "secret" });
    assert.deepEqual([told.state, why.test(told.detail)], ["warn", true], told.detail);
    assert.ok(!told.detail.includes("secret"));
  }
});
