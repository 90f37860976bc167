import assert from "node:assert/strict";
import { PassThrough, Readable, Writable } from "node:stream";
import test from "node:test";
import {
  client,
  methods,
  ndJsonStream,
  PROTOCOL_VERSION,
  type SessionNotification,
  type SessionUpdate,
} from "@agentclientprotocol/sdk";
import { EXIT, HarnessError } from "../../src/core/errors.ts";
import type { EventBody } from "../../src/core/events.ts";
import {
  type AcpHost,
  type EditorLink,
  type EditorSession,
  serveAcp,
} from "../../src/extensions/acp-agent.ts";
import type { EditorCommand } from "../../src/extensions/acp-updates.ts";
import { runFinished } from "../fixtures/events.ts";

const FIX: EditorCommand = { name: "fix", description: "Mends\nit.", hint: "[file]" };
const SHIP: EditorCommand = { name: "git:ship", description: "Ships it.", hint: "" };
const HOOK: EventBody = { type: "hook", event: "Stop", hook: "h", owner: "user", did: "replaced", ms: 1 };
const FINISHED = runFinished({ reason: "why", answer: "other words" });

interface Fake {
  commands: () => Promise<readonly EditorCommand[]>;
  readonly prompts: string[];
  /** What a prompt shows. */
  events: readonly EventBody[];
  /** What a prompt, and the opening of an earlier session, waits for. */
  begins?: Promise<void>;
  readonly cancelled?: string[];
}

/** The protocol's own client over two pipes, with scripted sessions. */
async function editing(fake: Fake) {
  const [toAgent, toEditor] = [new PassThrough(), new PassThrough()];
  const begin = (folder: string, link: EditorLink): Promise<EditorSession> => {
    const state = { busy: false };
    return Promise.resolve({
      id: "s",
      workspace: folder,
      modes: ["read-only"],
      mode: () => "read-only",
      setMode: () => Promise.resolve(),
      busy: () => state.busy,
      prompt: async (text) => {
        state.busy = true;
        fake.prompts.push(text);
        for (const [at, body] of fake.events.entries()) link.show({ ...body, run: "r", seq: at + 1 });
        await fake.begins;
        state.busy = false;
        return { status: "done", reason: "" };
      },
      cancel: () => fake.cancelled?.push(fake.prompts.at(-1) ?? "nothing"),
      messages: () => [],
      commands: () => fake.commands(),
      close: () => Promise.resolve(),
    });
  };
  const host: AcpHost = {
    version: "1",
    begin,
    resume: async (_, folder, link, leave) => {
      await fake.begins;
      if (folder === "/other") throw new HarnessError(EXIT.usage, "it works elsewhere", "");
      await leave();
      return begin(folder, link);
    },
    list: () => Promise.resolve([]),
  };
  const write = (message: object): Promise<void> =>
    new Promise((resolve) => toEditor.write(`${JSON.stringify(message)}\n`, () => resolve()));
  const serving = serveAcp(host, { input: toAgent, write });
  const updates: SessionUpdate[] = [];
  const { agent } = client({ name: "editor" })
    .onNotification(methods.client.session.update, ({ params }: { params: SessionNotification }) => {
      updates.push(params.update);
    })
    .connect(
      ndJsonStream(
        Writable.toWeb(toAgent) as WritableStream<Uint8Array>,
        Readable.toWeb(toEditor) as ReadableStream<Uint8Array>,
      ),
    );
  await agent.request(methods.agent.initialize, { protocolVersion: PROTOCOL_VERSION });
  return {
    agent,
    updates,
    say: (text: string) =>
      agent.request(methods.agent.session.prompt, { sessionId: "s", prompt: [{ type: "text", text }] }),
    told: () =>
      updates.flatMap((each) =>
        each.sessionUpdate === "available_commands_update" ? [each.availableCommands] : [],
      ),
    [Symbol.asyncDispose]: async () => {
      serving.close();
      await serving.closed;
    },
  };
}

const begun = async (fake: Fake) => {
  const editor = await editing(fake);
  await editor.agent.request(methods.agent.session.new, { cwd: "/w", mcpServers: [] });
  return editor;
};

const NAMES = [
  { name: "fix", description: "Mends␊it.", input: { hint: "[file]" } },
  { name: "git:ship", description: "Ships it.", input: { hint: "arguments" } },
];

test("an editor gets the list of slash commands once, and again when it changes", async () => {
  const fake: Fake = { commands: () => Promise.resolve([FIX, SHIP]), prompts: [], events: [] };
  await using editor = await begun(fake);
  while (editor.told().length === 0) await new Promise(setImmediate);
  assert.deepEqual(editor.told(), [NAMES]);
  await editor.say("hello");
  assert.equal(editor.told().length, 1);
  fake.commands = () => Promise.resolve([SHIP]);
  await editor.say("hello again");
  assert.deepEqual(editor.told(), [NAMES, NAMES.slice(1)]);
  fake.commands = () => Promise.reject(new Error("no folder"));
  await editor.say("and again");
  assert.deepEqual(editor.told().at(-1), []);
  assert.deepEqual(fake.prompts, ["hello", "hello again", "and again"]);
  await editor.agent.request(methods.agent.session.load, { sessionId: "s", cwd: "/w", mcpServers: [] });
  fake.commands = () => Promise.resolve([FIX]);
  await editor.say("loaded");
  assert.deepEqual(editor.told().at(-1), NAMES.slice(0, 1));
});

test("without commands no list is sent", async () => {
  const fake: Fake = { commands: () => Promise.resolve([]), prompts: [], events: [] };
  await using editor = await begun(fake);
  await editor.say("hello");
  assert.deepEqual(editor.told(), []);
});

test("an answer replaced by a hook is shown after the original one", async () => {
  const fake: Fake = {
    commands: () => Promise.resolve([]),
    prompts: [],
    events: [{ type: "text", text: "first words" }, HOOK, FINISHED],
  };
  await using editor = await begun(fake);
  await editor.say("hello");
  const said = editor.updates.map((each) =>
    each.sessionUpdate === "agent_message_chunk" && each.content.type === "text" ? each.content.text : "",
  );
  assert.match(said.join(""), /^first words\n\n\[harness\] A hook replaced the answer .*\n\nother words$/s);
});

test("a cancel and another prompt right after a prompt find it running", async () => {
  const { promise: begins, resolve: go } = Promise.withResolvers<void>();
  const commands = (): Promise<readonly EditorCommand[]> => begins.then(() => []);
  const fake: Fake = { commands, prompts: [], events: [], begins, cancelled: [] };
  await using editor = await begun(fake);
  const first = editor.say("first");
  const cancelled = editor.agent.notify(methods.agent.session.cancel, { sessionId: "s" });
  const second = editor.say("second");
  const mode = editor.agent.request(methods.agent.session.setMode, { sessionId: "s", modeId: "read-only" });
  await assert.rejects(second, /already running in this session/);
  await assert.rejects(mode, /a prompt is still running/);
  await cancelled;
  assert.deepEqual([fake.prompts, fake.cancelled], [["first"], ["first"]]);
  go();
  assert.deepEqual(await first, { stopReason: "end_turn" });
  assert.deepEqual(await editor.say("third"), { stopReason: "end_turn" });
});

test("a session is opened only once at a time", async () => {
  const { promise: begins, resolve: go } = Promise.withResolvers<void>();
  const fake: Fake = { commands: () => Promise.resolve([]), prompts: [], events: [], begins };
  await using editor = await editing(fake);
  const load = (sessionId: string, cwd = "/w") =>
    editor.agent.request(methods.agent.session.load, { sessionId, cwd, mcpServers: [] });
  const first = load("s");
  await assert.rejects(load("s"), /already being opened/);
  const beside = load("other");
  go();
  await Promise.all([first, beside]);
  await load("s");
  await assert.rejects(load("s", "relative"), /absolute/);
  assert.deepEqual(await editor.say("hello"), { stopReason: "end_turn" });
});

test("a session that cannot be opened again as asked stays open as it is", async () => {
  const fake: Fake = { commands: () => Promise.resolve([]), prompts: [], events: [] };
  const editor = await editing(fake);
  const { session } = methods.agent;
  await editor.agent.request(session.new, { cwd: "/w", mcpServers: [] });
  await assert.rejects(
    editor.agent.request(session.load, { sessionId: "s", cwd: "/other", mcpServers: [] }),
    /it works elsewhere/,
  );
  await editor.say("still here");
  assert.deepEqual(fake.prompts, ["still here"]);
  await editor.agent.request(session.load, { sessionId: "s", cwd: "/w", mcpServers: [] });
  await editor.say("loaded");
  assert.deepEqual(fake.prompts, ["still here", "loaded"]);
});

test("the supported version is named whatever is requested, and a folder must be absolute", async () => {
  const fake: Fake = { commands: () => Promise.resolve([]), prompts: [], events: [] };
  await using editor = await editing(fake);
  for (const protocolVersion of [0, 1, 65_535])
    assert.equal(
      (await editor.agent.request(methods.agent.initialize, { protocolVersion })).protocolVersion,
      PROTOCOL_VERSION,
    );
  assert.deepEqual(await editor.agent.request(methods.agent.session.list, { cwd: "/w" }), { sessions: [] });
  await assert.rejects(editor.agent.request(methods.agent.session.list, { cwd: "w" }), /absolute/);
});
