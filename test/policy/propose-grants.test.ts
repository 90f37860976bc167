import assert from "node:assert/strict";
import test from "node:test";
import { readGrant } from "../../src/core/network.ts";
import { proposed } from "./recorded.ts";

test("the proposed grants are the narrowest for the hosts that were reached", () => {
  const rows: readonly (readonly [
    granted: readonly string[],
    connections: readonly string[],
    grants: readonly string[],
  ])[] = [
    [["a.example.org", "unused.example.org"], ["- a.example.org:443"], ["a.example.org:443"]],
    [["a.example.org"], ["GET a.example.org:80", "HEAD a.example.org:80"], ["a.example.org:80:read"]],
    [["a.example.org"], ["GET a.example.org:80", "POST a.example.org:80"], ["a.example.org:80:GET,POST"]],
    [["a.example.org"], ["GET a.example.org:80", "- a.example.org:80"], ["a.example.org:80"]],
    [["a.example.org"], ["MKCOL a.example.org:80"], ["a.example.org:80"]],
    [
      ["a.example.org"],
      ["- a.example.org:443", "GET a.example.org:80"],
      ["a.example.org:443", "a.example.org:80:read"],
    ],
    [
      ["a.example.org:443,8443:read"],
      ["GET a.example.org:8443", "GET a.example.org:443"],
      ["a.example.org:443,8443:read"],
    ],
    [["*.example.org"], ["- a.example.org:443"], ["a.example.org:443"]],
    [
      ["*.example.org"],
      ["- p-1a2b3c4d.example.org:443", "- p-9f8e7d6c.example.org:443"],
      ["*.example.org:443"],
    ],
    [["db.intern:8080:private"], ["GET db.intern:8080"], ["db.intern:8080:read:private"]],
    [["127.0.0.1:4000"], ["GET 127.0.0.1:4000"], ["127.0.0.1:4000:read"]],
    [["::1"].map((each) => `[${each}]:4000`), ["GET ::1:4000"], ["[::1]:4000:read"]],
    [["npm=registry.example.org"], ["GET registry.example.org:443"], ["npm=registry.example.org"]],
    [["npm", "pip"], ["GET registry.example.org:443"], ["npm", "pip"]],
    [["a.example.org"], ["!- a.example.org:443"], []],
    [["a.example.org"], [], []],
  ];
  for (const [granted, connections, grants] of rows) {
    const { allow_domains } = proposed({ granted, connections });
    assert.deepEqual(allow_domains, grants, connections.join(", "));
    for (const each of grants.filter((text) => text.includes(".")))
      assert.equal(readGrant(each).kind, "grant", each);
  }
});

test("only the preset that was used for installing is kept", () => {
  const { allow_domains } = proposed({
    granted: ["npm", "pip"],
    commands: ["npm ci"],
    connections: ["GET registry.example.org:443"],
  });
  assert.deepEqual(allow_domains, ["npm"]);
});

test("a grant that a person made during the run counts like one made at the start", () => {
  const commands = ["curl http://db.intern:8080/x"];
  const connections = ["GET db.intern:8080"];
  const byPerson = ["db.intern:8080:private"];
  assert.deepEqual(proposed({ commands, connections, byPerson }).allow_domains, [
    "db.intern:8080:read:private",
  ]);
});

test("a refused host is reported and never granted", () => {
  const { allow_domains, refused, needed } = proposed({
    granted: ["a.example.org"],
    connections: ["GET a.example.org:443", "!GET evil.example.com:443", "!GET evil.example.com:443"],
  });
  assert.deepEqual(allow_domains, ["a.example.org:443:read"]);
  assert.deepEqual(
    refused.map(({ what }) => what),
    ["evil.example.com:443"],
  );
  assert.deepEqual(needed.hosts, {
    "a.example.org:443 GET allowed": 1,
    "evil.example.com:443 GET denied": 2,
  });
});

test("in full access, where connections are not observed, the hosts that commands name are proposed", () => {
  const commands = ["curl https://a.example.org/x", "curl http://localhost:3000/", "npm ci"];
  const { allow_domains } = proposed({ mode: "danger-full-access", commands });
  assert.deepEqual(allow_domains, ["a.example.org", "npm"]);
  assert.deepEqual(proposed({ commands }).allow_domains, []);
});

test("of a run with an unfiltered network, what no grant can cover is reported and not granted", () => {
  const { allow_domains, left } = proposed({
    mode: "danger-full-access",
    commands: [
      "curl https://a.example.org:8443/x",
      "curl https://b.example.org/x",
      "git clone https://c.example.org/r.git",
      "curl http://localhost:3000/",
      "ssh d.example.org ls",
      "psql -h e.example.org",
      "curl ftp://f.example.org/a",
      'curl "$URL"',
    ],
  });
  assert.deepEqual(allow_domains, ["a.example.org:8443", "b.example.org", "c.example.org"]);
  const network = left.filter(({ reason }) => /no grant carries|names no host/.test(reason));
  assert.deepEqual(
    network.map(({ what, reason }) => `${what}: ${reason.split(":")[0]}`),
    [
      "ssh d.example.org ls: no grant carries ssh or rsync",
      "psql -h e.example.org: no grant carries a database's protocol",
      "curl ftp://f.example.org/a: no grant carries FTP",
      'curl "$URL": it names no host that could be granted',
    ],
  );
  const { left: filtered } = proposed({ commands: ["ssh d.example.org ls"] });
  assert.ok(!filtered.some(({ reason }) => reason.includes("no grant carries")));
});
