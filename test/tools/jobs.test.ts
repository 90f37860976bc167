import assert from "node:assert/strict";
import test from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { Box, OldJob } from "../../src/core/ports.ts";
import type { ToolResult } from "../../src/core/tool.ts";
import { bashTool } from "../../src/tools/bash.ts";
import { fakeBox } from "../fakes/box.ts";
import type { FakeCommand } from "../fakes/commands.ts";
import { fakeToolContext } from "../fakes/tool-context.ts";
import { called } from "../fixtures/call.ts";

type Ask = (args: object, signal?: AbortSignal) => Promise<ToolResult>;

function shell(bash: FakeCommand): Ask {
  const box = fakeBox({ commands: { bash } });
  const tool = bashTool(fakeToolContext());
  return (args, signal) => called(tool, args, box, signal);
}

const server: FakeCommand = async ({ out, signal }) => {
  await out("listening é");
  await sleep(60_000, 0, { signal }).catch(() => 0);
  return 0;
};

test("a job has a handle, and each look shows only new output", async () => {
  const ask = shell(server);
  const started = await ask({ command: "serve", background: true });
  assert.equal(started.kind, "ok");
  assert.match(started.text, /^listening é\n\[j1 is running, .*; \{"job":"j1"\} shows its new output, /);
  assert.match((await ask({ job: "j1" })).text, /^\[j1 is running, [^\n]*\]$/);
  const killed = await ask({ job: "j1", kill: true });
  assert.deepEqual(killed, { kind: "ok", text: "[j1 was ended]" });
});

const failing: FakeCommand = async ({ err }) => err("npm error code EAI_AGAIN").then(() => 1);

test("a job that fails at once is reported at once, with its cause", async () => {
  const { kind, text } = await shell(failing)({ command: "x", background: true });
  assert.equal(kind, "failed");
  assert.match(text, /^npm error code EAI_AGAIN\n\[advice: .*\]\n\[j1 ended\]\n\[exit 1, .*, network: .*\]$/);
});

test("a look with a timeout waits for the job's end", async () => {
  const ask = shell(async ({ out }) => {
    await sleep(400);
    await out("built");
    return 0;
  });
  assert.match((await ask({ command: "x", background: true })).text, /^\[j1 is running/);
  assert.equal((await ask({ job: "j1", timeout: 60 })).text, "built\n[j1 ended: exit 0]");
  assert.equal((await ask({ job: "j1" })).text, "[j1 ended: exit 0]");
});

test("an unknown handle lists the known ones", async () => {
  const ask = shell(server);
  assert.deepEqual(await ask({ job: "j1" }), {
    kind: "invalid",
    issues: ['no job "j1"; none was started'],
    text: 'no job "j1"; none was started',
  });
  await ask({ command: "x", background: true });
  assert.match((await ask({ job: "x" })).text, /^no job "x"; there are j1 \(running\)$/);
  await ask({ job: "j1", kill: true });
});

test("at most eight jobs run at a time", async () => {
  const ask = shell(server);
  await Promise.all(Array.from({ length: 8 }, () => ask({ command: "x", background: true })));
  const { kind, text } = await ask({ command: "x", background: true });
  assert.equal(kind, "failed");
  assert.match(text, /^8 jobs are running; end one first: j1 \(running\)/);
  await ask({ job: "j3", kill: true });
  assert.match((await ask({ command: "x", background: true })).text, /\[j9 is running/);
  for (let job = 1; job <= 9; job += 1) await ask({ job: `j${job}`, kill: true });
});

test("a job whose start is cancelled is ended", async () => {
  const ask = shell(server);
  await ask({ command: "x", background: true }, AbortSignal.timeout(50));
  assert.match((await ask({ job: "j1", timeout: 60 })).text, /\[j1 was ended\]$/);
});

/** A job is started through one box, and looked at through another that has kept it. */
function twoProcesses(bash: FakeCommand, agent = "main") {
  const first = fakeBox({ commands: { bash } });
  const kept = new Map<string, OldJob>();
  const started: Box = {
    ...first,
    start: (request) => {
      const job = first.start(request);
      const old = { ...job, noted: "" };
      kept.set(request.name ?? "", old);
      return { ...job, note: (noted) => void Object.assign(old, { noted }) };
    },
  };
  const [one, two] = [bashTool(fakeToolContext()), bashTool(fakeToolContext({ agent }))];
  return {
    ask: (args: object) => called(one, args, started),
    askAgain: (args: object) => called(two, args, { ...started, kept }),
  };
}

test("a job of a parked box continues exactly after the output shown before", async () => {
  const gate = Promise.withResolvers<void>();
  const { ask, askAgain } = twoProcesses(async ({ out, signal }) => {
    await out(Buffer.from("caf😀").subarray(0, -2));
    await gate.promise;
    await out(Buffer.from("😀 more").subarray(2));
    await sleep(60_000, 0, { signal }).catch(() => 0);
    return 0;
  });
  assert.match((await ask({ command: "x", background: true })).text, /^caf\n\[j1 is running/);
  gate.resolve();
  await sleep(5);
  assert.match((await askAgain({ job: "j1" })).text, /^😀 more\n\[j1 is running/);
  assert.match((await askAgain({ command: "x", background: true })).text, /\[j2 is running/);
  assert.equal((await askAgain({ job: "j1", kill: true })).text, "[j1 was ended]");
  await askAgain({ job: "j2", kill: true });
});

test("a job that had ended before is reported as it was; another agent's job is unknown", async () => {
  const { ask, askAgain } = twoProcesses(async ({ out }) => out("over").then(() => 0));
  assert.match((await ask({ command: "x", background: true })).text, /^over\n\[j1 ended: exit 0\]$/);
  assert.equal((await askAgain({ job: "j1" })).text, "[j1 ended: exit 0]");
  const other = twoProcesses(server, "another");
  await other.ask({ command: "x", background: true });
  assert.equal((await other.askAgain({ job: "j1" })).kind, "invalid");
  await other.ask({ job: "j1", kill: true });
});
