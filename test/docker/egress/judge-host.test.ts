import assert from "node:assert/strict";
import test from "node:test";
import { READING } from "../../../src/core/network.ts";
import { parseAuthority, isUnreadable } from "../../../src/docker/egress/authority.ts";
import {
  type Allowance,
  isDenial,
  isMethodAllowed,
  judgeAddresses,
  judgeHost,
} from "../../../src/docker/egress/judge-host.ts";
import { granted } from "../../fixtures/egress.ts";

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

test("deny comes before allow, at the edge of a label", () => {
  const grants = [granted("*.example.org"), granted("example.org")];
  assert.equal(ruleOf("a.example.org", grants), "");
  assert.equal(ruleOf("a.example.org", grants, ["a.example.org"]), "denied-host");
  assert.equal(ruleOf("b.a.example.org", grants, ["*.a.example.org"]), "denied-host");
  assert.equal(ruleOf("ba.example.org", grants, ["a.example.org"]), "");
  assert.equal(ruleOf("example.org", grants, ["*.example.org"]), "");
});

test("ports are 443 and 80, or those that the grant names", () => {
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

test("an address is granted by itself alone", () => {
  assert.equal(ruleOf("9.9.9.9", [granted("*.example.org")]), "address-literal");
  assert.equal(ruleOf("9.9.9.9", [granted("*.9.9.9")]), "address-literal");
  assert.equal(ruleOf("0x9.9.9.9", [granted("9.9.9.9")]), "");
});

function usable(
  text: string,
  addresses: readonly string[],
  more: Partial<Allowance> = {},
): readonly string[] | string {
  const allowance: Allowance = { methods: null, private: false, literal: false, secrets: [], ...more };
  const found = judgeAddresses(asked(text), addresses, allowance, new Set(["8.8.4.4".replaceAll(".", ".")]));
  return isDenial(found) ? found.rule : found;
}

test("only what may be dialled is left of a name's addresses", () => {
  assert.deepEqual(usable("example.org", ["10.0.0.1", "9.9.9.9", "::1"]), ["9.9.9.9"]);
  assert.deepEqual(usable("example.org", ["10.0.0.1"]), "private-address");
  assert.deepEqual(usable("example.org", ["10.0.0.1"], { private: true }), ["10.0.0.1"]);
  assert.deepEqual(usable("example.org", []), "address");
});

test("this host's own address is private, however public it is", () => {
  assert.deepEqual(usable("example.org", ["8.8.4.4"]), "private-address");
  assert.deepEqual(usable("example.org", ["8.8.4.4"], { private: true }), ["8.8.4.4"]);
});

test("loopback and metadata are reached only by a grant that names them", () => {
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

test("a grant names loopback by address or as localhost, not by a name that leads there", () => {
  assert.equal(literal("127.1", "127.0.0.1"), true);
  assert.equal(literal("localhost", "localhost"), true);
  assert.equal(literal("me.localhost.test", "*.localhost.test"), false);
  assert.equal(literal("example.org", "example.org"), false);
});

const allowed = (method: string, path: string): boolean => isMethodAllowed(READING, method, path);

test("a grant that reads has git's fetch in it and not its push", () => {
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
