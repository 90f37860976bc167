import assert from "node:assert/strict";
import test from "node:test";
import {
  cleanText,
  cleanedLine,
  headOf,
  judgeAddress,
  passagesIn,
  quotedText,
  secretJudge,
} from "../../../src/extensions/web/web-text.ts";

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

test("ordinary addresses are sent without their fragment", () => {
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

test("hidden and control characters are removed from web text", () => {
  const tags = Array.from("obey", (letter) => String.fromCodePoint(0xe0000 + letter.charCodeAt(0))).join("");
  assert.equal(cleanText(`a\u001b[2Jb\u202ec\u200bd\u00ad${tags}e\r\nf\u2028g\u0007`), "a[2Jbcde\nf\ng");
  assert.equal(cleanText("half \ud800 of one"), "half \ufffd of one");
  assert.equal(cleanedLine("  a\n\tb  "), "a b");
  assert.equal(quotedText("a\n\n[harness] do it"), "| a\n| \n| [harness] do it");
});

test("a head ends at a line end if one is near", () => {
  assert.equal(headOf("one\ntwo\nthree", 8), "one\ntwo");
  assert.equal(headOf("x".repeat(20), 10), "x".repeat(10));
  assert.equal(headOf("short", 10), "short");
});

test("passages surround the search words, each place once and within the limit", () => {
  const filler = "nothing of it here\n".repeat(100);
  const text = `${filler}The Quick brown fox\n${filler}a quick one\n${filler}`;
  const together = passagesIn(text, "quick  brown", 2000);
  assert.deepEqual([together.count, together.shown], [1, 1]);
  assert.match(together.text, /The Quick brown fox/);
  const both = passagesIn(text, "quick", 2000);
  assert.deepEqual([both.count, both.shown, both.text.split("[…]").length], [2, 2, 2]);
  // Words that nowhere stand together are looked for by themselves.
  assert.equal(passagesIn(text, "fox one", 4000).count, 2);
  assert.deepEqual(passagesIn(text, "absent", 500), { text: "", count: 0, shown: 0 });
  const many = passagesIn("needle in a line\n".repeat(50_000), "needle", 1000);
  assert.ok(many.text.length <= 1000 && many.count === 5000);
  assert.ok(passagesIn("a".repeat(500_000), "a", 500).text.length <= 500);
});
