import assert from "node:assert/strict";
import test from "node:test";
import type { BoxRequest } from "../../src/docker/box/prepare-box.ts";
import type { ToolResult } from "../../src/core/tool.ts";
import { cutToBounds } from "../../src/agent/call-result.ts";
import { bashTool } from "../../src/tools/bash.ts";
import { fakeToolContext, memoryOutputs } from "../fakes/tool-context.ts";
import { called } from "../fixtures/call.ts";
import { skip } from "../fixtures/engine.ts";
import { realBox } from "../fixtures/real-box.ts";

const SMALL: Partial<BoxRequest> = { limits: { memory: 2 ** 27, cpus: null, pids: 40 } };

interface Shell extends AsyncDisposable {
  readonly run: (command: string) => Promise<ToolResult>;
}

async function shell(): Promise<Shell> {
  const real = await realBox({ ".vscode/settings.json": "{}" }, SMALL);
  const tool = bashTool(fakeToolContext({ workspace: real.box.workspace }));
  return {
    run: (command) => called(tool, { command }, real.box),
    [Symbol.asyncDispose]: () => real[Symbol.asyncDispose](),
  };
}

const told = (result: ToolResult): readonly [string, string] => [
  `${result.kind} ${"cause" in result ? result.cause : ""}`,
  result.text.split("\n").at(-1) ?? "",
];

const WALLS: readonly (readonly [cause: string, command: string, allowed: string])[] = [
  ["network", "curl -sS http://example.com", "curl -sS file:///etc/hostname"],
  [
    "network",
    "python3 -c 'import socket; socket.create_connection((\"192.0.2.1\", 80))'",
    "python3 -c 'import socket'",
  ],
  ["network", "(cd /tmp && npm ping --fetch-retries=0)", "npm --version"],
  ["network", "git ls-remote https://example.com/x.git", "git --version"],
  ["filesystem", "touch /usr/x", "touch /tmp/x"],
  ["filesystem", "echo 1 >>.vscode/settings.json", "echo 1 >>settings.json"],
  ["memory", "python3 -c 'x = bytearray(300 * 2**20)'", "python3 -c 'x = bytearray(2**20)'"],
  ["pids", "for i in $(seq 100); do sleep 1 & done; wait", "for i in $(seq 5); do sleep 0.1 & done; wait"],
  [
    "disk",
    "head -c 90M /dev/zero >/tmp/large; c=$?; rm /tmp/large; exit $c",
    "head -c 1M /dev/zero >/tmp/small",
  ],
];

test(
  "each restriction that a command meets is reported as such, and its allowed twin is not",
  { skip },
  async (t) => {
    await using one = await shell();
    for (const [cause, command, allowed] of WALLS)
      await t.test(`${cause}: ${command}`, async () => {
        const result = await one.run(command);
        const [how, last] = told(result);
        assert.equal(how, `failed ${cause}`, result.text);
        assert.match(last, new RegExp(`^\\[exit \\d+, [^,]*, ${cause}: `));
        const twin = await one.run(allowed);
        assert.equal(twin.kind, "ok", twin.text);
      });
  },
);

test("a fork bomb ends at the process limit, and the box continues", { skip }, async () => {
  await using one = await shell();
  const result = await one.run("bomb() { bomb | bomb & }; bomb; sleep 1; exit 1");
  assert.equal(told(result)[0], "failed pids", result.text);
  const { kind, text, exitCode, peak } = await one.run("echo on");
  assert.deepEqual([kind, text, exitCode, (peak?.pids ?? 0) > 0], ["ok", "on", 0, true]);
});

test("head and tail of 100 MB of output are kept, and the lost bytes are counted", { skip }, async () => {
  await using one = await shell();
  const { kind, text } = await one.run("yes 'a line of it' | head -c 100000000; echo; echo last");
  assert.equal(kind, "ok");
  const [, lost] = /\n\[… [\d.]+ MiB \((\d+) bytes\) were not kept …\]\n/.exec(text) ?? [];
  assert.equal(Number(lost), 100_000_006 - 5 * 2 ** 19);
  assert.ok(text.startsWith("a line of it\n") && text.endsWith("\nlast"));
  assert.ok(Buffer.byteLength(cutToBounds(text, memoryOutputs()).text) <= 30_000);
});

test("control bytes and invalid UTF-8 arrive as harmless text", { skip }, async () => {
  await using one = await shell();
  const { text } = await one.run(String.raw`printf 'a\033[2Jb\000\377\303c\r\nd'; printf '\033]0;t\007' >&2`);
  assert.equal(cutToBounds(text, memoryOutputs()).text, "a␛[2Jb␀\uFFFD\uFFFDc\nd\n[stderr]\n␛]0;t␇");
});
