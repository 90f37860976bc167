import assert from "node:assert/strict";
import test from "node:test";
import { fc } from "../fixtures/property.ts";
import { maskSecrets } from "../../src/core/secrets.ts";
import { PLAIN, SECRET } from "../fixtures/secrets.ts";

for (const [kind, before, secret, after] of SECRET)
  test(`a ${kind} is masked, what is around it stays: ${before}…`, () => {
    assert.equal(maskSecrets(before + secret + after), `${before}[secret: ${kind}]${after}`);
  });

for (const text of PLAIN)
  test(`no secret: ${text.slice(0, 70)}`, () => {
    assert.equal(maskSecrets(text), text);
  });

test("masking again changes nothing", () => {
  const pieces = fc.constantFrom(...SECRET.flatMap(([, ...parts]) => parts), ...PLAIN, "\n", " ", '"', "=");
  const texts = fc.array(fc.oneof(pieces, fc.string()), { maxLength: 8 }).map((parts) => parts.join(""));
  fc.assert(
    fc.property(texts, (text) => {
      const once = maskSecrets(text);
      assert.equal(maskSecrets(once), once);
    }),
  );
});

/** With time that grew with the square of their length, none of these would end. */
test("long texts made to keep a pattern busy are read through", () => {
  const hostile = [
    "eyJ",
    "eyJaaaaaaaaa.eyJaaaaaaaa",
    "-----BEGIN PRIVATE KEY-----",
    "-----BEGIN A A A PRIVATE KEY-----a",
    "token=",
    "://",
    "://a:b",
    "authorization: bearer ",
    "glpat-a.",
    `://${"a".repeat(90)}:${"b".repeat(150)}`,
    "A A A ",
    "1234567890",
  ];
  for (const piece of hostile) {
    const text = piece.repeat(2 ** 20 / piece.length);
    assert.ok(maskSecrets(text).length > 0);
  }
});
