import assert from "node:assert/strict";
import { test } from "node:test";
import { PROVIDERS } from "../../src/config/setting-words.ts";
import { type KeyedProvider, PROVIDER_SERVERS, readKey } from "../../src/models/provider-servers.ts";
import { keyedServer, requireKey } from "../../src/models/model-server.ts";

const NAMES = Object.keys(PROVIDER_SERVERS) as KeyedProvider[];

test("every provider of the settings has a server, except the two that have no key", () => {
  const keyed = PROVIDERS.filter((name) => name !== "ollama" && name !== "scripted");
  assert.deepEqual(keyed.toSorted(), NAMES.toSorted());
});

test("an address is public and https, or local; no two providers share one or a variable", () => {
  for (const { base, local } of Object.values(PROVIDER_SERVERS)) {
    assert.match(base, local ? /^http:\/\/127\.0\.0\.1:\d+\/v1$/ : /^https:\/\/[a-z.]+(\/[a-z0-9]+)*$/);
  }
  for (const column of ["base", "variable"] as const) {
    assert.equal(new Set(NAMES.map((name) => PROVIDER_SERVERS[name][column])).size, NAMES.length);
  }
});

for (const name of NAMES) {
  const { base, local, variable } = PROVIDER_SERVERS[name];
  test(`${name}: its variable holds its key, base_url takes precedence, a missing key is named`, () => {
    assert.equal(readKey(name, { env: { [variable]: "k-1" }, file: "/nowhere/keys.json" }), "k-1");
    assert.equal(keyedServer(name, { baseUrl: null, key: "" }).base, base);
    const other = keyedServer(name, { baseUrl: "http://127.0.0.1:9/x/", key: "k-1" });
    assert.equal(other.base, "http://127.0.0.1:9/x");
    assert.ok(Object.values(other.headers).some((value) => value.endsWith("k-1")));
    requireKey(name, other.base, "");
    requireKey(name, base, "k-1");
    if (local) requireKey(name, base, "");
    else assert.throws(() => requireKey(name, base, ""), { exit: 2, message: new RegExp(variable) });
  });
}
