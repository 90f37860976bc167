import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync } from "node:fs";
import path from "node:path";
import { Readable, Writable } from "node:stream";
import test from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import {
  client,
  type ClientConnection,
  type ContentBlock,
  methods,
  ndJsonStream,
  type PermissionOptionKind,
  PROTOCOL_VERSION,
  type RequestPermissionRequest,
  type SessionNotification,
  type SessionUpdate,
} from "@agentclientprotocol/sdk";
import { COMPILED } from "../fixtures/cli.ts";
import { overNetwork } from "../fixtures/engine-over-network.ts";
import { skip } from "../fixtures/engine.ts";
import { removeCopies } from "../fixtures/kept-copies.ts";
import { boxesOver } from "../fixtures/standing-boxes.ts";
import type { Scratch } from "../fixtures/scratch.ts";
import { household } from "./box-command.ts";
import { ROOT } from "./package.ts";
import {
  type AskedChat,
  auditLines,
  finishedOf,
  harness,
  type Model,
  type Replies,
  type Said,
  startModel,
} from "./run-command.ts";

/** `harness acp` as an editor starts it, with the protocol's own SDK as client, and a model that follows the prompt. */

const FILES = { "a.txt": "one\ntwo\n" };

/** Runs what a person asks to be run, writes what they ask to be written; anything else is answered at once. */
const obeys: Replies = (chat: AskedChat): Said => {
  const { role, content } = chat.messages.at(-1) ?? { role: "", content: "" };
  if (role === "tool") return { text: `It said: ${content.split("\n")[0]}` };
  const command = /^run: (.*)$/m.exec(content)?.[1];
  if (command !== undefined) return { text: "I run it.", calls: [["bash", { command }]] };
  const file = /^write: (\S+)$/m.exec(content)?.[1];
  if (file !== undefined) return { calls: [["write_file", { path: file, content: "written\n" }]] };
  return { text: `You said: ${content.split("\n")[0]}` };
};

type Answer = (asked: RequestPermissionRequest) => PermissionOptionKind | "cancelled";

interface Editor extends AsyncDisposable {
  readonly place: Scratch;
  readonly model: Model;
  readonly agent: ClientConnection["agent"];
  readonly updates: SessionUpdate[];
  readonly asked: RequestPermissionRequest[];
  /** Requests of the client's own files and terminals. */
  readonly used: string[];
  readonly child: ReturnType<typeof spawn>;
  readonly ended: Promise<number | null>;
  answer: Answer;
}

/** A test that fails before it puts the program away is ended all the same. */
const PATIENCE_MS = 180_000;

async function editing(flags: readonly string[] = [], given?: Scratch): Promise<Editor> {
  const place = given ?? (await household(FILES));
  const model = await startModel(obeys);
  const child = spawn(path.join(ROOT, "bin/harness"), ["acp", ...model.flags, ...flags], {
    cwd: place.path,
    env: { PATH: process.env["PATH"] ?? "", HOME: place.path, ...COMPILED },
    stdio: ["pipe", "pipe", "ignore"],
    timeout: PATIENCE_MS,
    killSignal: "SIGKILL",
  });
  const ended = once(child, "close").then(([code]) => code as number | null);
  const state = { answer: (() => "reject_once") as Answer };
  const updates: SessionUpdate[] = [];
  const asked: RequestPermissionRequest[] = [];
  const used: string[] = [];
  const stream = ndJsonStream(
    Writable.toWeb(child.stdin) as WritableStream<Uint8Array>,
    Readable.toWeb(child.stdout) as ReadableStream<Uint8Array>,
  );
  const connection = client({ name: "editor" })
    .onNotification(methods.client.session.update, ({ params }: { params: SessionNotification }) => {
      updates.push(params.update);
    })
    .onRequest(methods.client.session.requestPermission, ({ params }) => {
      asked.push(params);
      const said = state.answer(params);
      const option = params.options.find(({ kind }) => kind === said);
      return option === undefined
        ? { outcome: { outcome: "cancelled" } }
        : { outcome: { outcome: "selected", optionId: option.optionId } };
    })
    .onRequest("*", ({ method }) => {
      used.push(method);
      return {};
    })
    .connect(stream);
  const { agent } = connection;
  const hello = await agent.request(methods.agent.initialize, {
    protocolVersion: PROTOCOL_VERSION,
    clientCapabilities: { fs: { readTextFile: true, writeTextFile: true }, terminal: true },
  });
  assert.equal(hello.protocolVersion, PROTOCOL_VERSION);
  assert.equal(hello.agentInfo?.name, "harness");
  return {
    place,
    model,
    agent,
    updates,
    asked,
    used,
    child,
    ended,
    set answer(answer: Answer) {
      state.answer = answer;
    },
    [Symbol.asyncDispose]: async () => {
      child.stdin.end();
      await ended;
      await model[Symbol.asyncDispose]();
      await place[Symbol.asyncDispose]();
    },
  };
}

const begin = async ({ agent, place }: Editor): Promise<string> =>
  (await agent.request(methods.agent.session.new, { cwd: place.at("work"), mcpServers: [] })).sessionId;

const say = (
  { agent }: Editor,
  sessionId: string,
  text: string,
  more: readonly ContentBlock[] = [],
): Promise<{ stopReason: string }> =>
  agent.request(methods.agent.session.prompt, { sessionId, prompt: [{ type: "text", text }, ...more] });

const textOf = (updates: readonly SessionUpdate[]): string =>
  updates
    .map((each) =>
      each.sessionUpdate === "agent_message_chunk" && each.content.type === "text" ? each.content.text : "",
    )
    .join("");

const kindsOf = (updates: readonly SessionUpdate[]): readonly string[] =>
  updates.map((each) => each.sessionUpdate);

test(
  "an editor can ask, approve, see and undo changes, and everything happens in the box",
  { skip },
  async () => {
    await using editor = await editing();
    const { place, updates, asked } = editor;
    const id = await begin(editor);

    assert.deepEqual(await say(editor, id, "hello"), { stopReason: "end_turn" });
    assert.equal(textOf(updates), "You said: hello");
    assert.deepEqual(await boxesOver(place.at("work")), []);

    // Allowed once: it runs in the box, and is asked about again.
    editor.answer = () => "allow_once";
    updates.length = 0;
    await say(editor, id, "run: hostname > made.txt; id -u >> made.txt; cat made.txt");
    assert.equal(await place.read("work/made.txt"), "sandbox\n1000\n");
    assert.equal(asked.length, 1);
    assert.deepEqual(
      asked[0]?.options.map(({ kind }) => kind),
      ["allow_once", "allow_always", "reject_once"],
    );
    const call = updates.find((each) => each.sessionUpdate === "tool_call");
    assert.ok(call?.sessionUpdate === "tool_call");
    assert.deepEqual([call.kind, call.status], ["execute", "pending"]);
    assert.equal(asked[0]?.toolCall.toolCallId, call.toolCallId);
    const states = updates.flatMap((each) =>
      each.sessionUpdate === "tool_call_update" ? [each.status] : [],
    );
    assert.deepEqual(states, ["in_progress", "completed"]);
    assert.match(JSON.stringify(updates), /sandbox\\n1000/);
    await say(editor, id, "run: hostname > made.txt; id -u >> made.txt; cat made.txt");
    assert.equal(asked.length, 2);

    // Rejected: nothing is there, and the model is told.
    editor.answer = () => "reject_once";
    updates.length = 0;
    await say(editor, id, "run: echo no > refused.txt");
    assert.ok(!existsSync(place.at("work/refused.txt")));
    assert.match(textOf(updates), /It said: The user said no/);
    assert.match(JSON.stringify(updates), /"status":"failed"/);
    // An invalid answer is not a yes.
    editor.answer = () => "cancelled";
    await say(editor, id, "run: echo none > refused.txt");
    assert.ok(!existsSync(place.at("work/refused.txt")));

    // Allowed for the session: not asked again.
    editor.answer = () => "allow_always";
    asked.length = 0;
    await say(editor, id, "run: echo again >> always.txt");
    await say(editor, id, "run: echo again >> always.txt");
    assert.equal(asked.length, 1);
    assert.equal(await place.read("work/always.txt"), "again\nagain\n");

    // What the policy denies is not asked about, whatever the person would say.
    asked.length = 0;
    updates.length = 0;
    await say(editor, id, "run: rm -rf /; touch denied.txt");
    await say(editor, id, "write: .git/hooks/pre-commit");
    assert.equal(asked.length, 0);
    assert.ok(
      !existsSync(place.at("work/denied.txt")) && !existsSync(place.at("work/.git/hooks/pre-commit")),
    );
    assert.match(textOf(updates), /Denied by the policy/);

    // An edit is shown as a diff at its place.
    updates.length = 0;
    await say(editor, id, "write: new.txt");
    assert.equal(await place.read("work/new.txt"), "written\n");
    const edit = updates.find((each) => each.sessionUpdate === "tool_call");
    assert.ok(edit?.sessionUpdate === "tool_call");
    const at = place.at("work/new.txt");
    assert.deepEqual(edit.locations, [{ path: at }]);
    assert.deepEqual(edit.content, [{ type: "diff", path: at, oldText: null, newText: "written\n" }]);

    // Nothing of the editor's own was used, and all of it stands in the audit.
    assert.deepEqual(editor.used, []);
    const lines = auditLines(editor.place);
    const decided = lines.filter(({ kind }) => kind === "decision");
    assert.ok(
      decided.some(
        ({ command, runs, by }) => command === "echo no > refused.txt" && runs === false && by === "person",
      ),
    );
    assert.ok(decided.some(({ decision, runs }) => decision === "deny" && runs === false));
    assert.ok(lines.every(({ session }) => session === undefined || session === id));

    // The editor leaves: the box goes; undo takes back what was done.
    editor.child.stdin?.end();
    assert.equal(await editor.ended, 0);
    assert.deepEqual(await boxesOver(place.at("work")), []);
    const undone = await harness(place, ["undo", id]);
    assert.equal(undone.code, 0, undone.stderr);
    assert.deepEqual(readdirSync(place.at("work")), ["a.txt"]);
  },
);

test("a cancelled turn ends with its command, and the session continues", { skip }, async () => {
  await using editor = await editing();
  const { place, agent } = editor;
  editor.answer = () => "allow_once";
  const id = await begin(editor);
  // Right after it, before anything of it has started: the first of a session, and a later one.
  for (const text of ["run: touch early.txt", "run: touch early.txt again"]) {
    const early = say(editor, id, text);
    await agent.notify(methods.agent.session.cancel, { sessionId: id });
    assert.deepEqual(await early, { stopReason: "cancelled" });
  }
  assert.ok(!existsSync(place.at("work/early.txt")));
  const turn = say(editor, id, "run: echo begun > begun.txt; sleep 300; echo late > late.txt");
  while (!existsSync(place.at("work/begun.txt"))) await sleep(20);
  await assert.rejects(say(editor, id, "hello"), /already running/);
  await agent.notify(methods.agent.session.cancel, { sessionId: id });
  assert.deepEqual(await turn, { stopReason: "cancelled" });
  assert.deepEqual(await say(editor, id, "hello"), { stopReason: "end_turn" });
  assert.ok(!existsSync(place.at("work/late.txt")));
});

test(
  "a mode is enforced by the box, cannot be loosened beyond the first one, and hooks apply",
  { skip },
  async () => {
    const own = await household(FILES);
    const command = "grep -q forbidden && exit 2; true";
    const hooks = [{ event: "PreToolUse", tools: "bash", name: "watch", command }];
    await own.write(".config/harness/config.json", JSON.stringify({ hooks }));
    await using editor = await editing([], own);
    const { agent, place } = editor;
    editor.answer = () => "allow_once";
    const opened = await agent.request(methods.agent.session.new, { cwd: place.at("work"), mcpServers: [] });
    const { sessionId, modes } = opened;
    assert.deepEqual(
      [modes?.currentModeId, modes?.availableModes.map(({ id }) => id)],
      ["workspace-write", ["read-only", "workspace-write"]],
    );
    await assert.rejects(
      agent.request(methods.agent.session.setMode, { sessionId, modeId: "danger-full-access" }),
      /the available modes are/,
    );
    await agent.request(methods.agent.session.setMode, { sessionId, modeId: "read-only" });
    await say(editor, sessionId, "write: w.txt");
    await say(editor, sessionId, "run: touch w.txt");
    assert.ok(!existsSync(place.at("work/w.txt")));
    await agent.request(methods.agent.session.setMode, { sessionId, modeId: "workspace-write" });
    await say(editor, sessionId, "write: w.txt");
    assert.ok(existsSync(place.at("work/w.txt")));
    editor.updates.length = 0;
    await say(editor, sessionId, "run: touch forbidden");
    assert.ok(!existsSync(place.at("work/forbidden")));
    assert.match(textOf(editor.updates), /It said: Refused by a hook: the hook watch/);
    await say(editor, sessionId, "run: touch allowed");
    assert.ok(existsSync(place.at("work/allowed")));
  },
);

test(
  "two sessions in one folder take turns, and one can be loaded with its conversation",
  { skip },
  async () => {
    const place = await household(FILES);
    await using editor = await editing([], place);
    const { agent, updates } = editor;
    editor.answer = () => "allow_once";
    const [one, two] = [await begin(editor), await begin(editor)];
    await say(editor, one, "run: echo 1 >> both.txt");
    await say(editor, two, "run: echo 2 >> both.txt");
    await say(editor, one, "run: echo 3 >> both.txt");
    assert.equal(await place.read("work/both.txt"), "1\n2\n3\n");
    const { sessions } = await agent.request(methods.agent.session.list, { cwd: place.at("work") });
    assert.deepEqual(sessions.map(({ sessionId }) => sessionId).toSorted(), [one, two].toSorted());
    assert.match(sessions[0]?.title ?? "", /^run: echo/);
    await agent.request(methods.agent.session.close, { sessionId: one });
    await assert.rejects(say(editor, one, "hello"), /no such session is open/);

    updates.length = 0;
    await agent.request(methods.agent.session.load, {
      sessionId: one,
      cwd: place.at("work"),
      mcpServers: [],
    });
    assert.deepEqual(kindsOf(updates).slice(0, 4), [
      "user_message_chunk",
      "agent_message_chunk",
      "tool_call",
      "tool_call_update",
    ]);
    updates.length = 0;
    await say(editor, one, "still there?");
    assert.match(textOf(updates), /You said: still there\?/);
    assert.ok((editor.model.asked().at(-1)?.messages.length ?? 0) > 6);
  },
);

test("a session of a remote engine is reopened where its copy is", { skip }, async () => {
  await using far = await overNetwork();
  const place = await household(FILES);
  await using model = await startModel(obeys);
  const words = ["run", "--json", ...model.flags, "--engine", far.host, "run: echo there > made.txt"];
  const sessionId = finishedOf(await harness(place, words)).session;
  await using editor = await editing([], place);
  editor.answer = () => "allow_once";
  await editor.agent.request(methods.agent.session.load, {
    sessionId,
    cwd: place.at("work"),
    mcpServers: [],
  });
  editor.updates.length = 0;
  await say(editor, sessionId, "run: cat made.txt");
  assert.match(textOf(editor.updates), /It said: there/);
  editor.child.stdin?.end();
  await editor.ended;
  await removeCopies(place);
});

test(
  "an empty session can be reopened by the process that created it, and an unknown one has its own error code",
  { skip },
  async () => {
    await using editor = await editing(["--mode", "workspace-write"]);
    const { agent, place, updates } = editor;
    const load = (sessionId: string) =>
      agent.request(methods.agent.session.load, { sessionId, cwd: place.at("work"), mcpServers: [] });
    const sessionId = await begin(editor);
    assert.equal((await load(sessionId)).modes?.currentModeId, "workspace-write");
    await say(editor, sessionId, "hello");
    assert.match(textOf(updates), /You said: hello/);
    const [listed] = (await agent.request(methods.agent.session.list, { cwd: place.at("work") })).sessions;
    assert.equal(listed?.sessionId, sessionId);
    const unknown = { code: -32_002, data: { sessionId: "nope" } };
    await assert.rejects(load("nope"), { code: -32_002, message: /nope.*no session has this id/ });
    await assert.rejects(say(editor, "nope", "hello"), unknown);
    // Of another folder nothing is taken.
    const other = await begin(editor);
    const elsewhere = { sessionId: other, cwd: place.path, mcpServers: [] };
    await assert.rejects(agent.request(methods.agent.session.load, elsewhere), { code: -32_002 });
  },
);

test(
  "unsupported offers of the editor are reported and not used, and files are taken as text",
  { skip },
  async () => {
    await using editor = await editing();
    const { agent, place, updates } = editor;
    const marker = place.at("started");
    await place.write(".claude/commands/greet.md", "---\ndescription: Greets.\n---\nSay hello to $1.\n");
    const { sessionId } = await agent.request(methods.agent.session.new, {
      cwd: place.at("work"),
      mcpServers: [{ name: "evil", command: "/bin/sh", args: ["-c", `touch ${marker}`], env: [] }],
    });
    await say(editor, sessionId, "look at ", [
      { type: "resource_link", uri: `file://${place.at("work/a.txt")}`, name: "a.txt" },
      { type: "resource", resource: { uri: "file:///b.txt", text: "held text" } },
    ]);
    assert.match(textOf(updates), /The editor.s MCP servers are not used/);
    assert.deepEqual(
      updates.flatMap((each) =>
        each.sessionUpdate === "available_commands_update"
          ? each.availableCommands.map(({ name }) => name)
          : [],
      ),
      ["greet"],
    );
    await say(editor, sessionId, "/greet Ann");
    assert.match(textOf(updates), /\/greet sends the text in .*You said: Say hello to Ann\./s);
    assert.ok(!existsSync(marker));
    const asked = JSON.stringify(editor.model.asked().at(-1)?.messages);
    assert.ok(asked.includes(place.at("work/a.txt")) && asked.includes("held text"), asked);
    await assert.rejects(
      say(editor, sessionId, "see", [{ type: "image", data: "AA==", mimeType: "image/png" }]),
      /only text/,
    );
    await assert.rejects(
      agent.request(methods.agent.session.new, { cwd: "relative", mcpServers: [] }),
      /absolute/,
    );
    await assert.rejects(
      agent.request(methods.agent.session.new, { cwd: "/nowhere/at/all", mcpServers: [] }),
      /no folder/,
    );
  },
);

test("a missing model is an error of the prompt, and the session continues", { skip }, async () => {
  await using editor = await editing();
  const id = await begin(editor);
  await editor.model[Symbol.asyncDispose]();
  await assert.rejects(say(editor, id, "hello"), /./);
  await assert.rejects(say(editor, id, "hello again"), /./);
});

test(
  "garbage and long lines end nothing, stdout contains only messages, and SIGTERM ends the program in order",
  { skip },
  async () => {
    await using place = await household(FILES);
    await using model = await startModel(obeys);
    const child = spawn(path.join(ROOT, "bin/harness"), ["acp", ...model.flags], {
      cwd: place.at("work"),
      env: { PATH: process.env["PATH"] ?? "", HOME: place.path, ...COMPILED },
      timeout: PATIENCE_MS,
      killSignal: "SIGKILL",
    });
    const ended = once(child, "close").then(([code]) => code as number | null);
    await using _ = {
      [Symbol.asyncDispose]: async () => {
        child.kill("SIGKILL");
        await ended;
      },
    };
    const texts = { out: "" };
    child.stdout.on("data", (chunk: Buffer) => (texts.out += chunk.toString()));
    const messages = () =>
      texts.out
        .split("\n")
        .slice(0, -1)
        .map((line) => JSON.parse(line) as Record<string, unknown>);
    const put = (message: object | string): void =>
      void child.stdin.write(typeof message === "string" ? message : `${JSON.stringify(message)}\n`);
    const answer = async (id: number): Promise<Record<string, unknown>> => {
      for (;;) {
        const found = messages().find((each) => each["id"] === id);
        if (found !== undefined) return found;
        assert.deepEqual([child.exitCode, child.signalCode], [null, null]);
        await sleep(10);
      }
    };
    put("garbage\n[]\n17\n\u0000\n{}\n");
    const deep = "[".repeat(100_000) + "]".repeat(100_000);
    put(`{"jsonrpc":"2.0","id":${deep},"method":"session/list"}\n`);
    for (let n = 0; n < 9; n += 1) put("z".repeat(1024 * 1024));
    put("\n");
    put({ jsonrpc: "2.0", id: 1, method: "initialize", params: { protocolVersion: 1 } });
    put({ jsonrpc: "2.0", id: 2, method: "no/such", params: {} });
    put({ jsonrpc: "2.0", id: 3, method: "session/new", params: { cwd: 7 } });
    put({ jsonrpc: "2.0", id: 4, method: "session/prompt", params: { sessionId: "x", prompt: [] } });
    for (let id = 100; id < 200; id += 1)
      put({ jsonrpc: "2.0", id, method: "session/new", params: { cwd: place.at("work"), mcpServers: [] } });
    const opened = await Promise.all(Array.from({ length: 100 }, (_, at) => answer(at + 100)));
    assert.equal(opened.filter((each) => "result" in each).length, 32);
    const codes = await Promise.all(
      [2, 3, 4].map(async (id) => ((await answer(id))["error"] as { code: number }).code),
    );
    assert.deepEqual(codes, [-32_601, -32_602, -32_002]);
    assert.match(JSON.stringify(messages().filter(({ id }) => id === null)), /larger than 8 MiB/);
    assert.ok(messages().every((each) => each["jsonrpc"] === "2.0"));
    child.kill("SIGTERM");
    assert.equal(await ended, 143);
  },
);

test("an editor that leaves without reading does not keep the program running", async () => {
  await using place = await household(FILES);
  // More than a pipe holds.
  await using model = await startModel(() => ({ text: "word ".repeat(400_000) }));
  const child = spawn(path.join(ROOT, "bin/harness"), ["acp", ...model.flags], {
    cwd: place.at("work"),
    env: { PATH: process.env["PATH"] ?? "", HOME: place.path, ...COMPILED },
    stdio: ["pipe", "pipe", "ignore"],
    timeout: PATIENCE_MS,
    killSignal: "SIGKILL",
  });
  const exited = once(child, "exit").then(([code]) => code as number | null);
  const put = (id: number, method: string, params: object): void =>
    void child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`);
  put(1, "initialize", { protocolVersion: 1 });
  put(2, "session/new", { cwd: place.at("work"), mcpServers: [] });
  const texts = { out: "" };
  for await (const chunk of child.stdout.iterator({ destroyOnReturn: false })) {
    texts.out += String(chunk);
    if (texts.out.includes('"sessionId"')) break;
  }
  const [, sessionId = ""] = /"sessionId":"(\w+)"/.exec(texts.out) ?? [];
  put(3, "session/prompt", { sessionId, prompt: [{ type: "text", text: "hello" }] });
  // It begins to come, and is left in the pipe.
  child.stdout.on("readable", () => undefined);
  while (child.stdout.readableLength < 10_000) {
    assert.deepEqual([child.exitCode, child.signalCode], [null, null]);
    await sleep(20);
  }
  child.stdin.end();
  assert.equal(await exited, 0);
});
