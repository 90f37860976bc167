import assert from "node:assert/strict";
import test from "node:test";
import { fc } from "../fixtures/property.ts";
import { maskSecrets, secretMasks } from "../../src/core/secrets.ts";
import { PLAIN, SECRET } from "../fixtures/secrets.ts";

for (const [kind, before, secret, after] of SECRET)
  test(`a ${kind} is masked, and the text around it stays: ${before}…`, () => {
    assert.equal(maskSecrets(before + secret + after), `${before}[secret: ${kind}]${after}`);
  });

for (const text of PLAIN)
  test(`not a secret: ${text.slice(0, 70)}`, () => {
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
test("long texts built to slow down a pattern are processed", () => {
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

const VALUE = "kTz9/q+4vLw==x7";
const { mask, stream } = secretMasks([
  { name: "API_TOKEN", value: VALUE },
  { name: "LONGER", value: `${VALUE}-and-more` },
]);
const masked = (text: string, edges = {}): string => Buffer.from(mask(Buffer.from(text), edges)).toString();

test("a value is masked at any position, by a mask of its length", () => {
  const text = `token=${VALUE}\n${VALUE}${VALUE}`;
  const clean = masked(text);
  assert.equal(clean.length, text.length);
  assert.ok(!clean.includes(VALUE));
  assert.equal(clean, "token=[secret: API_TO\n[secret: API_TO[secret: API_TO");
  assert.equal(masked(`x${VALUE}-and-more`), "x[secret: LONGER]********");
});

for (const [name, spelt] of Object.entries({
  "in an address": encodeURIComponent(VALUE),
  "in base64": Buffer.from(VALUE).toString("base64"),
  "in JSON": JSON.stringify(VALUE),
  "in an address with small digits": encodeURIComponent(VALUE)
    .toLowerCase()
    .replace("ktz", "kTz")
    .replace("vlw", "vLw"),
  "in an address that keeps its slashes": encodeURIComponent(VALUE).replaceAll("%2F", "/"),
  "in JSON with escaped slashes": VALUE.replaceAll("/", "\\/"),
  "in JSON that is safe in HTML": VALUE.replaceAll("=", "\\u003d"),
  "in JSON of ASCII letters": VALUE.replaceAll("+", "\\u002B"),
}))
  test(`a value is masked ${name}`, () => {
    const clean = masked(`a ${spelt} b`);
    assert.ok(!clean.includes(spelt.replace(/=+$/, "").replaceAll('"', "")));
    assert.equal(clean.length, spelt.length + 4);
  });

test("a value in base64 is masked, whatever is encoded before and after it", () => {
  for (const before of ["", "a", "ab", "user:", "x-token:"])
    for (const coding of ["base64", "base64url"] as const) {
      const clean = masked(Buffer.from(`${before}${VALUE}`).toString(coding));
      assert.match(clean, /^[\w+/-]{0,11}\[secret: API_TOKEN\]\**[\w+/-]?={0,2}$/);
    }
});

test("text without a value is returned as the same bytes", () => {
  const bytes = Buffer.from("nothing of interest: kTz9/q");
  assert.equal(mask(bytes), bytes);
  assert.equal(mask(bytes.subarray(0, 20), { before: true, behind: true }).length, 20);
});

test("a part of a value at a truncated edge is masked", () => {
  assert.equal(masked(`end ${VALUE.slice(0, 9)}`, { behind: true }), "end *********");
  assert.equal(masked(`${VALUE.slice(5)} start`, { before: true }), "********** start");
  assert.equal(masked("end kTz", { behind: true }), "end kTz", "the twin: it tells nothing");
  assert.equal(
    masked(`end ${VALUE.slice(0, 9)}`),
    `end ${VALUE.slice(0, 9)}`,
    "the twin: nothing was cut off",
  );
});

test("a value that arrives in pieces is masked, however it is split", () => {
  const text = `before ${VALUE} between ${VALUE}-and-more behind kTz9`;
  for (let size = 1; size < text.length; size += 1) {
    const { take, end } = stream();
    const parts: Uint8Array[] = [];
    for (let at = 0; at < text.length; at += size) parts.push(take(Buffer.from(text.slice(at, at + size))));
    const whole = Buffer.concat([...parts, end()]).toString();
    assert.ok(!whole.includes(VALUE), `pieces of ${size}`);
    assert.equal(whole.length, text.length);
    assert.ok(whole.startsWith("before [secret: API_TO") && whole.endsWith(" behind kTz9"));
  }
});

test("a value that ends like it begins is masked as a whole", () => {
  const { stream: own } = secretMasks([{ name: "A", value: "abcdefgh-ab" }]);
  const { take, end } = own();
  const whole = Buffer.concat([take(Buffer.from("x abcdefgh-ab")), take(Buffer.from("!")), end()]).toString();
  assert.equal(whole, "x [secret: A]!");
});
