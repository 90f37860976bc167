import assert from "node:assert/strict";
import test from "node:test";
import { canariesIn } from "../../src/boxes/canary-box.ts";
import type { Canary } from "../../src/core/behaviour.ts";

const TOKEN = "ghp_q7Zt3XbVw9KdLm2PnRs8YcFg5HjTaEuQ4i01";
const CANARIES: readonly Canary[] = [
  { name: "a token", kind: "file", at: "/t", content: `user: me\noauth_token: ${TOKEN}\n` },
  { name: "a socket", kind: "socket", at: "/run/docker.sock" },
  { name: "words", kind: "file", at: "/w", content: "nothing that is random in any way\n" },
];

const found = (text: string): readonly string[] =>
  canariesIn([Buffer.from(text)], CANARIES).map(({ name }) => name);

test("what a canary holds is known again, as it is and in other forms, wherever it stands", () => {
  for (const before of ["", "x", "xy", "xyz"]) {
    const text = `${before}${TOKEN} and more`;
    assert.deepEqual(found(text), ["a token"], before);
    assert.deepEqual(found(Buffer.from(text).toString("base64")), ["a token"], `${before} in base64`);
    assert.deepEqual(found(Buffer.from(text).toString("hex")), ["a token"], `${before} in digits`);
  }
});

test("what only looks like it is not", () => {
  for (const text of [
    "",
    "user: me",
    `${TOKEN.slice(0, -1)}2`,
    "oauth_token: ghp_aaaaaaaaaaaaaaaaaaaa",
    CANARIES[2]?.content,
  ])
    assert.deepEqual(found(text ?? ""), []);
});
