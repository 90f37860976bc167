import assert from "node:assert/strict";
import test from "node:test";
import { CommandPolicy } from "../../src/policy/decide.ts";
import { HOME, WORKSPACE } from "../fixtures/policy/corpus.ts";

const policy = new CommandPolicy();
const judged = (cmd: string): string => {
  const { decision, contained } = policy.decide(cmd, {
    mode: "workspace-write",
    workspace: WORKSPACE,
    home: HOME,
  });
  return `${decision}, ${contained ? "contained" : "not contained"}`;
};

/** What a run with nobody there does, and what it refuses. */
const ASKS = {
  contained: [
    "mkdir -p build",
    "echo x > notes.txt",
    "rm -rf build",
    "mv a.ts b.ts",
    "sed -i s/a/b/ src/a.ts",
    'for f in src/*.ts; do sed -i s/a/b/ "$f"; done',
    "cp a.ts /tmp/a.ts",
    "npm run build",
    "make",
    "node server.js",
    "./run.sh",
    "git add -A",
    "git commit -m 'a change'",
    "git add -A && git commit -m x",
    "python3 -c 'print(1 + 1)'",
    "cat .env",
    'cat "$FILE"',
    "prettier --write src",
    "APP_NAME=x npm test",
    "chmod +x run.sh",
    "curl -fsS http://localhost:3000/health",
    "curl 'http://[::1]:8080/' 127.0.0.1:3000",
  ],
  "not contained": [
    "curl https://example.com",
    "npm install",
    "pip install x",
    "git push",
    "git fetch",
    "git checkout -b x",
    "git stash",
    "ssh host.example",
    "echo x > /etc/motd",
    "rm -rf /opt/x/y",
    "cp a.ts ~/a.ts",
    'rm -rf "$DIR"',
    "quuxctl status",
    "python3 -c 'import os; os.system(\"id\")'",
    "eval 'mkdir x'",
    "LD_PRELOAD=./x.so make",
    "npx cowsay",
    "cat x | sh",
    "mkdir a && curl https://example.com",
    "docker ps",
    "kill 1",
    "curl http://localhost:3000 https://example.com",
    "curl -x http://example.com http://localhost/",
    "curl http://localhost.example.com/",
    "curl http://127.0.0.1@example.com/",
    'curl "http://localhost$X/"',
  ],
} as const;

for (const [kind, commands] of Object.entries(ASKS))
  for (const cmd of commands) test(`${cmd}: ask, ${kind}`, () => assert.equal(judged(cmd), `ask, ${kind}`));

for (const cmd of ["ls -la", "npm test", "git status && git diff", "grep -rn x src | head"])
  test(`${cmd}: allow, contained`, () => assert.equal(judged(cmd), "allow, contained"));
