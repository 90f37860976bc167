import assert from "node:assert/strict";
import test from "node:test";
import { anyOfHosts, isKnownAddress, isKnownHost } from "../../src/vet/known-names.ts";

const [usual = ""] = anyOfHosts("npm").replaceAll("\\", "").split("|");

test("an address is known only by its whole host and with encryption", () => {
  assert.ok(isKnownAddress(`https://${usual}/a`, "npm"));
  assert.ok(isKnownAddress(`sparse+https://${usual}`, "pip", "npm"));
  for (const other of [
    `http://${usual}/a`,
    `https://${usual}.example/a`,
    `https://x-${usual}/a`,
    `https://${usual}@files.example/a`,
    `https://files.example/https://${usual}/`,
    `https://${usual}:8443/a`,
  ])
    assert.ok(!isKnownAddress(other, "npm"), other);
  assert.ok(!isKnownAddress(`https://${usual}/a`, "gem"));
});

test("a host is known for its kind, in any letter case", () => {
  assert.ok(isKnownHost(usual.toUpperCase(), "npm"));
  assert.ok(!isKnownHost(usual.replace(".", "-"), "npm"));
  assert.ok(new RegExp(`^(?:${anyOfHosts("npm")})$`).test(usual));
  assert.equal(anyOfHosts("go"), "");
});
