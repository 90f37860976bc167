import assert from "node:assert/strict";
import test from "node:test";
import { isUnreadable, parseAuthority } from "../../../src/docker/egress/authority.ts";
import { anyText, fc } from "../../fixtures/property.ts";

/** The host and port that are read; null where the text is refused. */
function read(text: string, port: number | null = 443): string | null {
  const found = parseAuthority(text, port);
  return isUnreadable(found) ? null : `${found.host} ${found.port}${found.literal ? " address" : ""}`;
}

for (const [text, expected] of [
  ["example.org", "example.org 443"],
  ["EXAMPLE.Org:8443", "example.org 8443"],
  ["example.org.", "example.org 443"],
  ["example.org.:80", "example.org 80"],
  ["bücher.example", "xn--bcher-kva.example 443"],
  ["BÜCHER.example", "xn--bcher-kva.example 443"],
  ["example。org", "example.org 443"],
  ["ｅｘａｍｐｌｅ.org", "example.org 443"],
  ["exam\u00ADple.org", "example.org 443"],
  ["_srv.example.org", "_srv.example.org 443"],
  ["a-b.example.org", "a-b.example.org 443"],
  ["localhost", "localhost 443"],
  ["127.0.0.1", "127.0.0.1 443 address"],
  ["127.1", "127.0.0.1 443 address"],
  ["0177.0.0.1", "127.0.0.1 443 address"],
  ["0x7f.1", "127.0.0.1 443 address"],
  ["0X7F000001", "127.0.0.1 443 address"],
  ["2130706433", "127.0.0.1 443 address"],
  ["017700000001", "127.0.0.1 443 address"],
  ["127.0.0.1.", "127.0.0.1 443 address"],
  ["１２７.0.0.1", "127.0.0.1 443 address"],
  ["127.0.0x.1", "127.0.0.1 443 address"],
  ["10.258", "10.0.1.2 443 address"],
  ["[::1]:80", "::1 80 address"],
  ["[0:0:0:0:0:0:0:1]", "::1 443 address"],
  ["[2001:DB8::0:1]", "2001:db8::1 443 address"],
  ["[::ffff:127.0.0.1]", "127.0.0.1 443 address"],
  ["[::ffff:7f00:1]", "127.0.0.1 443 address"],
  ["[0:0:0:0:0:ffff:7f00:0001]", "127.0.0.1 443 address"],
] as const)
  test(`${JSON.stringify(text)} is read as ${expected}`, () => {
    assert.equal(read(text), expected);
  });

const LONG = `${"a".repeat(60)}.`.repeat(4);

for (const text of [
  "",
  ":443",
  ".",
  "..",
  ".example.org",
  "example..org",
  "example.org..",
  "exa\0mple.org",
  "example.org\0.other.test",
  "exam ple.org",
  " example.org",
  "example.org ",
  "example.org\t",
  "example.org\r\nHost: other.test",
  "example.org\u00A0",
  "example%2eorg",
  "%65xample.org",
  "user@example.org",
  "user:word@example.org",
  "example.org@other.test",
  "example.org/other",
  "example.org\\other",
  "example.org?other",
  "example.org#other",
  "http://example.org",
  "example.org:",
  "example.org:0",
  "example.org:65536",
  "example.org:+80",
  "example.org:8 0",
  "example.org:0x50",
  "example.org:80:80",
  "::1",
  "[::1",
  "::1]",
  "[::1]x",
  "[::1%eth0]",
  "[fe80::1%25eth0]",
  "[127.0.0.1]",
  "[example.org]",
  "[]",
  "1.2.3.4.5",
  "256.1.1.1",
  "08.1.1.1",
  "4294967296",
  "-example.org",
  "example-.org",
  "exa*mple.org",
  "*.example.org",
  "exa,mple.org",
  "exa!mple.org",
  "xn--zzzzzz--.example",
  `${"a".repeat(64)}.example`,
  `${LONG}example.test`,
])
  test(`${JSON.stringify(text.slice(0, 60))} is refused`, () => {
    assert.equal(read(text), null);
  });

test("a port has to be there where none is the usual one", () => {
  assert.equal(read("example.org", null), null);
  assert.equal(read("example.org:443", null), "example.org 443");
});

test("the longest name is read, one that is longer is not", () => {
  const longest = `${LONG}${"b".repeat(9)}`;
  assert.equal(longest.length, 253);
  assert.equal(read(longest), `${longest} 443`);
  assert.equal(read(`${longest}b`), null);
});

test("whatever is read is read as itself again, and holds nothing that a header or a log could trip over", () => {
  const part = fc.oneof(
    fc.domain(),
    fc.ipV4Extended(),
    fc.ipV6().map((address) => `[${address}]`),
    anyText(),
    fc.constantFrom(".", ":", "@", "%", "\0", "0x", "[", "]", "xn--", "。", "localhost", "127.1"),
  );
  const texts = fc.array(part, { minLength: 1, maxLength: 4 }).map((parts) => parts.join(""));
  fc.assert(
    fc.property(texts, (text) => {
      const found = parseAuthority(text, 443);
      if (isUnreadable(found)) return;
      assert.match(found.host, found.literal ? /^[\d.]+$|^[\da-f:]+$/ : /^[a-z0-9_][a-z0-9_.-]*$/);
      assert.ok(found.host.length <= 253 && !found.host.endsWith("."));
      const again = parseAuthority(found.host.includes(":") ? `[${found.host}]` : found.host, found.port);
      assert.deepEqual(again, found);
    }),
    { numRuns: 200 },
  );
});

test("every spelling of an IPv4 address is read as that address", () => {
  const bytes = fc.array(fc.nat(255), { minLength: 4, maxLength: 4 });
  const radix = fc.constantFrom<(byte: number) => string>(
    String,
    (byte) => `0x${byte.toString(16)}`,
    (byte) => `0${byte.toString(8)}`,
  );
  fc.assert(
    fc.property(
      bytes,
      fc.array(radix, { minLength: 4, maxLength: 4 }),
      fc.integer({ min: 1, max: 4 }),
      (each, forms, parts) => {
        const rest = each.slice(parts - 1).reduce((sum, byte) => sum * 256 + byte, 0);
        const numbers = [...each.slice(0, parts - 1), rest];
        const text = numbers.map((number, at) => forms[at]?.(number)).join(".");
        assert.equal(read(text), `${each.join(".")} 443 address`);
      },
    ),
  );
});
