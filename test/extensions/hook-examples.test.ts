import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { readAnswer, runOnHost } from "../../src/extensions/hook-programs.ts";

const EXAMPLES = path.join(import.meta.dirname, "..", "..", "examples/hooks");

async function asked(event: "PreToolUse" | "PostToolUse" | "Stop", file: string, about: object) {
  const place = { env: process.env, cwd: EXAMPLES, home: "/none", apart: "/none/work" };
  const input = JSON.stringify({ event, ...about });
  const run = { input, limit: 2 ** 20, timeoutMs: 60_000 };
  const words = [process.execPath, `${file}.mjs`];
  return readAnswer(event, await runOnHost(words, place, run, new AbortController().signal));
}

test("the example guard skips destructive commands, and not similar ones", async () => {
  const rows: readonly (readonly [string, string | undefined])[] = [
    ["rm -rf /", "it removes everything"],
    ["cd /tmp && rm -fr ~/", "it removes everything"],
    ['rm -r -f "$HOME"', "it removes everything"],
    ["rm --recursive --force ${HOME}; ls", "it removes everything"],
    ["rm -rf /*", "it removes everything"],
    ["rm -rf ./build", undefined],
    ["rm -rf /tmp/x", undefined],
    ["rm a.txt /", undefined],
    ["mkfs.ext4 /dev/sda1", "it makes a file system"],
    ["dd if=/dev/zero of=/dev/sda bs=1M", "it writes to a device"],
    ["dd if=/dev/zero of=/tmp/file", undefined],
    ["dd if=a of=/dev/null", undefined],
    ["echo x > /dev/sda", "it writes to a device"],
    [":(){ :|:& };:", "it is a fork bomb"],
    ["f() { f | f & }; f", "it is a fork bomb"],
    ["f() { echo a | cat & }", undefined],
  ];
  const answers = await Promise.all(
    rows.map(([command]) => asked("PreToolUse", "no-destruction", { args: { command } })),
  );
  assert.deepEqual(
    answers.map((answer, at) => [rows[at]?.[0], answer.kind === "answered" ? answer.skip : answer.why]),
    rows,
  );
});

test("the example for secrets masks every form of key, and nothing else", async () => {
  const body = "a1B2c3D4e5F6g7H8i9J0k1";
  const keys = [
    `sk-${body}`,
    `ghp_${body}`,
    `gho_${body}`,
    `xoxb-${body}`,
    "AKIAABCDEFGH12345678",
    `AIza${body}`,
  ];
  const text = keys.map((key) => `key ${key}, and more\n`).join("");
  const answer = await asked("PostToolUse", "redact-secrets", { result: { text } });
  assert.deepEqual(answer, { kind: "answered", text: keys.map(() => "key [redacted], and more\n").join("") });
  const plain = await asked("PostToolUse", "redact-secrets", { result: { text: "sk-short AKIA task-list" } });
  assert.deepEqual(plain, { kind: "answered" });
});

test("the example for the end asks for tests once, if the answer does not mention them", async () => {
  const rows = [
    [{ answer: "Mended.", continued: 0, may_continue: true }, "Run the tests, and say what they showed."],
    [{ answer: "Mended; the tests pass.", continued: 0, may_continue: true }, undefined],
    [{ answer: "Mended.", continued: 1, may_continue: true }, undefined],
    [{ answer: "The latest is in.", continued: 0, may_continue: false }, undefined],
  ] as const;
  const answers = await Promise.all(rows.map(([about]) => asked("Stop", "ask-for-tests", about)));
  assert.deepEqual(
    answers.map((answer) => (answer.kind === "answered" ? answer.continue : answer.why)),
    rows.map(([, said]) => said),
  );
});

test("the documentation contains the example for the end unchanged", () => {
  const docs = readFileSync(path.join(EXAMPLES, "../../docs/hooks.md"), "utf8");
  assert.ok(docs.includes(readFileSync(path.join(EXAMPLES, "ask-for-tests.mjs"), "utf8")));
});
