import assert from "node:assert/strict";
import { test } from "node:test";
import {
  coversHost,
  grantText,
  parseGrant,
  PRESETS,
  readGrant,
  READING,
  splitGrants,
} from "../../src/core/network.ts";

const READ = ["GET", "HEAD", "OPTIONS"];

const RIGHT: readonly (readonly [
  text: string,
  host: string,
  ports: readonly number[],
  methods: readonly string[] | null,
  own: boolean,
])[] = [
  ["example.org", "example.org", [], null, false],
  ["EXAMPLE.Org", "example.org", [], null, false],
  ["*.example.org", "*.example.org", [], null, false],
  ["example.org:443", "example.org", [443], null, false],
  ["example.org:443,8443", "example.org", [443, 8443], null, false],
  ["example.org:443,443", "example.org", [443], null, false],
  ["example.org:read", "example.org", [], READ, false],
  ["example.org:8443:get,post", "example.org", [8443], ["GET", "POST"], false],
  ["example.org:POST:8443", "example.org", [8443], ["POST"], false],
  ["example.org:private", "example.org", [], null, true],
  ["example.org:443:read:private", "example.org", [443], READ, true],
  ["bücher.example", "xn--bcher-kva.example", [], null, false],
  ["*.bücher.example", "*.xn--bcher-kva.example", [], null, false],
  ["xn--bcher-kva.example", "xn--bcher-kva.example", [], null, false],
  ["my_host.example.org", "my_host.example.org", [], null, false],
  ["192.0.2.7", "192.0.2.7", [], null, false],
  ["192.0.2.7:8080:private", "192.0.2.7", [8080], null, true],
  ["[2001:db8:0:0::1]", "2001:db8::1", [], null, false],
  ["[2001:DB8::1]:443:read", "2001:db8::1", [443], READ, false],
  ["localhost", "localhost", [], null, false],
  ["localhost:4873:private", "localhost", [4873], null, true],
  ["registry:443", "registry", [443], null, false],
];

for (const [text, host, ports, methods, own] of RIGHT)
  test(`${text} is a grant, and its normalised text is equal to it`, () => {
    const grant = parseGrant(text);
    assert.deepEqual(grant, { host, ports, methods, private: own, origin: text });
    assert.deepEqual(parseGrant(grantText(grant), text), grant);
  });

test("a preset's registry given by hand is read-only unless methods are named", () => {
  const grant = { host: "registry.example.org", ports: [8443], private: true, origin: "npm" };
  const text = "npm=registry.example.org:8443:private";
  assert.deepEqual(parseGrant(text), { ...grant, methods: READ });
  assert.equal(grantText(parseGrant(text)), text);
  assert.deepEqual(parseGrant("git=git.example.org").methods, READING);
  assert.equal(grantText(parseGrant("git=git.example.org")), "git=git.example.org");
  assert.equal(grantText(parseGrant("git=git.example.org:read")), "git=git.example.org:read");
  const more = "npm=registry.example.org:8443:GET,POST:private";
  assert.deepEqual(parseGrant(more), { ...grant, methods: ["GET", "POST"] });
  assert.equal(grantText(parseGrant(more)), more);
});

const WRONG: readonly (readonly [text: string, message: RegExp, at: number])[] = [
  ["", /missing/, 1],
  ["*", /is not allowed here/, 1],
  ["*.", /missing/, 1],
  ["*.org", /too broad; .*\*\.example\.org/, 1],
  ["a.*.org", /is not allowed here/, 3],
  ["*example.org", /is not allowed here/, 1],
  ["https://example.org/x", /only a host name.*such as example\.org/, 1],
  ["https://me:word@example.org/x", /such as example\.org/, 1],
  ["example.org/x", /"\/" is not allowed/, 12],
  ["user@example.org", /"@" is not allowed/, 5],
  ["example .org", /" " is not allowed/, 8],
  ["exa\u0000mple.org", /is not allowed/, 4],
  ["exa%6dple.org", /"%" is not allowed/, 4],
  ["example.org:", /missing after :/, 13],
  ["example.org::443", /missing after :/, 13],
  ["example.org:0", /"0" is not a port/, 13],
  ["example.org:443,65536", /"65536" is not a port/, 17],
  ["example.org:0443", /is not a port/, 13],
  ["example.org:443:80", /twice/, 17],
  ["example.org:GET:read", /twice/, 17],
  ["example.org:private:private", /twice/, 21],
  ["example.org:CONNECT", /"CONNECT" is neither a port, a method/, 13],
  ["example.org:GET,FETCH", /"FETCH" is neither a port, a method/, 17],
  ["example..org", /not a host name/, 1],
  ["-example.org", /not a host name/, 1],
  ["example.org.", /not a host name/, 1],
  [`${"a".repeat(64)}.org`, /not a host name/, 1],
  [`${"a.".repeat(130)}org`, /not a host name/, 1],
  ["a".repeat(401), /more than 400/, 401],
  ["2130706433", /not a plain address; perhaps 127\.0\.0\.1 is meant/, 1],
  ["0x7f.1", /not a plain address; perhaps 127\.0\.0\.1 is meant/, 1],
  ["127.1", /perhaps 127\.0\.0\.1 is meant/, 1],
  ["0177.0.0.1", /perhaps 127\.0\.0\.1 is meant/, 1],
  ["1.2.3.4.5", /not a host name/, 1],
  ["2001:db8::1", /needs brackets, as in \[2001:db8::1\]:443/, 1],
  ["::1", /needs brackets/, 1],
  ["[2001:db8::1", /has no matching \]/, 1],
  ["[2001:db8::1]443", /only a port/, 14],
  ["[example.org]", /not an IPv6 address/, 1],
  ["example.org]", /\[ \] are only for/, 12],
  ["nmp", /neither a preset \(npm, .*nmp:443/, 1],
  ["npm", /neither a preset/, 1],
  ["npm=", /missing/, 5],
  ["npm=a.org:x", /"x" is neither a port/, 11],
  ["nmp=a.org", /"=" is not allowed/, 4],
];

for (const [text, message, at] of WRONG)
  test(`${JSON.stringify(text.slice(0, 40))} is refused with its position`, () => {
    const read = readGrant(text);
    assert.equal(read.kind, "wrong");
    assert.match(read.kind === "wrong" ? read.message : "", message);
    assert.match(read.kind === "wrong" ? read.message : "", new RegExp(`, at character ${at}$`));
    assert.throws(() => parseGrant(text), { exit: 2, remedy: /^--allow-domain / });
  });

test("several grants in one text keep their lists of ports and methods", () => {
  assert.deepEqual(splitGrants(" a.org , b.org:443,8443:GET,HEAD,npm,,c.org:read, d.org:1,post:private"), [
    "a.org",
    "b.org:443,8443:GET,HEAD",
    "npm",
    "c.org:read",
    "d.org:1,post:private",
  ]);
  assert.deepEqual(splitGrants(""), []);
  assert.deepEqual(splitGrants("a.org,443"), ["a.org", "443"]);
});

const covers = (grant: string, name: string): boolean => coversHost(parseGrant(grant), name);

test("a name covers itself, and a star covers what is below it", () => {
  assert.equal(covers("example.org", "example.org"), true);
  assert.equal(covers("example.org", "api.example.org"), false);
  assert.equal(covers("*.example.org", "api.example.org"), true);
  assert.equal(covers("*.example.org", "a.b.example.org"), true);
  assert.equal(covers("*.example.org", "example.org"), false);
  assert.equal(covers("*.example.org", "badexample.org"), false);
});

test("every preset is one word that can be split off", () => {
  for (const preset of PRESETS) assert.deepEqual(splitGrants(`a.org:443,${preset}`), ["a.org:443", preset]);
});
