import assert from "node:assert/strict";
import test from "node:test";
import { networkInterfaces } from "node:os";
import { READING } from "../../../src/core/network.ts";
import {
  addressClass,
  type Allowance,
  isAmong,
  isDenial,
  isMethodAllowed,
  isUnreadable,
  judgeAddresses,
  judgeHost,
  ownAddresses,
  parseAuthority,
} from "../../../src/docker/egress/judge-host.ts";
import { granted } from "../../fixtures/egress.ts";
import { anyText, fc } from "../../fixtures/property.ts";

const NONE = { denied: [], secrets: [] };

function asked(text: string) {
  const read = parseAuthority(text, 443);
  assert.ok(!isUnreadable(read));
  return read;
}

/** The rule that speaks against it; empty where it is let through. */
function ruleOf(
  text: string,
  grants: readonly ReturnType<typeof granted>[],
  denied: readonly string[] = [],
): string {
  const verdict = judgeHost(asked(text), { ...NONE, grants, denied });
  return isDenial(verdict) ? verdict.rule : "";
}

test("deny takes precedence over allow, and patterns match at label boundaries", () => {
  const grants = [granted("*.example.org"), granted("example.org")];
  assert.equal(ruleOf("a.example.org", grants), "");
  assert.equal(ruleOf("a.example.org", grants, ["a.example.org"]), "denied-host");
  assert.equal(ruleOf("b.a.example.org", grants, ["*.a.example.org"]), "denied-host");
  assert.equal(ruleOf("ba.example.org", grants, ["a.example.org"]), "");
  assert.equal(ruleOf("example.org", grants, ["*.example.org"]), "");
});

test("the ports are 443 and 80, or those that the grant names", () => {
  const [usual, named] = [[granted("example.org")], [granted("example.org", { ports: [8443] })]];
  assert.deepEqual(
    ["example.org:443", "example.org:80", "example.org:8443"].map((text) => ruleOf(text, usual)),
    ["", "", "port"],
  );
  assert.deepEqual(
    ["example.org:443", "example.org:8443"].map((text) => ruleOf(text, named)),
    ["port", ""],
  );
  assert.equal(ruleOf("example.org:8443", [...usual, ...named]), "");
});

test("an address is granted only by naming it", () => {
  assert.equal(ruleOf("9.9.9.9", [granted("*.example.org")]), "address-literal");
  assert.equal(ruleOf("9.9.9.9", [granted("*.9.9.9")]), "address-literal");
  assert.equal(ruleOf("0x9.9.9.9", [granted("9.9.9.9")]), "");
});

function usable(
  text: string,
  addresses: readonly string[],
  more: Partial<Allowance> = {},
): readonly string[] | string {
  const allowance: Allowance = {
    methods: null,
    private: false,
    literal: false,
    secrets: [],
    privateMethods: [],
    ...more,
  };
  const found = judgeAddresses(asked(text), addresses, allowance, new Set(["8.8.4.4".replaceAll(".", ".")]));
  return isDenial(found) ? found.rule : found;
}

test("of a name's addresses only permitted ones are used", () => {
  assert.deepEqual(usable("example.org", ["10.0.0.1", "9.9.9.9", "::1"]), ["9.9.9.9"]);
  assert.deepEqual(usable("example.org", ["10.0.0.1"]), "private-address");
  assert.deepEqual(usable("example.org", ["10.0.0.1"], { private: true }), ["10.0.0.1"]);
  assert.deepEqual(usable("example.org", []), "address");
});

test("this host's own address counts as private, even if it is public", () => {
  assert.deepEqual(usable("example.org", ["8.8.4.4"]), "private-address");
  assert.deepEqual(usable("example.org", ["8.8.4.4"], { private: true }), ["8.8.4.4"]);
});

test("loopback and metadata addresses are reached only by a grant that names them", () => {
  for (const [address, rule] of [
    ["127.0.0.1", "loopback-address"],
    ["::1", "loopback-address"],
    ["169.254.169.254", "metadata-address"],
    ["64:ff9b::a9fe:a9fe", "metadata-address"],
  ] as const) {
    assert.deepEqual(usable("example.org", [address]), rule);
    assert.deepEqual(usable("example.org", [address], { private: true }), rule);
    assert.deepEqual(usable("example.org", [address], { literal: true }), [address]);
  }
  assert.deepEqual(usable("example.org", ["0.0.0.0"], { literal: true, private: true }), "address");
});

function literal(text: string, host: string): boolean | string {
  const verdict = judgeHost(asked(text), { ...NONE, grants: [granted(host, { private: true })] });
  return isDenial(verdict) ? verdict.rule : verdict.literal;
}

test("a grant names loopback by address or as localhost, not by a name that resolves to it", () => {
  assert.equal(literal("127.1", "127.0.0.1"), true);
  assert.equal(literal("localhost", "localhost"), true);
  assert.equal(literal("me.localhost.test", "*.localhost.test"), false);
  assert.equal(literal("example.org", "example.org"), false);
});

const allowed = (method: string, path: string): boolean => isMethodAllowed(READING, method, path);

test("a read grant includes git's fetch and not its push", () => {
  assert.ok(allowed("GET", "/any%20thing"));
  assert.ok(allowed("POST", "/team/project.git/git-upload-pack"));
  assert.ok(allowed("POST", "/.team/..project/git-upload-pack"));
  for (const [method, path] of [
    ["POST", "/team/project.git/git-receive-pack"],
    ["POST", "/"],
    ["PUT", "/team/project.git/git-upload-pack"],
    ["POST", "/project.git/x%2f..%2fgit-receive-pack/git-upload-pack"],
    ["POST", "/project.git/../git-upload-pack"],
    ["POST", "/project.git/./git-upload-pack"],
    ["POST", "/project.git//git-upload-pack"],
    ["POST", "/project.git/xgit-upload-pack"],
    ["POST", "/git-upload-pack"],
    ["post", "/project.git/git-upload-pack"],
    ["DELETE", "/"],
  ] as const)
    assert.ok(!allowed(method, path), `${method} ${path}`);
  assert.ok(isMethodAllowed(["POST /graphql"], "POST", "/graphql"));
  assert.ok(!isMethodAllowed(["POST /graphql"], "POST", "/graphql/x"));
  assert.ok(!isMethodAllowed(["PUT"], "POST", "/graphql"));
  assert.ok(isMethodAllowed(null, "BREW", "/"));
});

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
  test(`${JSON.stringify(text)} is parsed as ${expected}`, () => {
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

test("a port is required where there is no default", () => {
  assert.equal(read("example.org", null), null);
  assert.equal(read("example.org:443", null), "example.org 443");
});

test("the longest valid name is accepted, and a longer one is not", () => {
  const longest = `${LONG}${"b".repeat(9)}`;
  assert.equal(longest.length, 253);
  assert.equal(read(longest), `${longest} 443`);
  assert.equal(read(`${longest}b`), null);
});

test("any parsed authority parses to itself again, and contains nothing unsafe for a header or a log", () => {
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

test("every spelling of an IPv4 address is parsed as that address", () => {
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

const CASES = {
  public:
    "9.9.9.9 8.8.8.8 1.1.1.1 100.63.255.255 100.128.0.0 172.15.0.1 172.32.0.1 223.255.255.255 2600::1 2a00:1450::1",
  private:
    "10.0.0.0 10.255.255.255 172.16.0.1 172.31.255.255 192.168.1.1 100.64.0.1 169.254.1.1 192.0.2.1 198.51.100.7 203.0.113.9 198.19.0.1 240.0.0.1 255.255.255.254 fc00::1 fdff::1 fe80::1 fe80::1%eth0 fec0::1 2001:db8::1 3fff::1 100::1 64:ff9b:1::9.9.9.9 2002:a00:1:: 4000::1 ::9.9.9.9 64:ff9b::10.0.0.1 ::ffff:10.0.0.1",
  metadata:
    "169.254.169.254 169.254.170.2 100.100.100.200 168.63.129.16 192.0.0.192 fd00:ec2::254 ::ffff:169.254.169.254 64:ff9b::169.254.169.254 2002:a9fe:a9fe::1 2600::5efe:169.254.169.254",
  loopback:
    "127.0.0.1 127.255.255.255 ::1 ::ffff:127.0.0.1 ::127.0.0.1 64:ff9b::7f00:1 2002:7f00:1:: 2600::200:5efe:127.0.0.1 ::ffff:0:127.0.0.1",
  never: "0.0.0.0 0.1.2.3 224.0.0.1 239.255.255.255 255.255.255.255 :: ff02::1 64:ff9b::",
} as const;

for (const [kind, addresses] of Object.entries(CASES))
  for (const address of addresses.split(" "))
    test(`${address} is ${kind}`, () => {
      assert.equal(addressClass(address), kind);
    });

test("an IPv4 address has the same class in every IPv6 form that embeds it", () => {
  const closed = fc.constantFrom("127.0.0.1", "10.9.8.7", "169.254.169.254", "192.168.0.1", "224.0.0.9");
  const forms = fc.constantFrom<(address: string) => string>(
    (address) => `::ffff:${address}`,
    (address) => `64:ff9b::${address}`,
    (address) => `2600:1:2:3:0:5efe:${address}`,
    (address) => `2002:${hex(address)}::1`,
    (address) => `2001:0:${hex(address)}:0:0:f6f6:f6f6`,
    (address) => `2001:0:909:909:0:0:${hex(inverted(address))}`,
  );
  fc.assert(
    fc.property(closed, forms, (address, form) => {
      assert.equal(addressClass(form(address)), addressClass(address), form(address));
    }),
  );
});

const hex = (address: string): string => {
  const [a = 0, b = 0, c = 0, d = 0] = address.split(".").map(Number);
  return `${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`;
};
const inverted = (address: string): string =>
  address
    .split(".")
    .map((byte) => 255 - Number(byte))
    .join(".");

test("this host's own addresses are recognised in every spelling", () => {
  const own = ownAddresses();
  const all = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  assert.ok(all.length > 0);
  for (const { address } of all) assert.ok(isAmong(own, address));
  assert.ok(isAmong(new Set(["0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.1"]), "0:0::1"));
  assert.ok(!isAmong(own, "9.9.9.9"));
});
