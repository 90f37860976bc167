import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { readFile, rm } from "node:fs/promises";
import path from "node:path";
import test from "node:test";
import { skip } from "../fixtures/engine.ts";
import type { Scratch } from "../fixtures/scratch.ts";
import { household } from "./box-command.ts";
import { ROOT } from "./package.ts";
import { AGAIN } from "./chatting.ts";
import { eventsOf, finishedOf, harness, type Ran, type Said, startModel } from "./run-command.ts";
import { resultsIn, toolsIn } from "./run-requests.ts";
import { noTerminal, onTerminal } from "./terminal.ts";
import { trustAll } from "./trusted.ts";

const CONFIG = ".config/harness/config.json";
const DONE: Said = { text: "done" };
const FIXTURE = await readFile(path.join(ROOT, "test/fixtures/mcp-server.ts"), "utf8");

/** A repository with the server in it, and settings of the user that start it. */
async function served(mcp: object, more: Readonly<Record<string, string>> = {}): Promise<Scratch> {
  const place = await household({ "mcp-server.ts": FIXTURE, "a.txt": "a\n", ...more });
  await place.write(CONFIG, JSON.stringify({ mcp }));
  return place;
}

const inBox = (scenario = "good", more: object = {}): object => ({
  command: ["node", "mcp-server.ts", scenario],
  ...more,
});

const noticesOf = (ran: Ran): readonly string[] =>
  eventsOf(ran).flatMap((event) => (event.type === "notice" ? [event.text] : []));

test(
  "a server's tools are in the first request, and a call is judged, run in the box, and audited",
  { skip },
  async () => {
    await using place = await served({
      files: inBox("good", { env: { TOKEN: "${MINE}-${OTHER:-x}" }, tools: { deny: ["die"] } }),
    });
    const write = { path: "/tmp/by-server", text: "hello" };
    await using model = await startModel([
      {
        calls: [
          ["files__write", write],
          ["bash", { command: "cat /tmp/by-server" }],
          ["files__env", {}],
          ["files__echo", { text: "a", times: 40 }],
          ["files__parts", {}],
          ["mcp_resource", { server: "files", uri: "mem:a" }],
        ],
      },
      DONE,
    ]);
    const ran = await harness(place, ["run", "--json", ...model.flags, "change it"], {
      env: { MINE: "mine" },
    });
    assert.equal(ran.code, 0, ran.stderr + ran.stdout);
    const offered = toolsIn(model.asked()[0]);
    assert.ok(offered.includes("files__echo") && offered.includes("mcp_prompt"), offered.join(" "));
    assert.ok(!offered.includes("files__die"));
    const [written, read, env, wrong, parts, resource] = resultsIn(model.asked()[1]);
    assert.equal(written, "written");
    assert.match(read ?? "", /hello/);
    assert.match(env ?? "", /^mine-x/);
    assert.match(wrong ?? "", /times: must be <= 9/);
    assert.doesNotMatch(parts ?? "", /[\u001b\u202e\u200b\u0007]/);
    assert.match(parts ?? "", /<U\+202E>[^]*\[image image\/png, 900 B: not passed on\]/);
    assert.match(resource ?? "", /the resource/);
    assert.ok(!existsSync("/tmp/by-server"), "it was written on the host");
    const decided = eventsOf(ran).flatMap((event) => (event.type === "call.decided" ? [event] : []));
    assert.deepEqual(
      [decided[0]?.decision, decided[0]?.contained, decided[0]?.runs, decided[0]?.rules[0]?.id],
      ["ask", true, true, "tool.program"],
    );
    const audit = await readFile(
      place.at(".local/state/harness/audit", `${finishedOf(ran).session}.jsonl`),
      "utf8",
    );
    assert.match(audit, /files__write/);
    assert.match(audit, /tool\.program/);
  },
);

test("a rule or a hook that denies a server's tool holds, and an allowed call runs", { skip }, async () => {
  await using place = await served({ files: inBox() });
  const hooks = [
    { event: "PreToolUse", tools: "files__*", name: "watch", command: "grep -q forbidden && exit 2; true" },
    {
      event: "PostToolUse",
      tools: "files__echo",
      command: `sed 's/.*"text":"secret".*/{"text":"masked"}/; t; d'`,
    },
  ];
  await place.write(CONFIG, JSON.stringify({ mcp: { files: inBox() }, hooks }));
  await place.write(
    ".config/harness/policy.toml",
    '[[rule]]\ndecision = "deny"\ntool = "files__wr*"\nreason = "not by it"\n',
  );
  const write = { path: "/tmp/by-server", text: "hello" };
  await using model = await startModel([
    {
      calls: [
        ["files__write", write],
        ["files__echo", { text: "twin" }],
        ["bash", { command: "ls /tmp/by-server" }],
        ["files__echo", { text: "forbidden" }],
        ["files__echo", { text: "secret" }],
      ],
    },
    DONE,
  ]);
  const ran = await harness(place, ["run", "--json", ...model.flags, "change it"]);
  const [denied, twin, look, vetoed, masked] = resultsIn(model.asked()[1]);
  assert.match(denied ?? "", /not by it/, ran.stderr + ran.stdout);
  assert.equal(twin, "twin");
  assert.match(look ?? "", /No such file/);
  assert.match(vetoed ?? "", /^Refused by a hook: the hook watch/);
  assert.match(masked ?? "", /^masked(?:\n|$)/);
  assert.equal(finishedOf(ran).denials.length, 2);
});

test("a server that dies is reported once, and the run continues without it", { skip }, async () => {
  await using place = await served({ files: inBox("dies-at-start"), gone: { command: "no-such-program" } });
  await using model = await startModel([{ calls: [["read_file", { path: "a.txt" }]] }, DONE]);
  const ran = await harness(place, ["run", "--json", ...model.flags, "what is in a.txt?"]);
  assert.equal(ran.code, 0, ran.stderr);
  assert.match(resultsIn(model.asked()[1])[0] ?? "", /a/);
  const notices = noticesOf(ran).filter((text) =>
    text.includes("MCP server files and its tools are not available"),
  );
  assert.equal(notices.length, 1, noticesOf(ran).join("\n"));
  assert.match(notices[0] ?? "", /exit code 3/);
  assert.match((await harness(place, ["mcp", "logs", "files"])).stdout, /no licence␛\[31m found/);
});

test("mcp test tries a server in a box and shows the verdicts of its tools", { skip }, async () => {
  await using place = await served({ files: inBox() });
  const ran = await harness(place, ["mcp", "test", "files", "--json"]);
  assert.equal(ran.code, 0, ran.stderr);
  const { up, tools } = JSON.parse(ran.stdout) as {
    readonly up: boolean;
    readonly tools: readonly {
      readonly name: string;
      readonly decision: string;
      readonly contained: boolean;
    }[];
  };
  assert.ok(up);
  assert.deepEqual(
    tools.find(({ name }) => name === "files__echo"),
    { name: "files__echo", description: "Says it again.", decision: "ask", contained: true, held: false },
  );
  const gone = await harness(place, ["mcp", "test", "nothing"]);
  assert.deepEqual([gone.code, /there is no server with that name/.test(gone.stderr)], [2, true]);
});

test("a project's server starts once it is trusted, in the box and never on the host", { skip }, async () => {
  const both = {
    mcpServers: { files: inBox(), outside: { command: "touch", args: ["/tmp/outside"], sandbox: false } },
  };
  await using place = await household({ "mcp-server.ts": FIXTURE, ".mcp.json": JSON.stringify(both) });
  await using model = await startModel([DONE, DONE]);
  const before = await harness(place, ["run", "--json", ...model.flags, "hello there"]);
  assert.equal(before.code, 0, before.stderr);
  assert.ok(!toolsIn(model.asked()[0]).some((name) => name.startsWith("files__")));
  const shown = await harness(place, ["trust", "--show"]);
  assert.match(
    shown.stdout,
    /starts in every box, as the MCP server files: \["node","mcp-server.ts","good"\]/,
  );
  assert.match(shown.stdout, /outside is ignored/);
  await trustAll(place);
  const after = await harness(place, ["run", "--json", ...model.flags, "hello there"]);
  assert.equal(after.code, 0, after.stderr);
  assert.ok(toolsIn(model.asked()[1]).includes("files__echo"), noticesOf(after).join("\n"));
  assert.match(noticesOf(after).join("\n"), /outside .* is left out: a project's server runs in the box/);
});

test(
  "a server on the host is refused with nobody there, waits for approval when parked, and runs by a rule",
  { skip },
  async () => {
    await using place = await household({ "a.txt": "a\n" });
    const server = await place.write("mcp-server.ts", FIXTURE);
    const out = { command: [process.execPath, server, "good"], sandbox: false };
    await place.write(CONFIG, JSON.stringify({ mcp: { out } }));
    const file = place.at("by-host");
    const call: Said = { calls: [["out__write", { path: file, text: "hello" }]] };
    await using model = await startModel([call, DONE, call, DONE, call, DONE]);
    const refused = await harness(place, ["run", "--json", ...model.flags, "change it"]);
    assert.deepEqual(
      finishedOf(refused).denials.map(({ rule }) => rule),
      ["tool.host"],
      refused.stderr,
    );
    assert.ok(!existsSync(file));
    const parked = await harness(place, ["run", "--json", "--on-ask", "park", ...model.flags, "change it"]);
    assert.equal(parked.code, 7, parked.stderr + parked.stdout);
    assert.ok(!existsSync(file));
    const approved = await harness(place, ["approve", finishedOf(parked).session, "--once"]);
    assert.deepEqual([approved.code, await place.read("by-host")], [0, "hello"], approved.stderr);
    await rm(file);
    await place.write(
      ".config/harness/policy.toml",
      '[[rule]]\ndecision = "allow"\ntool = "out__*"\nreason = "mine"\n',
    );
    const ruled = await harness(place, ["run", "--json", ...model.flags, "change it"]);
    assert.deepEqual([ruled.code, await place.read("by-host")], [0, "hello"], ruled.stderr);
  },
);

test(
  "a chat has the tools from its first request on, and also in the box of another mode",
  { skip: noTerminal || skip },
  async () => {
    await using place = await served({ files: inBox() });
    await using model = await startModel((chat): Said => {
      const { role, content } = chat.messages.at(-1) ?? { role: "", content: "" };
      if (role === "tool") return { text: `It said: ${content}` };
      return content.startsWith("echo") ? { calls: [["files__echo", { text: content }]] } : { text: "hello" };
    });
    await using terminal = onTerminal(place, model.flags, {});
    await terminal.until(/harness> $/);
    terminal.type("hi\r");
    await terminal.until(AGAIN);
    assert.ok(toolsIn(model.asked()[0]).includes("files__echo"));
    terminal.type("/tools\r");
    assert.match(await terminal.until(AGAIN), /files__echo/);
    terminal.type("/mode danger-full-access\r");
    await terminal.until(AGAIN);
    terminal.type("echo there\r");
    assert.match(await terminal.until(AGAIN), /It said: echo there/);
    assert.ok(toolsIn(model.asked().at(-1)).includes("files__echo"));
  },
);
