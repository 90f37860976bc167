import assert from "node:assert/strict";
import test from "node:test";
import type { ExecRequest } from "../../src/core/ports.ts";
import { maskedBox } from "../../src/boxes/masked-box.ts";
import type { FakeCommand } from "../fakes/commands.ts";
import { fakeBox } from "../fakes/box.ts";

const VALUE = "a-value-nobody-may-see";
const SECRET = {
  name: "API_TOKEN",
  placeholder: "harness-secret-1",
  value: VALUE,
  hosts: ["api.example.org"],
};
const signal = new AbortController().signal;
const echoes: FakeCommand = async ({ out, err }) => {
  await out(`token ${VALUE.slice(0, 7)}`);
  await out(`${VALUE.slice(7)}\n`);
  await err(`${VALUE}\n`);
  return 0;
};
const open = (secrets = [SECRET]): ReturnType<typeof maskedBox> =>
  maskedBox(fakeBox({ files: { "a.txt": `x\n${VALUE}\n` }, commands: { echoes } }), secrets);
const request: ExecRequest = { words: ["echoes"], timeoutMs: 0, keep: { head: 4096, tail: 4096 } };
const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString();

test("values are masked in what commands print, both stored and streamed", async () => {
  const { stdout, stderr } = await open().exec(request, signal);
  const mask = "[secret: API_TOKEN]***";
  assert.equal(text(stdout.head) + text(stdout.tail), `token ${mask}\n`);
  assert.equal(text(stderr.head) + text(stderr.tail), `${mask}\n`);
  const heard = { stdout: "", stderr: "" };
  const onOutput = (stream: "stdout" | "stderr", bytes: Uint8Array): void => {
    heard[stream] += text(bytes);
  };
  await open().exec({ ...request, onOutput }, signal);
  assert.deepEqual(heard, { stdout: `token ${mask}\n`, stderr: `${mask}\n` });
  const job = open().start(request);
  const { stdout: kept } = await job.result;
  assert.equal(text(kept.head) + text(kept.tail), `token ${mask}\n`);
  assert.ok(!text(job.output().stdout).includes(VALUE));
});

test("values are masked in files and in search results", async () => {
  const read = await open().read("a.txt");
  assert.equal(read.kind === "ok" && text(read.value.content), "x\n[secret: API_TOKEN]***\n");
  const found = await open().search({ pattern: "nobody", limit: 5 });
  assert.ok(!JSON.stringify(found).includes(VALUE));
});

test("everything else is passed through, and without secrets the box itself is returned", async () => {
  const box = fakeBox();
  assert.equal(maskedBox(box, []), box);
  const hidden = maskedBox(box, [SECRET]);
  assert.equal(hidden.workspace, box.workspace);
  assert.equal((await hidden.stat(".")).kind, "ok");
  await hidden[Symbol.asyncDispose]();
});
