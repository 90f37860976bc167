import assert from "node:assert/strict";
import test from "node:test";
import type { RunnerClient } from "../../src/boxes/runner-client.ts";
import type { Command } from "../../src/boxes/runner-command.ts";
import { EXIT } from "../../src/core/errors.ts";
import { startProbe, targetsOn } from "../../src/kubernetes/network-proof.ts";

type OnOutput = (stream: "stdout" | "stderr", part: "head", bytes: Buffer) => void;

/** A runner of one command, whose output and end the test controls. */
function scripted() {
  const ended = Promise.withResolvers<object>();
  const heard = { words: [] as readonly string[], said: (() => undefined) as OnOutput, killed: false };
  const end = (code: number | null): void => {
    const none = { total: 0, lost: 0 };
    const rest = { signal: code === null ? 9 : null, errno: null, where: 0, timedOut: false, killed: 0 };
    ended.resolve({ code, ...rest, stdout: none, stderr: none });
  };
  const client = {
    run: ({ words }: Command, { onOutput }: { onOutput: OnOutput }) => {
      Object.assign(heard, { words, said: onOutput });
      const signal = (): void => {
        heard.killed = true;
        end(null);
      };
      return { call: 1, ended: ended.promise, signal, resize: () => undefined };
    },
  } as unknown as RunnerClient;
  return {
    client,
    heard,
    end,
    say: (text: string) => heard.said("stdout", "head", Buffer.from(text)),
    err: (text: string) => heard.said("stderr", "head", Buffer.from(text)),
  };
}

const FAILED = (why: RegExp) => ({ name: "HarnessError", exit: EXIT.sandbox, message: why });

test("the probe's output is read line by line, however it is split, and each look waits for the next line", async () => {
  const { client, heard, say } = scripted();
  const probe = startProbe(client, targetsOn("10.0.0.1"));
  assert.deepEqual(heard.words.slice(1), ["20", "$HARNESS_API", "10.0.0.1 10250"]);
  const first = probe.look();
  say("20 1 3");
  say(" 0 0\n40 1 3 20 0\n60 ");
  assert.deepEqual(await first, { at: 20, answered: 1, slowest: 3, quiet: 0, waited: 0 });
  const next = probe.look();
  say("1 3 40 2\n");
  assert.deepEqual(await next, { at: 60, answered: 1, slowest: 3, quiet: 40, waited: 2 });
  await probe.end();
  assert.ok(heard.killed);
});

for (const [what, ends, why] of [
  ["that the image lacks", ({ end }) => end(127), /the probe failed \(127\)/],
  [
    "that cannot open a socket",
    ({ end, err }) => {
      err("a socket: Too many open files\n");
      end(3);
    },
    /\(3: a socket: Too many open files\)/,
  ],
  ["with unexpected output", ({ say }) => say("40 open\n"), /\(it printed "40 open"\)/],
] as const satisfies readonly (readonly [string, (runner: ReturnType<typeof scripted>) => void, RegExp])[])
  test(`a probe ${what} proves nothing`, async () => {
    const runner = scripted();
    const probe = startProbe(runner.client, ["10.0.0.1 1"]);
    const look = probe.look();
    ends(runner);
    await assert.rejects(look, FAILED(why));
  });
