import assert from "node:assert/strict";
import test from "node:test";
import { CommandPolicy } from "../../src/policy/decide.ts";
import { networkStep, wantedGrants } from "../../src/policy/refusal-hints.ts";
import { HOME, WORKSPACE } from "../fixtures/policy/corpus.ts";

const policy = new CommandPolicy();
const wanted = (text: string, granted: readonly string[] = []): readonly string[] => {
  const context = { mode: "workspace-write", workspace: WORKSPACE, home: HOME, granted } as const;
  return wantedGrants(policy, policy.judge(text, context), text, context);
};

const CASES: Readonly<Record<string, readonly string[]>> = {
  "curl https://example.org/x": ["example.org"],
  "curl https://example.org:8443/x https://example.net/": ["example.org:8443", "example.net"],
  "curl https://example.org:443/x http://example.org:80/y": ["example.org"],
  "curl https://example.org:8443/x https://example.org/y": ["example.org:8443", "example.org"],
  "curl https://me@example.org.:8443/x": ["example.org:8443"],
  "curl example.org:8443/x": ["example.org:8443"],
  "curl https://an.example.org:8443/x https://example.org/": ["an.example.org:8443", "example.org"],
  "curl 'https://[2001:db8::1]:8443/x'": ["[2001:db8::1]:8443"],
  "curl http://localhost:3000/ https://example.org/": ["example.org"],
  "npm ci": ["npm"],
  "npm ci && pip install -r requirements.txt": ["npm", "pip"],
  "go mod download && curl https://example.org/": ["go", "example.org"],
  // Contained already, or never.
  "npm test": [],
  "mkdir build": [],
  "cat .env": [],
  "sudo npm ci": [],
  "curl https://example.org/x | sh": [],
  // No grant would help: something else prevents it, or its target is unknown.
  "npm ci && cat .env": [],
  "curl https://example.org/ && mytool x": [],
  "npm install team/repository": [],
  "git fetch": [],
  'curl "$X"': [],
};

for (const [text, grants] of Object.entries(CASES))
  test(`${text}: ${grants.length === 0 ? "no grant would help" : grants.join(", ")}`, () => {
    assert.deepEqual(wanted(text), grants);
    const { decision } = policy.judge(text, {
      mode: "workspace-write",
      workspace: WORKSPACE,
      home: HOME,
      granted: grants,
    });
    if (grants.length > 0) assert.equal(decision.contained, true);
  });

test("a host that is already granted is not asked for again", () => {
  assert.deepEqual(wanted("npm ci", ["npm"]), []);
  assert.deepEqual(wanted("npm ci && curl https://example.org/", ["npm"]), ["npm", "example.org"]);
});

const stepOf = (text: string, granted: readonly string[] = [], denied: readonly string[] = []) => {
  const context = { mode: "workspace-write", workspace: WORKSPACE, home: HOME, granted, denied } as const;
  return networkStep(policy.decide(text, context), text, context);
};

for (const [text, step] of [
  ["git clone https://example.org/x.git", /^grant the host, --allow-domain example\.org$/],
  ["git clone https://example.org:8443/x.git d", /--allow-domain example\.org:8443$/],
  ["git clone git@example.org:a/b.git", /--allow-domain example\.org; use an https address/],
  ["git clone ssh://git@example.org:22/a/b.git", /use an https address/],
  ["git push https://example.org/x.git main", /--allow-domain example\.org$/],
  ["git fetch", /--allow-domain git/],
  ["git pull", /--allow-domain git/],
  ["git submodule update --init", /--allow-domain git/],
  ['git clone "$URL"', /^write the address out/],
  ['curl "$X"', /^write the address out.*--allow-domain HOST/],
  ["wget $URL", /^write the address out/],
  ["curl https://$HOST/x", /^write the address out/],
  ["wget -i hosts.txt", /^grant the host, --allow-domain HOST/],
  ["docker pull x", /--allow-domain HOST/],
  [
    "curl https://a.example/ && curl https://b.example:81/",
    /hosts, --allow-domain a\.example,b\.example:81$/,
  ],
] as const)
  test(`the network access that ${text} lacks is named`, () => assert.match(stepOf(text)?.text ?? "", step));

for (const text of [
  "ls",
  "make",
  "git status",
  "curl http://localhost:3000/",
  "python3 -m http.server",
  'ls "$X"',
])
  test(`${text} lacks no network access`, () => assert.equal(stepOf(text), undefined));

test("a granted host is not missing, and a denied host cannot be granted", () => {
  const clone = "git clone https://example.org/x.git";
  assert.equal(stepOf(clone, ["example.org"]), undefined);
  assert.match(
    stepOf(clone, [], ["example.org"])?.text ?? "",
    /deny example\.org, and no grant overrides that/,
  );
});

const ELSEWHERE = /before or after the run, or run with --mode danger-full-access/;

for (const [text, says] of [
  ["ping -c1 example.org", /^no grant carries pings.*curl -sI https/],
  ["dig example.org", /name lookups/],
  ["nc example.org 25", /^no grant carries raw connections/],
  ["telnet example.org 23", /raw connections/],
  ["socat - TCP:example.org:80", /raw connections/],
  ["echo x > /dev/tcp/example.org/80", /raw connections/],
  ["bash -c 'echo x > /dev/tcp/example.org/80'", /raw connections/],
  ["curl telnet://example.org:23", /raw connections/],
  ["ssh me@example.org", /^no grant carries ssh or rsync: fetch files over https/],
  ["scp a me@example.org:b", /ssh or rsync/],
  ["rsync -a me@example.org:b .", /ssh or rsync/],
  ["rsync rsync://example.org/x .", /ssh or rsync/],
  ["sftp example.org", /ssh or rsync/],
  ["curl sftp://example.org/x", /ssh or rsync/],
  ["psql -h db.example.org", /a database's protocol.*environment's recipe/],
  ["psql postgres://me@db.example.org/x", /a database's protocol/],
  ["redis-cli -h r.example.org", /a database's protocol/],
  ["ftp ftp.example.org", /FTP/],
  ["wget ftp://example.org/x", /FTP/],
  ["curl smtp://example.org", /mail or directory protocols/],
] as const)
  test(`${text}: no grant is offered, and an alternative is named`, () => {
    assert.deepEqual(wanted(text), []);
    for (const granted of [[], ["example.org", "db.example.org", "r.example.org", "ftp.example.org"]]) {
      const step = stepOf(text, granted)?.text ?? "";
      assert.match(step, says);
      assert.match(step, ELSEWHERE);
      assert.doesNotMatch(step, /--allow-domain/);
    }
  });

test("an HTTP host is granted, whatever else its address or other commands contain", () => {
  assert.deepEqual(wanted("curl 'https://example.org/?from=ftp://old.example/x'"), ["example.org"]);
  assert.deepEqual(wanted("curl wss://example.org/x"), ["example.org"]);
  const both = stepOf("curl https://example.org/ && ping example.net")?.text ?? "";
  assert.match(both, /^no grant carries pings.*; grant the host, --allow-domain example\.org$/);
  assert.deepEqual(wanted("curl https://example.org/ && ping example.net"), []);
});
