import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import test from "node:test";
import { startMcpWeb } from "../fakes/mcp-web.ts";
import { type Scratch, scratch } from "../fixtures/scratch.ts";
import { auditLines, eventsOf, finishedOf, harness } from "./run-command.ts";

/** A server of MCP by its address, in a run as it is built; no box is made for it. */

const calling = (text: string) => ({ reply: [{ call: "web__echo", args: { text } }] });

async function ran(place: Scratch, steps: readonly object[], words: readonly string[]) {
  const file = place.at("model.jsonl");
  writeFileSync(file, steps.map((step) => JSON.stringify(step)).join("\n"));
  const model = ["--provider", "scripted", "--model", file];
  const run = await harness(place, ["run", "--json", "--intent", "direct", ...model, ...words, "ask it"], {
    env: { KEY: "k1" },
  });
  const calls = eventsOf(run).flatMap((event) => (event.type === "call.ended" ? [event] : []));
  return { run, calls, finished: finishedOf(run) };
}

test("policy, grants and hooks apply to a server at an address, and everything is audited", async () => {
  await using place = await scratch();
  await mkdir(place.at("work"));
  await using web = await startMcpWeb();
  const hooks = [
    { event: "PreToolUse", tools: "web__*", name: "watch", command: "grep -q forbidden && exit 2; true" },
    {
      event: "PostToolUse",
      tools: "web__echo",
      command: `sed 's/.*"text":"secret".*/{"text":"masked"}/; t; d'`,
    },
  ];
  const mcp = { web: { url: web.url, headers: { Authorization: "Bearer ${KEY}" } } };
  await place.write(".config/harness/config.json", JSON.stringify({ mcp, hooks }));
  const denied = await ran(place, [calling("ungranted"), { reply: ["done"] }], []);
  assert.deepEqual(
    denied.calls.map(({ kind }) => kind),
    ["denied"],
    denied.run.stderr,
  );
  assert.match(denied.calls[0]?.text ?? "", /rule tool\.network/);
  const steps = [calling("plain"), calling("forbidden"), calling("secret"), { reply: ["done"] }];
  const granted = await ran(place, steps, ["--allow-domain", web.host]);
  assert.deepEqual(
    granted.calls.map(({ kind, text }) => [kind, text.split("\n")[0]]),
    [
      ["ok", "plain"],
      ["denied", "Refused by a hook: the hook watch: it gave no reason. It was not run."],
      ["ok", "masked"],
    ],
    granted.run.stderr,
  );
  const called = web.heard.filter(({ body }) => body.includes('"tools/call"'));
  assert.deepEqual(
    called.map(({ body }) => /"text":"(\w+)"/.exec(body)?.[1]),
    ["plain", "secret"],
  );
  assert.ok(web.heard.every(({ authorization }) => authorization === "Bearer k1"));
  const lines = auditLines(place);
  assert.deepEqual(
    lines
      .filter(({ kind }) => kind === "decision")
      .map(({ tool, runs }) => `${String(tool)} ${String(runs)}`)
      .toSorted(),
    ["web__echo false", "web__echo false", "web__echo true", "web__echo true"],
  );
  assert.ok(lines.some(({ kind, did }) => kind === "hook" && did === "replaced"));
});
