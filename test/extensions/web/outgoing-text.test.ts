import assert from "node:assert/strict";
import test from "node:test";
import { judgeAddress, secretJudge } from "../../../src/extensions/web/web-text.ts";

const VALUE = "correct-horse-battery";
const holds = secretJudge([{ name: "API_TOKEN", value: VALUE }]);
const TOKEN = `ghp_${"a1B2c3D4e5".repeat(4)}`;
const percent = (text: string): string =>
  [...Buffer.from(text)].map((byte) => `%${byte.toString(16)}`).join("");

const REFUSED: readonly (readonly [string, RegExp])[] = [
  ["example.org/a", /not a full address/],
  ["file:///etc/passwd", /not a full address/],
  ["javascript:alert(1)", /not a full address/],
  ["https://me:word@example.org/", /name or a password/],
  [`https://example.org/?k=${TOKEN}`, /looks like a secret/],
  [`https://example.org/${TOKEN}/x`, /looks like a secret/],
  [`https://example.org/?k=${percent(TOKEN)}`, /looks like a secret/],
  [`https://example.org/?k=${encodeURIComponent(percent(TOKEN))}`, /looks like a secret/],
  [`https://example.org/#${TOKEN}`, /looks like a secret/],
  [`https://${TOKEN}.example.org/`, /looks like a secret/],
  [`https://example.org/?k=${VALUE}`, /value of a secret/],
  [`https://example.org/${Buffer.from(VALUE).toString("base64url")}`, /value of a secret/],
  [`https://example.org/?k=${Buffer.from(VALUE).toString("hex")}`, /value of a secret/],
  [`https://example.org/?q=${"a".repeat(300)}`, /query has more than 300/],
  [`https://example.org/${"a/".repeat(500)}`, /more than 1000 characters/],
];

for (const [address, why] of REFUSED)
  test(`an address is not sent: ${address.slice(0, 60)}`, () => {
    const judged = judgeAddress(address, holds);
    assert.ok("refused" in judged);
    assert.match(judged.refused, why);
  });

test("addresses as people write them are sent, without their fragment", () => {
  for (const address of [
    "https://example.org/docs/page.html?version=3&lang=en",
    "http://example.org:8080/",
    "https://example.org/search?q=how+to+rotate+a+password",
    "https://example.org/commit/4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    `https://example.org/?q=${"a".repeat(290)}`,
  ]) {
    const judged = judgeAddress(`${address}#part`, holds);
    assert.equal("refused" in judged ? judged.refused : judged.href, address);
  }
});
