import assert from "node:assert/strict";
import { test } from "node:test";
import { hostsOf } from "../../../src/policy/programs/argument-roles.ts";

const hostsOfText = (value: string): readonly string[] => hostsOf({ kind: "literal", value });

const dynamic = (value: string, loose?: true): readonly string[] =>
  hostsOf({ kind: "dynamic", value, ...(loose === undefined ? {} : { loose }) });

const SEEN: readonly (readonly [address: string, host: string])[] = [
  ["https://example.com", "example.com"],
  ["https://example.com/a/b?c=d#e", "example.com"],
  ["https://example.com?q=https://good.example/", "example.com"],
  ["https://example.com#@good.example", "example.com"],
  ["HTTPS://EXAMPLE.Com/A", "example.com"],
  ["https://example.com./", "example.com"],
  ["https://example.com:8443/x", "example.com"],
  ["https://user:secret@example.com:8443/x", "example.com"],
  ["http://good.example@evil.example/", "evil.example"],
  ["http://good.example:80@evil.example/", "evil.example"],
  ["http://good.example%2f@evil.example/", "evil.example"],
  ["http://evil.example/@good.example", "evil.example"],
  ["http://127.0.0.1:3000/", "127.0.0.1"],
  ["http://[::1]:3000/", "[::1]"],
  ["http://user@[FE80::1]/", "[fe80::1]"],
  ["git+ssh://git@example.com/o/r", "example.com"],
  ["redis://localhost:6379/0", "localhost"],
  ["example.com", "example.com"],
  ["example.com:8080", "example.com"],
  ["example.com/path:with@signs", "example.com"],
  ["git@example.com:owner/name.git", "example.com"],
  ["example.com:/srv/www", "example.com"],
  ["example.com::module/path", "example.com"],
  ["@192.0.2.53", "192.0.2.53"],
  ["::1", "[::1]"],
  ["2001:DB8::1", "[2001:db8::1]"],
  ["user@2001:db8::1", "[2001:db8::1]"],
  ["[::1]:22", "[::1]"],
  ["localhost", "localhost"],
  ["my_host-1", "my_host-1"],
];

const UNSEEN: readonly (readonly [address: string, why: string])[] = [
  ["", "nothing"],
  ["-", "stdin"],
  ["/etc/hosts", "a path"],
  ["./file", "a path"],
  ["..", "a path"],
  ["http:///evil.example/", "three slashes"],
  ["http:/evil.example/", "one slash"],
  ["https:evil.example", "no slash"],
  ["file:///etc/passwd", "no host"],
  ["http://good.example\\@evil.example/", "a backslash ends the host for some readers"],
  ["http:\\\\evil.example/", "backslashes for slashes"],
  ["http://a@good.example@evil.example/", "two @"],
  ["http://good.example;@evil.example/", "a semicolon ends the host for some readers"],
  ["http://good.example @evil.example/", "a blank"],
  ["good.example:x@evil.example", "a user and a host, or a host and a path"],
  ["jdbc:postgresql://db.example/x", "an address inside another"],
  [" http://evil.example/", "a blank before"],
  ["http://%65vil.example/", "an escape"],
  ["http://{good,evil}.example/", "several"],
  ["http://evil[1-3].example/", "several"],
  ["http://ev\u0456l.example/", "another alphabet"],
  ["http://0x7f000001/", "a number that is an address"],
  ["http://2130706433/", "a number that is an address"],
  ["http://0177.0.0.1/", "a number that is an address"],
  ["http://127.1/", "a number that is an address"],
  ["http://1.2.3.0x4/", "a number that is an address"],
  ["4444", "a port"],
  ["http://[fe80::1%25eth0]/", "a zone"],
];

for (const [address, host] of SEEN)
  test(`the host of ${address} is ${host}`, () => {
    assert.deepEqual(hostsOfText(address), [host]);
  });

for (const [address, why] of UNSEEN)
  test(`${JSON.stringify(address)} has no certain host: ${why}`, () => {
    assert.deepEqual(hostsOfText(address), []);
  });

test("a pattern after the host does not change the host", () => {
  assert.deepEqual(hostsOf({ kind: "glob", value: "https://example.com/a?b=c" }), ["example.com"]);
  assert.deepEqual(hostsOf({ kind: "glob", value: "https://example.com?b=c" }), []);
  assert.deepEqual(hostsOf({ kind: "glob", value: "https://*.example.com/" }), []);
});

test("an unknown value after the host in the same word does not change the host", () => {
  assert.deepEqual(dynamic("https://example.com/\uFFFC"), ["example.com"]);
  assert.deepEqual(dynamic("https://example.com/\uFFFC", true), []);
  assert.deepEqual(dynamic("https://example.com\uFFFC/"), []);
  assert.deepEqual(dynamic("https://\uFFFC@example.com/"), []);
  assert.deepEqual(dynamic("https://example.com/a"), []);
});

test("long addresses are read in one pass", () => {
  const many = 200_000;
  for (const hostile of ["@", ":", "a.", "[", "a@", "a:", "\\", "://", "1."])
    assert.ok(hostsOfText(hostile.repeat(many)).length < 2);
});
