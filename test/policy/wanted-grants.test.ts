import assert from "node:assert/strict";
import test from "node:test";
import { CommandPolicy } from "../../src/policy/decide.ts";
import { networkStep, wantedGrants } from "../../src/policy/wanted-grants.ts";
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
  // No grant would do: something else speaks against it, or nobody knows what it reaches.
  "npm ci && cat .env": [],
  "curl https://example.org/ && mytool x": [],
  "npm install team/repository": [],
  "git fetch": [],
  'curl "$X"': [],
};

for (const [text, grants] of Object.entries(CASES))
  test(`${text}: ${grants.length === 0 ? "no grant would do" : grants.join(", ")}`, () => {
    assert.deepEqual(wanted(text), grants);
    const { decision } = policy.judge(text, {
      mode: "workspace-write",
      workspace: WORKSPACE,
      home: HOME,
      granted: grants,
    });
    if (grants.length > 0) assert.equal(decision.contained, true);
  });

test("what is granted is not asked for again", () => {
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
  test(`what ${text} lacks of a network is told`, () => assert.match(stepOf(text)?.text ?? "", step));

for (const text of [
  "ls",
  "make",
  "git status",
  "curl http://localhost:3000/",
  "python3 -m http.server",
  'ls "$X"',
])
  test(`${text} lacks no network`, () => assert.equal(stepOf(text), undefined));

test("what is granted is not missing, and what is denied cannot be granted", () => {
  const clone = "git clone https://example.org/x.git";
  assert.equal(stepOf(clone, ["example.org"]), undefined);
  assert.match(stepOf(clone, [], ["example.org"])?.text ?? "", /deny example\.org, which no grant opens/);
});
