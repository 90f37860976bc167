import assert from "node:assert/strict";
import test from "node:test";
import * as z from "zod";
import { cutToBounds, MAX_BYTES } from "../../src/agent/call-result.ts";
import { showFullTool } from "../../src/tools/show-full.ts";
import { visible } from "../../src/core/visible.ts";
import { memoryOutputs } from "../fakes/tool-context.ts";
import { called } from "../fixtures/call.ts";
import { fc } from "../fixtures/property.ts";
import type { AgentContext } from "../../src/agent/agent-context.ts";
import { remembering, unattended } from "../../src/agent/approvers.ts";
import { denialsOf, FittedAnswer, outcomeOf, standingRefusal } from "../../src/agent/ending/outcome.ts";
import { runLoop } from "../../src/agent/loop.ts";
import {
  anyTool,
  type BeforeCall,
  type Hooks,
  NO_FACTS,
  NO_HOOKS,
  type ToolResult,
} from "../../src/core/tool.ts";
import type { Approver, Question } from "../../src/core/ports.ts";
import { fakeAgent, type Line } from "../fakes/agent.ts";

const MARKER = /\[… ([\d,]+) of ([\d,]+) characters left out; show_full (\{.*?\}) goes on from here …\]\n/;

const number = (text = ""): number => Number(text.replaceAll(",", ""));

/** All pages joined, as a model would ask for them. */
async function paged(outputs: ReturnType<typeof memoryOutputs>, id: string, from: number): Promise<string> {
  const tool = showFullTool({ outputs });
  const pages: string[] = [];
  for (let offset = from, more = true; more;) {
    const { kind, text } = await called(tool, { id, offset });
    assert.equal(kind, "ok");
    assert.ok(Buffer.byteLength(text) <= MAX_BYTES);
    const [, body = "", next] =
      /^([^]*)\n\[characters [^\n]*; (?:next: (.*)|this is the end)\]$/.exec(text) ?? [];
    pages.push(body);
    more = next !== undefined;
    if (next !== undefined) ({ offset } = JSON.parse(next) as { offset: number });
  }
  return pages.join("");
}

test("a short result is sent to the model unchanged and is not stored", () => {
  const outputs = memoryOutputs();
  assert.deepEqual(cutToBounds("all\nof it\n", outputs), { text: "all\nof it\n" });
  assert.deepEqual(cutToBounds("é".repeat(MAX_BYTES / 2), outputs), { text: "é".repeat(MAX_BYTES / 2) });
  assert.deepEqual(outputs.kept, []);
});

test("the model gets whole lines from the head and tail of a long result, and a note on how to read the rest", () => {
  const outputs = memoryOutputs();
  const lines = Array.from({ length: 20_000 }, (_, index) => `line ${index}`);
  const { text, full } = cutToBounds(lines.join("\n"), outputs);
  assert.equal(full, "o1");
  const [, left, total, next] = MARKER.exec(text) ?? [];
  const [head = "", tail = ""] = text.split(new RegExp(MARKER.source.replaceAll(/\(([^?])/g, "(?:$1")));
  assert.equal(number(total), lines.join("\n").length);
  assert.equal(number(left), number(total) - head.length - tail.length);
  assert.deepEqual(JSON.parse(next ?? ""), { id: "o1", offset: head.length });
  assert.match(head, /^line 0\n[^]*line \d+\n$/);
  assert.match(tail, /^line \d+\n[^]*line 19999$/);
  assert.ok(head.length > 1.8 * tail.length && head.length < 2.2 * tail.length);
});

test("a single line of 600 KB is cut, and its pages return it whole", async () => {
  const outputs = memoryOutputs();
  const line = "minified;é😀".repeat(50_000);
  const { text, full = "" } = cutToBounds(line, outputs);
  assert.ok(Buffer.byteLength(text) <= MAX_BYTES);
  assert.equal(await paged(outputs, full, 0), line);
});

test("control characters are made visible in what is sent and what is stored, and CRLF becomes a line end", () => {
  const outputs = memoryOutputs();
  assert.equal(cutToBounds("\u001B[2J\r\nx\u202E", outputs).text, "␛[2J\nx<U+202E>");
  cutToBounds("\u001B[2J\r\n".repeat(10_000), outputs);
  assert.deepEqual(outputs.kept, ["␛[2J\n".repeat(10_000)]);
});

test("any text is cut to 30,000 bytes of valid UTF-8, and its head and pages restore it", async () => {
  const unit = fc.constantFrom(
    "a",
    "\n",
    "é",
    "日",
    "😀",
    "\u001B",
    "\r",
    "\uD800",
    "\uDC00",
    "\u200B",
    "-----\n",
  );
  const runs = fc.array(fc.tuple(fc.array(unit, { maxLength: 30 }), fc.nat(3000)), { maxLength: 5 });
  await fc.assert(
    fc.asyncProperty(runs, async (parts) => {
      const given = parts.map(([units, times]) => units.join("").repeat(times)).join("");
      const outputs = memoryOutputs();
      const { text, full } = cutToBounds(given, outputs);
      assert.ok(Buffer.byteLength(text) <= MAX_BYTES);
      assert.ok(text.isWellFormed());
      const whole = visible(given.toWellFormed());
      if (full === undefined) return assert.equal(text, whole);
      const head = text.slice(0, text.search(MARKER)).replace(/\n$/, "");
      const { offset } = JSON.parse(MARKER.exec(text)?.[3] ?? "") as { offset: number };
      assert.ok(whole.startsWith(head));
      assert.equal(whole.slice(0, offset) + (await paged(outputs, full, offset)), whole);
      assert.ok(whole.endsWith(text.slice(text.search(MARKER)).replace(MARKER, "")));
    }),
    { numRuns: 60 },
  );
});

const signal = new AbortController().signal;

function shell(ran: string[], text = "it ran") {
  return anyTool({
    name: "bash",
    description: "",
    input: z.strictObject({ command: z.string() }),
    facts: ({ command }) => ({ ...NO_FACTS, commands: [command] }),
    concurrent: false,
    where: "session",
    run: ({ command }): Promise<ToolResult> => {
      ran.push(command);
      return Promise.resolve({ kind: "ok", text: command.startsWith("big") ? "secret ".repeat(9000) : text });
    },
  });
}

interface Played {
  readonly commands: readonly string[];
  readonly hooks: Partial<Hooks>;
  readonly over?: Partial<AgentContext>;
  readonly after?: readonly Line[];
}

async function played({ commands, hooks, over = {}, after = [] }: Played) {
  const ran: string[] = [];
  const lines = commands.map((command): Line => ({ calls: [["bash", { command }]] }));
  const agent = fakeAgent({
    lines: [...lines, ...after],
    tools: [shell(ran)],
    over: { hooks: { ...NO_HOOKS, ...hooks }, ...over },
  });
  const end = await runLoop(agent, signal);
  const results = agent.history.messages.flatMap((each) => (each.role === "tool" ? [each.text] : []));
  return { ran, agent, end, results };
}

const replacing = (command: unknown): Pick<Hooks, "before"> => ({
  before: () => Promise.resolve({ kind: "goes_on", args: { command }, by: "h" }),
});
const vetoing = (owner: "user" | "project" = "user"): Pick<Hooks, "before"> => ({
  before: () => Promise.resolve({ kind: "vetoed", by: "h", owner, reason: "not today" }),
});

test("arguments replaced by a hook are the ones that are judged, so a dangerous replacement is denied", async () => {
  const { ran, agent, results } = await played({ commands: ["ls"], hooks: replacing("rm -rf /") });
  assert.deepEqual(ran, []);
  assert.deepEqual(
    agent.ended.map(({ kind, target, decision }) => [kind, target, decision]),
    [["denied", "rm -rf /", "deny"]],
  );
  assert.match(results[0] ?? "", /^Denied by the policy: /);
});

test("a command that a hook made harmless runs, and the model is told which command ran", async () => {
  const { ran, agent, results } = await played({ commands: ["rm -rf /"], hooks: replacing("ls -l") });
  assert.deepEqual(ran, ["ls -l"]);
  assert.equal(results[0], 'it ran\n[the hook h replaced the arguments: {"command":"ls -l"}]');
  const decided = agent.events.find((event) => event.type === "call.decided");
  assert.deepEqual([decided?.call, decided?.judged?.commands], ["c1.0", ["ls -l"]]);
  // The history keeps what the model wrote.
  const [first] = agent.history.messages;
  assert.deepEqual(first?.role === "assistant" && first.calls[0]?.args, { command: "rm -rf /" });
});

test("nothing runs when a hook's arguments do not fit the tool", async () => {
  for (const wrong of [7, undefined, ["ls"]]) {
    const { ran, results } = await played({ commands: ["ls"], hooks: replacing(wrong) });
    assert.deepEqual(ran, []);
    assert.match(
      results[0] ?? "",
      /^Refused by a hook: the hook h gave arguments that do not fit: command: /,
    );
  }
});

test("a veto is reported as a refusal by the hook, with its reason, and not by the policy", async () => {
  for (const owner of ["user", "project"] as const) {
    const { ran, agent, results } = await played({ commands: ["ls"], hooks: vetoing(owner) });
    assert.deepEqual(ran, []);
    assert.equal(results[0], "Refused by a hook: the hook h: not today. It was not run.");
    const ended = agent.events.find((event) => event.type === "call.ended");
    const decided = agent.events.find((event) => event.type === "call.decided");
    assert.deepEqual(
      [ended?.kind, ended?.cause, decided?.by, decided?.runs],
      ["denied", owner === "user" ? "user" : "program", "hook", false],
    );
    assert.deepEqual(denialsOf(agent.ended), [
      {
        call: "c1.0",
        tool: "bash",
        target: "ls",
        decision: "deny",
        rule: "hook",
        reason: "the hook h: not today",
      },
    ]);
    const outcome = outcomeOf({ how: "answered" }, agent.ended, { strict: false });
    assert.deepEqual([outcome.exit_code, outcome.reason], [4, "Refused: bash ls (the hook h: not today)"]);
  }
});

test("a veto that the run works around does not stand", async () => {
  const answers: BeforeCall[] = [
    { kind: "vetoed", by: "h", owner: "user", reason: "no" },
    { kind: "goes_on", args: { command: "touch a" } },
  ];
  const { agent, ran } = await played({
    commands: ["rm a", "touch a"],
    hooks: { before: () => Promise.resolve(answers.shift() ?? { kind: "goes_on", args: {} }) },
  });
  assert.deepEqual([ran, standingRefusal(agent.ended)], [["touch a"], undefined]);
});

test("text that a hook removed from a result appears nowhere: not in the history, the events or the stored output", async () => {
  const { agent, results } = await played({
    commands: ["big"],
    hooks: { after: (_, { text }) => Promise.resolve(text.replaceAll("secret", "[-]")) },
  });
  const all = JSON.stringify([agent.events, agent.records, agent.outputs]);
  assert.ok(!all.includes("secret"));
  assert.match(results[0] ?? "", /show_full/);
  assert.match(agent.outputs.page("o1", 0, 20)?.text ?? "", /^\[-\] \[-\]/);
});

test("hooks after a call also receive denials", async () => {
  const kinds: string[] = [];
  const after: Hooks["after"] = (_, { kind }) => {
    kinds.push(kind);
    return Promise.resolve(kind === "denied" ? "ask your admin" : undefined);
  };
  const { results } = await played({ commands: ["ls", "rm -rf /"], hooks: { after } });
  assert.deepEqual(
    [kinds, results],
    [
      ["ok", "denied"],
      ["it ran", "ask your admin"],
    ],
  );
});

test("a call that waited is passed to the hooks again, and runs only in the form that a person saw", async () => {
  const question = async (command: string): Promise<Question> => {
    const { end } = await played({
      commands: ["ls"],
      hooks: replacing(command),
      over: { approver: unattended("park") },
    });
    assert.ok(end.how === "parked");
    return end.waiting.question;
  };
  const asked = await question("curl https://a.example");
  assert.deepEqual(
    [asked.text, asked.args],
    ["curl https://a.example", { command: "curl https://a.example" }],
  );
  const again = async (hooks: Partial<Hooks>) => {
    const approver: Approver = remembering(
      { always: [], once: { question: asked, runs: true } },
      unattended("park"),
    );
    const { ran, end } = await played({ commands: ["ls"], hooks, over: { approver } });
    return [ran, end.how];
  };
  assert.deepEqual(await again(replacing("curl https://a.example")), [
    ["curl https://a.example"],
    "answered",
  ]);
  assert.deepEqual(await again(replacing("curl https://b.example")), [[], "parked"]);
  assert.deepEqual(await again(vetoing()), [[], "answered"]);
});

test("the repetition guard compares the calls as the model wrote them", async () => {
  let n = 0;
  const before: Hooks["before"] = () =>
    Promise.resolve({ kind: "goes_on", args: { command: `echo ${(n += 1)}` }, by: "h" });
  const { ran, end } = await played({ commands: ["ls", "ls", "ls", "ls"], hooks: { before } });
  assert.deepEqual([ran, end.how], [["echo 1", "echo 2"], "repeated"]);
});

test("a call cancelled while a hook runs is not a refusal", async () => {
  const cancel = new AbortController();
  const agent = fakeAgent({
    lines: [{ calls: [["bash", { command: "ls" }]] }],
    tools: [shell([])],
    over: {
      hooks: {
        ...NO_HOOKS,
        before: () => {
          cancel.abort();
          return Promise.resolve({ kind: "vetoed", by: "h", owner: "user", reason: "it was cancelled" });
        },
      },
    },
  });
  assert.equal((await runLoop(agent, cancel.signal)).how, "cancelled");
  assert.deepEqual(denialsOf(agent.ended), []);
});

test("a stop hook can postpone the end with a message to the model, and can replace the answer", async () => {
  const said = [
    { kind: "continues" as const, text: "run the tests" },
    { kind: "answers" as const, text: "done, and tested" },
  ];
  const stop: Hooks["stop"] = (text) => Promise.resolve(said.shift() ?? { kind: "answers", text });
  const { end, agent } = await played({
    commands: [],
    hooks: { stop },
    after: [{ text: "done" }, { text: "ok" }],
  });
  assert.deepEqual(end, { how: "answered", text: "done, and tested" });
  assert.ok(
    agent.history.messages.some(({ role, text }) => role === "user" && text === "[harness] run the tests"),
  );
});

const gate = () =>
  new FittedAnswer({}, (text) => (text.startsWith("{") ? { json: text } : { issues: ["it is no JSON"] }));

test("an answer replaced by a hook must fit the user's schema", async () => {
  for (const [text, answer] of [
    ["[]", "{}"],
    ['{"a":1}', '{"a":1}'],
  ] as const) {
    const stop: Hooks["stop"] = () => Promise.resolve({ kind: "answers", text });
    const { end } = await played({
      commands: [],
      hooks: { stop },
      over: { answer: gate() },
      after: [{ text: "{}" }],
    });
    assert.deepEqual(end, { how: "answered", text: answer });
  }
});
