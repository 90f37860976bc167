import assert from "node:assert/strict";
import test from "node:test";
import { CommandPolicy } from "../../src/policy/decide.ts";
import { wantedGrants } from "../../src/policy/wanted-grants.ts";
import { HOME, WORKSPACE } from "../fixtures/policy/corpus.ts";

const policy = new CommandPolicy();
const wanted = (text: string, granted: readonly string[] = []): readonly string[] => {
  const context = { mode: "workspace-write", workspace: WORKSPACE, home: HOME, granted } as const;
  return wantedGrants(policy, policy.judge(text, context), text, context);
};

const CASES: Readonly<Record<string, readonly string[]>> = {
  "curl https://example.org/x": ["example.org"],
  "curl https://example.org:8443/x https://example.net/": ["example.org", "example.net"],
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
