import assert from "node:assert/strict";
import test from "node:test";
import type { ToolContext } from "../../src/tools/tool-context.ts";
import { bashTool } from "../../src/tools/bash.ts";
import { type FakeBox, fakeBox } from "../fakes/box.ts";
import type { FakeCommand } from "../fakes/commands.ts";
import { fakeToolContext } from "../fakes/tool-context.ts";
import { called, prepared } from "../fixtures/call.ts";

/** The resources that a command of these boxes has used. */
const PEAK = { memory_bytes: 1, pids: 1 };

/** As much of bash as is needed here; it writes its state to the given file, after the call's token. */
const bashDoing =
  (act: FakeCommand, left?: string): FakeCommand =>
  async (process) => {
    let line = "";
    for await (const bytes of process.input) line += Buffer.from(bytes).toString();
    const [file = "", token = ""] = line.trim().split(" ");
    if (left !== undefined) process.files.write(file, Buffer.from(`${token}\0${left}`));
    return act(process);
  };

const saying = (out: string, err: string, code = 0): FakeCommand =>
  bashDoing(async (process) => {
    await process.out(out);
    await process.err(err);
    return code;
  });

const env: FakeCommand = ({ out }) => out("HOME=/home/box\0CI=1\0").then(() => 0);

const boxWith = (bash: FakeCommand): FakeBox => fakeBox({ commands: { bash, env } });

const run = (
  bash: FakeCommand,
  args: object = {},
  context: ToolContext = fakeToolContext(),
): ReturnType<typeof called> => called(bashTool(context), { command: "x", ...args }, boxWith(bash));

test("stdout and stderr are separated only if both are present, and no output is stated as such", async () => {
  const ok = { kind: "ok", exitCode: 0, peak: PEAK } as const;
  assert.deepEqual(await run(saying("out\n", "")), { ...ok, text: "out" });
  assert.deepEqual(await run(saying("", "err\n")), { ...ok, text: "err" });
  assert.deepEqual(await run(saying("out\n", "err\n")), { ...ok, text: "out\n[stderr]\nerr" });
  assert.deepEqual(await run(saying("", "")), { ...ok, text: "(no output)" });
});

test("a failure ends with its exit code", async () => {
  const { kind, text, exitCode } = await run(saying("out", "", 3));
  assert.deepEqual([kind, exitCode], ["failed", 3]);
  assert.match(text, /^out\n\[exit 3, \d+ ms\]$/);
});

test("the command is one argument, and runs in the shell's folder with its variables", async () => {
  const context = fakeToolContext();
  context.shell.move("/repo", { A: "1" });
  const box = boxWith(() => 0);
  await called(bashTool(context), { command: "echo '$1'" }, box);
  const [asked] = box.asked;
  assert.deepEqual([asked?.words[0], asked?.words.at(-1)], ["bash", "echo '$1'"]);
  assert.deepEqual([asked?.folder, asked?.env, asked?.timeoutMs], ["/repo", { A: "1" }, 120_000]);
});

test("a time limit is in seconds, and at most 600", async () => {
  const box = boxWith(() => 0);
  const tool = bashTool(fakeToolContext());
  await called(tool, { command: "x", timeout: 5 }, box);
  const { text } = await called(tool, { command: "x", timeout: 1000 }, box);
  assert.deepEqual(
    box.asked.map(({ timeoutMs }) => timeoutMs),
    [5000, 600_000],
  );
  assert.match(text, /\[the timeout was cut to 600 s\]/);
});

test("where the default time limit is longer, a call may request as much", async () => {
  const box = boxWith(() => 0);
  const tool = bashTool(fakeToolContext({ timeoutMs: 7_200_000 }));
  assert.match(tool.description, /default 7200, max 7200/);
  await called(tool, { command: "x", timeout: 5000 }, box);
  const { text } = await called(tool, { command: "x", timeout: 9000 }, box);
  assert.deepEqual(
    box.asked.map(({ timeoutMs }) => timeoutMs),
    [5_000_000, 7_200_000],
  );
  assert.match(text, /\[the timeout was cut to 7200 s\]/);
});

test("a call is judged with the variables of earlier calls, in the shell's folder", () => {
  const context = fakeToolContext();
  context.shell.move("/repo/a", { A: "1" });
  const call = prepared(bashTool(context), { command: "echo $A" });
  const [{ facts }, { concurrent }] = [call.state(), call];
  assert.deepEqual([facts.commands, facts.folder, concurrent], [["export A=1\necho $A"], "/repo/a", false]);
  assert.deepEqual(prepared(bashTool(context), { job: "j1" }).state().facts.commands, []);
});

test("a call runs in the folder and with the variables for which it was judged, whatever has changed since", async () => {
  const context = fakeToolContext();
  context.shell.move("/repo/a", { A: "1" });
  const box = fakeBox({ files: { "a/x": "", "src/x": "" }, commands: { bash: () => 0, env } });
  const call = prepared(bashTool(context), { command: "rm -rf *" });
  const { facts, run } = call.state();
  context.shell.move("/repo/src", {});
  await run(() => Promise.resolve(box), new AbortController().signal);
  const [asked] = box.asked;
  assert.deepEqual([asked?.folder, asked?.env], ["/repo/a", { A: "1" }]);
  assert.deepEqual([facts.folder, facts.commands], ["/repo/a", ["export A=1\nrm -rf *"]]);
  assert.equal(call.state().facts.folder, "/repo/src");
});

test("nothing runs in a folder that is gone, and the shell returns to the workspace", async () => {
  const context = fakeToolContext();
  context.shell.move("/repo/gone", { A: "1" });
  const ran: string[] = [];
  const box = boxWith(({ words }) => ran.push(words.at(-1) ?? ""));
  const { kind, text } = await called(bashTool(context), { command: "rm -rf *" }, box);
  assert.deepEqual([kind, ran, context.shell.folder], ["failed", [], "/repo"]);
  assert.match(text, /\/repo\/gone is gone; the shell is now in \/repo\. Nothing was run/);
  assert.deepEqual(context.shell.env, { A: "1" });
});

const leaving = (left: string): FakeCommand => bashDoing(() => 0, left);

test("exported variables that differ from the box's own are kept, and incomplete ones are reported", async () => {
  const context = fakeToolContext();
  const left = "/repo/a\0HOME=/home/box\0CI=2\0A=1\0END\0";
  const said = await called(bashTool(context), { command: "x" }, boxWith(leaving(left)));
  assert.deepEqual(said, { kind: "ok", text: "(no output)", exitCode: 0, peak: PEAK });
  assert.deepEqual([context.shell.folder, context.shell.env], ["/repo/a", { CI: "2", A: "1" }]);
  assert.match(
    (await run(leaving("/repo/b\0A="))).text,
    /\[folder and exported variables stay as before the call: they were not completely written\]/,
  );
});

const asks = (box: FakeBox): number => box.asked.filter(({ words }) => words[0] === "env").length;

test("the box's own variables are read once per box, and nothing is kept without them", async () => {
  const context = fakeToolContext();
  const tool = bashTool(context);
  const first = boxWith(leaving("/repo\0CI=1\0END\0"));
  for (const command of ["x", "y"]) await called(tool, { command }, first);
  assert.deepEqual([asks(first), context.shell.env], [1, {}]);
  const other = fakeBox({ commands: { bash: leaving("/repo\0CI=1\0END\0"), env: () => 1 } });
  const { text } = await called(tool, { command: "x" }, other);
  assert.match(text, /stay as before the call: the box did not report its own variables/);
  assert.deepEqual([asks(other), context.shell.env], [1, {}]);
});

test("a box has one state file, and the remains of an earlier call have no effect", async () => {
  const context = fakeToolContext();
  const tool = bashTool(context);
  const files = new Set<string>();
  const box = boxWith(async ({ input, files: tree }) => {
    let line = "";
    for await (const bytes of input) line += Buffer.from(bytes).toString();
    const [file = "", token = ""] = line.trim().split(" ");
    if (!files.has(file)) tree.write(file, Buffer.from(`${token}\0/repo/a\0END\0`));
    files.add(file);
    return 0;
  });
  await called(tool, { command: "x" }, box);
  context.shell.move("/repo", { A: "1" });
  assert.deepEqual(await called(tool, { command: "x" }, box), {
    kind: "ok",
    text: "(no output)",
    exitCode: 0,
    peak: PEAK,
  });
  assert.deepEqual([context.shell.folder, context.shell.env, files.size], ["/repo", { A: "1" }, 1]);
});

test("a changed variable that may not be kept is left out, which is reported once", async () => {
  const asked: string[] = [];
  const refused = (variables: ReadonlyMap<string, string>): Promise<ReadonlySet<string>> => {
    asked.push([...variables].map((pair) => pair.join("=")).join(" "));
    return Promise.resolve(new Set(["PATH"]));
  };
  const context = fakeToolContext({ refused });
  const tool = bashTool(context);
  const box = boxWith(leaving("/repo\0CI=1\0A=1\0PATH=/x\0END\0"));
  const said = "[PATH is not kept for later calls: set it in the command that needs it]";
  assert.equal((await called(tool, { command: "x" }, box)).text, `(no output)\n${said}`);
  assert.equal((await called(tool, { command: "x" }, box)).text, "(no output)");
  assert.deepEqual([context.shell.env, asked], [{ A: "1" }, ["A=1 PATH=/x", "PATH=/x"]]);
});

test("a command is one request to the box, whatever it leaves and wherever it starts", async () => {
  const context = fakeToolContext();
  const box = fakeBox({ files: { "a/x": "" }, commands: { bash: leaving("/repo/a\0A=1\0END\0"), env } });
  const other: string[] = [];
  const counted = { ...box };
  for (const name of ["read", "stat", "list", "write"] as const)
    Object.assign(counted, { [name]: () => assert.fail(String(other.push(name))) });
  const tool = bashTool(context);
  for (const command of ["x", "y", "z"]) await called(tool, { command }, counted);
  assert.deepEqual(
    box.asked.map(({ words, folder, exactFolder }) => [words[0], folder, exactFolder]),
    [
      ["bash", "/repo", undefined],
      ["env", "/", undefined],
      ["bash", "/repo/a", true],
      ["bash", "/repo/a", true],
    ],
  );
  assert.deepEqual(context.shell.env, { A: "1" });
});

test("output that overwrote itself on a line is shown in its final state", async () => {
  assert.equal((await run(saying("10%\r99%\r100%\r\ndone\n", ""))).text, "100%\ndone");
});

test("advice is given only at the first failure of a kind", async () => {
  const tool = bashTool(fakeToolContext());
  const box = boxWith(saying("", "curl: (6) Could not resolve host: x", 6));
  const first = await called(tool, { command: "x" }, box);
  const second = await called(tool, { command: "x" }, box);
  assert.deepEqual([first.kind, "cause" in first && first.cause], ["failed", "network"]);
  assert.match(first.text, /\n\[advice: [^\n]*\]\n\[exit 6, [^\n]*, network: [^\n]*\]$/);
  assert.doesNotMatch(second.text, /advice/);
});

test("a restart resets folder and variables, and runs no command", async () => {
  const context = fakeToolContext();
  context.shell.move("/tmp", { PATH: "/tmp/bin" });
  assert.deepEqual(prepared(bashTool(context), { restart: true }).state().facts.commands, []);
  const { text } = await called(bashTool(context), { restart: true }, fakeBox());
  assert.equal(text, "The shell is in /repo, with no exported variables. Jobs go on.");
  assert.deepEqual([context.shell.folder, context.shell.env], ["/repo", {}]);
});

test("an input in the form that small models send is accepted", async () => {
  const box = boxWith(() => 0);
  const sent = { command: "x", timeout: "5", background: "false", job: "", kill: null, restart: false };
  assert.equal((await called(bashTool(fakeToolContext()), sent, box)).kind, "ok");
  assert.deepEqual([box.asked[0]?.words.at(-1), box.asked[0]?.timeoutMs], ["x", 5000]);
  assert.equal((await called(bashTool(fakeToolContext()), { command: "", job: "j7" }, box)).kind, "invalid");
  assert.equal(box.asked.length, 1);
});

test("a call has a command, a job or a restart", () => {
  for (const args of [
    {},
    { restart: false },
    { command: "x", job: "j1" },
    { command: "x", restart: true },
    { command: 3 },
    { command: " \n" },
    { command: "\t", job: "" },
  ])
    assert.equal(bashTool(fakeToolContext()).prepare(args).kind, "invalid");
});
