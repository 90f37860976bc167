import { spawn } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { Readable, Writable } from "node:stream";
import { client, methods, ndJsonStream, PROTOCOL_VERSION } from "@agentclientprotocol/sdk";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { COMPILED } from "../fixtures/cli.ts";
import type { Scratch } from "../fixtures/scratch.ts";
import { mark } from "./gate-run.ts";
import { ROOT } from "./package.ts";
import { approve, FAR, FINE, park, sessionOf } from "./parked.ts";
import { harness, startModel } from "./run-command.ts";
import { resultsIn } from "./run-requests.ts";

/**
 * Ways to act other than a complete `harness run`. Each tries `ok-NAME` and `denied-NAME` in the given home, where a
 * rule denies the latter.
 */

const PROGRAM = path.join(ROOT, "bin/harness");
const envOf = (place: Scratch): Record<string, string> => ({
  PATH: process.env["PATH"] ?? "",
  HOME: place.path,
  ...COMPILED,
});
const both = (name: string) => ({
  calls: ["denied", "ok"].map((kind) => ["bash", { command: mark(`${kind}-${name}`) }] as const),
});

async function callServedTools(
  place: Scratch,
  flags: readonly string[],
  calls: readonly ServedCall[],
): Promise<void> {
  const agent = new Client({ name: "other-agent", version: "3" });
  const args = ["mcp", "serve", "--quiet", ...flags];
  const cwd = place.at("work");
  await agent.connect(
    new StdioClientTransport({ command: PROGRAM, args, cwd, env: envOf(place), stderr: "ignore" }),
  );
  for (const [name, given] of calls) await agent.callTool({ name, arguments: given });
  await agent.close();
}
type ServedCall = readonly [name: string, args: Record<string, unknown>];

async function edited(place: Scratch): Promise<void> {
  await using model = await startModel((chat) => (resultsIn(chat).length < 2 ? both("acp") : FINE));
  const child = spawn(PROGRAM, ["acp", ...model.flags], {
    cwd: place.path,
    env: envOf(place),
    stdio: ["pipe", "pipe", "ignore"],
    timeout: 180_000,
    killSignal: "SIGKILL",
  });
  const ended = once(child, "close");
  const stream = ndJsonStream(
    Writable.toWeb(child.stdin) as WritableStream<Uint8Array>,
    Readable.toWeb(child.stdout) as ReadableStream<Uint8Array>,
  );
  // The person says yes to every question.
  const { agent } = client({ name: "editor" })
    .onNotification(methods.client.session.update, () => undefined)
    .onRequest(methods.client.session.requestPermission, ({ params: { options } }) => ({
      outcome: { outcome: "selected", optionId: options[0]?.optionId ?? "" },
    }))
    .connect(stream);
  await agent.request(methods.agent.initialize, {
    protocolVersion: PROTOCOL_VERSION,
    clientCapabilities: {},
  });
  const made = await agent.request(methods.agent.session.new, { cwd: place.at("work"), mcpServers: [] });
  const prompt = [{ type: "text" as const, text: "change it" }];
  await agent.request(methods.agent.session.prompt, { sessionId: made.sessionId, prompt });
  child.stdin.end();
  await ended;
}

/** The rule is added after the call was parked and before the person approves it. */
async function approved(place: Scratch): Promise<void> {
  for (const kind of ["ok", "denied"]) {
    const command = `${FAR}; ${mark(`${kind}-approve`)}`;
    await using model = await startModel([{ calls: [["bash", { command }]] }, FINE]);
    const policy = await place.read(".config/harness/policy.toml");
    await place.write(".config/harness/policy.toml", "");
    const session = sessionOf(await park(place, model));
    await place.write(".config/harness/policy.toml", policy);
    await approve(place, session, ["--once", "--json"]);
  }
}

async function attempted(place: Scratch): Promise<void> {
  await using model = await startModel((chat) => (resultsIn(chat).length < 2 ? both("attempt") : FINE));
  await harness(place, ["run", "--json", "--attempts", "2", "--intent", "change", ...model.flags, "do it"]);
}

const SWAP = `
let text = "";
for await (const piece of process.stdin) text += piece;
const [, kind] = /^swap (\\w+)/.exec(JSON.parse(text).args.command) ?? [];
const command = ${JSON.stringify(mark("KIND-hook"))}.replace("KIND", kind);
process.stdout.write(JSON.stringify({ args: { command } }));
`;

/** The command that the user's hook put in place of the proposed one is what gets judged. */
async function hooked(place: Scratch): Promise<void> {
  const hook = { event: "PreToolUse", tools: "bash", command: [process.execPath, "swap.mjs"] };
  await place.write(".config/harness/config.json", JSON.stringify({ hooks: [hook] }));
  await place.write(".config/harness/swap.mjs", SWAP);
  const calls = ["ok", "denied"].map((kind) => ["bash", { command: `swap ${kind}` }] as const);
  await using model = await startModel([{ calls }, FINE]);
  await harness(place, ["run", "--json", "--intent", "change", ...model.flags, "do it"]);
}

export const OTHERS: Readonly<Record<string, (place: Scratch) => Promise<void>>> = {
  serve: (place) =>
    callServedTools(
      place,
      [],
      ["ok", "denied"].map((kind) => ["bash", { command: mark(`${kind}-serve`) }]),
    ),
  // No mode overrides a rule that denies.
  open: (place) =>
    callServedTools(
      place,
      ["--mode", "danger-full-access"],
      ["ok", "denied"].map((kind) => ["bash", { command: mark(`${kind}-open`) }]),
    ),
  acp: edited,
  approve: approved,
  attempt: attempted,
  hook: hooked,
};
