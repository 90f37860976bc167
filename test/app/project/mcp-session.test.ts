import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import path from "node:path";
import test from "node:test";
import { McpSession } from "../../../src/app/project/mcp-session.ts";
import { HarnessRequests } from "../../../src/app/run/session-grants.ts";
import { hostFrom } from "../../../src/app/host.ts";
import { mcpServers } from "../../../src/config/mcp-settings.ts";
import { DEFAULTS } from "../../../src/config/settings-schema.ts";
import type { EventBody } from "../../../src/core/events.ts";
import type { AnyTool, Facts, ToolResult } from "../../../src/core/tool.ts";
import { type FakeBox, fakeBox } from "../../fakes/box.ts";
import type { FakeCommand } from "../../fakes/commands.ts";
import { startMcpWeb } from "../../fakes/mcp-web.ts";
import { converse } from "../../fixtures/mcp-server.ts";
import { type Scratch, scratch } from "../../fixtures/scratch.ts";
import { until } from "../../fixtures/until.ts";

const FIXTURE = path.join(import.meta.dirname, "../../fixtures/mcp-server.ts");
const LIVE = new AbortController().signal;

/** The server of the fixtures as a command of a box. */
const server: FakeCommand = async ({ words, input, out, err }) => {
  const { promise: exited, resolve } = Promise.withResolvers<number>();
  const take = converse(words[1] ?? "good", {
    say: (line) => void out(`${line}\n`),
    raw: (text) => void out(text),
    note: (text) => void err(`${text}\n`),
    exit: (code) => resolve(code),
  });
  const reading = async (): Promise<number> => {
    for await (const bytes of input)
      for (const line of Buffer.from(bytes).toString().trim().split("\n")) take(line);
    return 0;
  };
  return Promise.race([exited, reading()]);
};

interface Opened extends AsyncDisposable {
  readonly session: McpSession;
  readonly box: FakeBox;
  readonly notices: string[];
  readonly tool: (name: string) => AnyTool;
}

interface Given {
  readonly isOwn?: boolean;
  readonly env?: Readonly<Record<string, string>>;
  readonly domains?: readonly string[];
}

const warn = (): void => undefined;

async function opened(place: Scratch, servers: object, given: Given = {}): Promise<Opened> {
  const { isOwn = true, env = {}, domains = [] } = given;
  const told: EventBody[] = [];
  const notices: string[] = [];
  const emit = (event: EventBody): void => {
    told.push(event);
    if (event.type === "notice") notices.push(event.text);
  };
  const host = hostFrom({ HOME: place.path, PATH: process.env["PATH"], ...env });
  const workspace = place.at("work");
  const settings = DEFAULTS;
  const box = fakeBox({ workspace, commands: { server } });
  const requests = new HarnessRequests({ host, settings, workspace, domains: () => domains, emit, warn });
  const plans = Object.entries(mcpServers.parse(servers)).map(([name, each]) => ({
    name,
    origin: "here",
    isOwn,
    settings: each,
  }));
  const parts = { host, settings, workspace, box: () => Promise.resolve(box), requests, emit };
  const session = new McpSession(parts, plans);
  await session.ready();
  return {
    session,
    box,
    notices,
    tool: (name) => {
      const found = session.tools().find((each) => each.name === name);
      assert.ok(found !== undefined, `${name} is not there: ${notices.join("; ")}`);
      return found;
    },
    [Symbol.asyncDispose]: async () => {
      await session[Symbol.asyncDispose]();
      await requests[Symbol.asyncDispose]();
    },
  };
}

const namesOf = ({ session }: Opened): readonly string[] => session.tools().map(({ name }) => name);

interface Called {
  readonly facts: Facts;
  readonly result: ToolResult;
}

async function called({ box, tool }: Opened, name: string, args: unknown): Promise<Called> {
  const prepared = tool(name).prepare(args);
  assert.ok(prepared.kind === "prepared", JSON.stringify(prepared));
  const { facts, run } = prepared.state();
  return { facts, result: await run(() => Promise.resolve(box), LIVE) };
}

test("a call to a server in the box is judged as a program in the box, and its arguments are checked against the schema", async () => {
  await using place = await scratch();
  await using files = await opened(place, { files: { command: "server" } });
  const { facts, result } = await called(files, "files__echo", { text: "hello", how: "loud" });
  assert.deepEqual([facts.program, facts.hosts, result], ["box", [], { kind: "ok", text: "hello" }]);
  for (const [args, issue] of [
    [{}, "must have required property 'text'"],
    [{ text: 7 }, "text: must be string"],
    [{ text: "a", times: 0 }, "times: must be >= 1"],
    [{ text: "a", how: "soft" }, 'how: must be equal to one of the allowed values: ["loud","quiet"]'],
    [{ text: "a", more: 1 }, 'must NOT have additional properties: "more"'],
    ["text", "must be object"],
  ] as const) {
    const prepared = files.tool("files__echo").prepare(args);
    assert.deepEqual(prepared.kind === "invalid" && prepared.issues, [issue]);
  }
  assert.equal((await called(files, "files__fail", undefined)).result.kind, "failed");
});

test("the tool list stays the same object until a tool is added", async () => {
  await using place = await scratch();
  await using files = await opened(place, { files: { command: "server" } });
  const before = files.session.tools();
  assert.equal(files.session.tools(), before);
  await called(files, "files__grow", {});
  await until(() => namesOf(files).includes("files__grown1"));
  assert.notEqual(files.session.tools(), before);
});

test("a server that dies loses its tools, and the other one keeps its own", async () => {
  await using place = await scratch();
  await using both = await opened(place, {
    files: { command: "server", tools: { allow: ["die"] } },
    other: { command: "server", tools: { allow: ["echo"] } },
  });
  assert.deepEqual(namesOf(both), ["files__die", "other__echo", "mcp_resource", "mcp_prompt"]);
  const { result } = await called(both, "files__die", {});
  assert.equal(result.kind, "failed");
  assert.ok(!namesOf(both).includes("files__die"));
  assert.equal((await called(both, "other__echo", { text: "still" })).result.text, "still");
  assert.equal(
    both.notices.filter((text) => text.includes("files and its tools are not available")).length,
    1,
  );
});

test("a server with a missing variable is left out with a notice, and the others start", async () => {
  await using place = await scratch();
  await using files = await opened(
    place,
    { a: { command: "server", env: { T: "${NOT_SET}" } }, b: { command: "server", env: { T: "${SET}" } } },
    { env: { SET: "yes" } },
  );
  assert.match(
    files.notices.join(),
    /^the MCP server a \(here\) is left out: variable is not set here: NOT_SET/,
  );
  assert.ok(namesOf(files).includes("b__echo"));
  assert.deepEqual(files.box.asked[0]?.env, { T: "yes" });
});

const rewriting = (on_change: string): object => ({
  files: { command: ["server", "rewrites"], on_change },
});

test("a server's stderr is kept across its starts and after the run", async () => {
  await using place = await scratch();
  {
    await using files = await opened(place, { files: { command: ["server", "dies-at-start"] } });
    await until(() => files.box.asked.length === 2);
    await until(() => files.session.served[0]?.errors().split("licence").length === 3);
  }
  const log = await place.read(".local/state/harness/mcp/logs/files.log");
  assert.equal(log, "no licence\u001b[31m found\n".repeat(2));
});

test("a changed description is reported once, and with leave-out its tool is hidden until it is accepted", async () => {
  await using place = await scratch();
  {
    await using first = await opened(place, rewriting("warn"));
    assert.deepEqual(first.notices, []);
    await called(first, "files__echo", { text: "a" });
    await until(() => first.notices.length > 0);
    assert.deepEqual(first.notices, [
      "the MCP server files describes tools differently than before: files__echo; harness mcp test files shows them",
    ]);
    assert.match(first.tool("files__echo").description, /sends it to me/);
  }
  // What it says at its start is again another thing than what was kept.
  await using next = await opened(place, rewriting("leave-out"));
  assert.match(next.notices.join(), /left out until you accept them: harness mcp test files --accept/);
  assert.ok(!namesOf(next).includes("files__echo"));
  const [served] = next.session.served;
  assert.ok(served !== undefined);
  await served.pins.keep(served.catalogue.tools);
  await using last = await opened(place, rewriting("leave-out"));
  assert.ok(namesOf(last).includes("files__echo"));
});

test("hostile tool lists yield a bounded number of tools that can all be offered", async () => {
  await using place = await scratch();
  const lists = ["lies", "injects", "twice", "names", "thousands", "verbose"];
  const servers = lists.map((each) => [each, { command: ["server", each] }]);
  await using files = await opened(place, Object.fromEntries(servers) as object);
  for (const { name, description } of files.session.tools()) {
    assert.match(name, /^[A-Za-z0-9_-]{1,64}$/);
    assert.doesNotMatch(description, /[\u0000-\u0008\u001b\u202e\u200b]/);
  }
  assert.equal(new Set(namesOf(files)).size, namesOf(files).length);
  for (const text of files.notices) assert.ok(text.length <= 401, text);
  // No pattern of a server's is tried on anything.
  const slow = files.tool("lies__slow_pattern").prepare({ a: `${"a".repeat(60)}!` });
  assert.equal(slow.kind, "prepared");
  assert.doesNotMatch((await called(files, "injects__look", {})).result.text, /[\u001b\u202e\u200b]/);
});

const onHost = (command: readonly string[], env = {}): object => ({ command, env, sandbox: false });

test("on the host a server gets only its own variables, and a program from the workspace is not started there", async () => {
  await using place = await scratch();
  await place.write("work/server", "#!/bin/sh\ntouch was-run\n", 0o755);
  await using files = await opened(
    place,
    {
      out: onHost([process.execPath, FIXTURE, "good"], { MINE: "yes" }),
      inside: onHost([place.at("work/server")]),
      relative: onHost(["./server"]),
    },
    { env: { SECRET_OF_MINE: "no", PATH: `${place.at("work/bin")}:${process.env["PATH"]}` } },
  );
  const { facts, result } = await called(files, "out__env", { name: "MINE" });
  assert.deepEqual([facts.program, result.text], ["host", "yes"]);
  assert.equal((await called(files, "out__env", { name: "SECRET_OF_MINE" })).result.text, "(unset)");
  assert.equal((await called(files, "out__env", { name: "PATH" })).result.text, process.env["PATH"]);
  assert.deepEqual(files.box.asked, []);
  await assert.rejects(place.read("was-run"));
  assert.ok(!namesOf(files).some((name) => /^(?:inside|relative)__/.test(name)));
});

test("a user's server at an address gets its headers, and a call names its host and port", async () => {
  await using place = await scratch();
  await using web = await startMcpWeb();
  const servers = { web: { url: web.url, headers: { Authorization: "Bearer ${KEY}" } } };
  await using files = await opened(place, servers, { env: { KEY: "k1" } });
  const { facts, result } = await called(files, "web__echo", { text: "over http" });
  assert.deepEqual([facts.program, facts.hosts, result.text], [undefined, [web.host], "over http"]);
  assert.ok(web.heard.every(({ authorization }) => authorization === "Bearer k1"));
});

test("a project's server at an address is contacted only if the address is granted", async () => {
  await using place = await scratch();
  await using web = await startMcpWeb();
  const servers = { web: { url: web.url } };
  await using refused = await opened(place, servers, { isOwn: false });
  assert.deepEqual(namesOf(refused), []);
  assert.match(refused.notices.join(), /is not granted/);
  assert.equal(web.heard.length, 0);
  await using granted = await opened(place, servers, { isOwn: false, domains: [web.host] });
  assert.ok(namesOf(granted).includes("web__echo"));
});

test("redirects are not followed, and no header is sent to their target", async () => {
  await using place = await scratch();
  await using other = await startMcpWeb();
  await using web = await startMcpWeb((_, response) => {
    response.writeHead(307, { location: other.url }).end();
    return true;
  });
  const servers = { web: { url: web.url, headers: { Authorization: "Bearer k1" } } };
  await using files = await opened(place, servers);
  assert.deepEqual(namesOf(files), []);
  assert.ok(web.heard.length > 0);
  assert.equal(other.heard.length, 0);
});

for (const [what, answer, why] of [
  ["without an end", endless, /the server's answer is larger than 16 MiB/],
  [
    "that are not MCP",
    (response: ServerResponse) => void response.writeHead(200).end("<html>"),
    /is not available|are not available/,
  ],
  ["truncated in the middle", cut, /are not available/],
] as const)
  test(`answers ${what} count as a missing server and are reported`, async () => {
    await using place = await scratch();
    await using web = await startMcpWeb((_, response) => {
      answer(response);
      return true;
    });
    await using files = await opened(place, { web: { url: web.url, init_timeout: "4s" } });
    assert.deepEqual(namesOf(files), []);
    assert.match(files.notices.join(), why);
  });

function endless(response: ServerResponse): void {
  response.writeHead(200, { "content-type": "application/json" });
  const piece = Buffer.alloc(2 ** 20, 32);
  const more = (): void => {
    while (!response.destroyed && response.write(piece));
    if (!response.destroyed) response.once("drain", more);
  };
  more();
}

function cut(response: ServerResponse): void {
  response.writeHead(200, { "content-type": "application/json" });
  response.write('{"jsonrpc":');
  setImmediate(() => response.destroy());
}
