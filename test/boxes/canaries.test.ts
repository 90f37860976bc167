import assert from "node:assert/strict";
import test from "node:test";
import type { Canary, Observed } from "../../src/core/behaviour.ts";
import type { ExecRequest, ExecResult, OwnedBox } from "../../src/core/ports.ts";
import { cancelledResult } from "../../src/boxes/box-command.ts";
import { canariesIn, canaryBox, type CanaryReport } from "../../src/boxes/canaries.ts";

const TOKEN = "ghp_q7Zt3XbVw9KdLm2PnRs8YcFg5HjTaEuQ4i01";
const CANARIES: readonly Canary[] = [
  { name: "a token", kind: "file", at: "/t", content: TOKEN },
  { name: "metadata", kind: "address", at: "169.254.169.254:80" },
];
const NOTHING: Observed = {
  by: "calls",
  processes: [
    { pid: 7, parent: 0, words: ["bash", "-c", "x"], at: 0 },
    { pid: 9, parent: 7, words: ["old"], at: 1 },
    { pid: 9, parent: 7, words: ["cat", "/t"], at: 2 },
  ],
  acts: [],
  missed: { processes: 0, acts: 0 },
  touched: null,
  unseen: [],
};

const nothingSoFar = (): ReturnType<ReturnType<OwnedBox["start"]>["output"]> => ({
  stdout: Buffer.alloc(0),
  stderr: Buffer.alloc(0),
});

/** A box whose commands all come to this. */
function boxOf(more: Partial<ExecResult>): { readonly box: OwnedBox; readonly asked: ExecRequest[] } {
  const asked: ExecRequest[] = [];
  const result: ExecResult = {
    ...cancelledResult(),
    exit_code: 0,
    cause: null,
    reason: "",
    observed: NOTHING,
    ...more,
  };
  const box: Pick<OwnedBox, "exec" | "start"> = {
    exec: (request) => {
      asked.push(request);
      return Promise.resolve(result);
    },
    start: (request) => {
      asked.push(request);
      return {
        result: Promise.resolve(result),
        output: nothingSoFar,
        kill: () => undefined,
        resize: () => undefined,
      };
    },
  };
  return { box: box as OwnedBox, asked };
}

const REQUEST: ExecRequest = { words: ["bash", "-c", "x"], timeoutMs: 0, keep: { head: 0, tail: 0 } };

async function heard(more: Partial<ExecResult>): Promise<readonly (CanaryReport | string | null)[]> {
  const reports: CanaryReport[] = [];
  const { box, asked } = boxOf(more);
  const watched = canaryBox(box, CANARIES, (report) => reports.push(report));
  const { cause } = await watched.exec(REQUEST, new AbortController().signal);
  await watched.start(REQUEST).result;
  assert.ok(
    asked.every(({ observe, env }) => observe?.canaries === CANARIES && env?.["SSH_AUTH_SOCK"] !== undefined),
  );
  assert.deepEqual(reports[0], reports[1]);
  return [cause, reports[0] ?? null];
}

const printed = (text: string): Partial<ExecResult> => ({
  stdout: { head: Buffer.from(text), tail: Buffer.alloc(0), total: text.length, lost: 0 },
});

test("a touched canary is reported with the programs that led to it", async () => {
  const touched = { canary: "a token", path: "/t", pid: 9, at: 3 };
  assert.deepEqual(await heard({ observed: { ...NOTHING, touched } }), [
    "canary",
    {
      canary: "a token",
      path: "/t",
      command: REQUEST.words,
      by: [
        ["bash", "-c", "x"],
        ["cat", "/t"],
      ],
    },
  ]);
});

test("printing a canary's content counts as a touch, and so does asking the proxy for a metadata service", async () => {
  assert.deepEqual(await heard(printed(`x ${Buffer.from(TOKEN).toString("base64")}`)), [
    "canary",
    { canary: "a token", path: "output", command: REQUEST.words, by: [] },
  ]);
  const refused = { port: 80, method: "GET", rule: "not-granted", reason: "", times: 1 };
  for (const host of ["169.254.169.254", "metadata.google.internal"])
    assert.deepEqual(await heard({ blocked_connections: [{ ...refused, host }] }), [
      "canary",
      { canary: "the cloud's metadata service", path: host, command: REQUEST.words, by: [] },
    ]);
});

test("other output and other refused connections are not a touch", async () => {
  const refused = { port: 80, method: "GET", rule: "not-granted", reason: "", times: 1, host: "example.org" };
  assert.deepEqual(await heard({ ...printed("plain"), blocked_connections: [refused] }), [null, null]);
});

const MARKED: readonly Canary[] = [
  { name: "a token", kind: "file", at: "/t", content: `user: me\noauth_token: ${TOKEN}\n` },
  { name: "a socket", kind: "socket", at: "/run/docker.sock" },
  { name: "words", kind: "file", at: "/w", content: "nothing that is random in any way\n" },
];

const found = (text: string): readonly string[] =>
  canariesIn([Buffer.from(text)], MARKED).map(({ name }) => name);

test("a canary's content is recognised in plain and encoded form at any position", () => {
  for (const before of ["", "x", "xy", "xyz"]) {
    const text = `${before}${TOKEN} and more`;
    assert.deepEqual(found(text), ["a token"], before);
    assert.deepEqual(found(Buffer.from(text).toString("base64")), ["a token"], `${before} in base64`);
    assert.deepEqual(found(Buffer.from(text).toString("hex")), ["a token"], `${before} in digits`);
  }
});

test("similar text is not taken for a canary's content", () => {
  for (const text of [
    "",
    "user: me",
    `${TOKEN.slice(0, -1)}2`,
    "oauth_token: ghp_aaaaaaaaaaaaaaaaaaaa",
    MARKED[2]?.content,
  ])
    assert.deepEqual(found(text ?? ""), []);
});
