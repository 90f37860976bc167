import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import type { Box } from "../../src/core/ports.ts";
import type { ToolResult } from "../../src/core/tool.ts";
import { bashTool } from "../../src/tools/bash.ts";
import type { ToolContext } from "../../src/tools/tool-context.ts";
import { fakeToolContext } from "../fakes/tool-context.ts";
import { called } from "../fixtures/call.ts";
import { skip } from "../fixtures/engine.ts";
import { realBox } from "../fixtures/real-box.ts";

interface Shell {
  readonly context: ToolContext;
  readonly box: Box;
  readonly ask: (args: object, signal?: AbortSignal) => Promise<ToolResult>;
  readonly run: (command: string) => Promise<string>;
}

type Real = Awaited<ReturnType<typeof realBox>>;

/** One box for all tests that leave nothing behind; each test has its own shell. */
const shared = { real: undefined as Real | undefined };
before(async () => {
  if (skip === false) shared.real = await realBox();
});
after(() => shared.real?.[Symbol.asyncDispose]());

function shell(over: Partial<ToolContext> = {}, box: Box | undefined = shared.real?.box): Shell {
  assert.ok(box !== undefined);
  const context = fakeToolContext({ workspace: box.workspace, ...over });
  const tool = bashTool(context);
  const ask: Shell["ask"] = (args, signal) => called(tool, args, box, signal);
  return { context, box, ask, run: async (command) => (await ask({ command })).text };
}

const cause = (result: ToolResult): string => ("cause" in result ? (result.cause ?? "none") : "none");

test("folder and exported variables are kept from call to call", { skip }, async () => {
  const { context, run } = shell();
  await run("mkdir -p 'a b'/c && cd 'a b' && export ONE=\"it's\n\"'$(x)' TWO=2 && plain=3");
  assert.equal(context.shell.folder, `${context.workspace}/a b`);
  assert.deepEqual(context.shell.env, { ONE: "it's\n$(x)", TWO: "2" });
  assert.equal(await run('pwd; echo "$ONE,$TWO,$plain"; cd c'), `${context.workspace}/a b\nit's\n$(x),2,`);
  await run("unset TWO; export ONE=new; cd -P ..; cd ..");
  assert.deepEqual([context.shell.folder, context.shell.env], [context.workspace, { ONE: "new" }]);
  assert.match(await run("ls -A /tmp"), /^harness-test-\w+$/);
});

const ENDINGS: Readonly<Record<string, string>> = {
  "after exit": "cd /tmp; export A=1; exit 3",
  "after a failure": "cd /tmp; export A=1; false",
  "under set -e, -u and -x": "set -eux; cd /tmp; export A=1; false; cd /",
  "after a syntax error in eval": "cd /tmp; export A=1; eval 'if'",
  "with its own trap": "trap 'true' EXIT; cd /tmp; export A=1",
  "with other separators and readonly names": "IFS=,/; readonly name=1; cd /tmp; export A=1",
  "under noclobber": "set -C; cd /tmp; export A=1",
  "with readonly separators": "IFS=1; readonly IFS; cd /tmp; export A=1",
  "with functions named like the builtins that write it":
    "printf() { :; }; mapfile() { :; }; umask() { :; }; cd /tmp; export A=1",
  "with its output closed": "exec >&- 2>&-; cd /tmp; export A=1",
  "with all variables exported": "set -a; cd /tmp; A=1",
  "in posix mode without globs": "set -o posix; set -f; cd /tmp; export A=1",
};

for (const [how, command] of Object.entries(ENDINGS))
  test(`the changed folder and variables are kept ${how}`, { skip }, async () => {
    const { context, run } = shell();
    await run(command);
    assert.deepEqual([context.shell.folder, context.shell.env], ["/tmp", { A: "1" }]);
  });

test("a killed command leaves the shell's state unchanged", { skip }, async () => {
  const { context, ask, run } = shell();
  const late = await ask({ command: "cd /tmp; export A=1; sleep 60", timeout: 0.3 });
  assert.deepEqual([late.kind, cause(late)], ["timed_out", "timeout"]);
  const stopped = await ask({ command: "cd /tmp; export A=1; sleep 60" }, AbortSignal.timeout(200));
  assert.deepEqual([stopped.kind, cause(stopped)], ["cancelled", "user"]);
  await run("cd /tmp; kill -9 $$");
  assert.deepEqual([context.shell.folder, context.shell.env], [context.workspace, {}]);
});

test(
  "a shell that executes another program, or ends in its own trap, leaves the state unchanged",
  { skip },
  async () => {
    const { context, run } = shell();
    await run("cd /tmp; export A=1");
    assert.equal(await run("cd /; export A=2; exec echo gone"), "gone");
    assert.equal(await run("trap 'echo trapped' EXIT; cd /; export A=3; exit"), "trapped");
    assert.deepEqual([context.shell.folder, context.shell.env], ["/tmp", { A: "1" }]);
  },
);

test("a command's own trap has the command's umask", { skip }, async () => {
  const { run } = shell();
  assert.equal(await run("umask 027; trap umask EXIT; cd /tmp"), "0027");
});

test(
  "a changed variable of the box is kept, and has its original value again once unset",
  { skip },
  async () => {
    const { context, run } = shell();
    await run("export LANG=x CI=2; unset HOME");
    assert.deepEqual(context.shell.env, { LANG: "x", CI: "2" });
    assert.equal(await run("echo $LANG $HOME; export LANG=C.UTF-8; unset CI"), "x /home/box");
    assert.deepEqual(context.shell.env, {});
    assert.equal(await run("echo $LANG $CI"), "C.UTF-8 1");
  },
);

test("a refused variable is not kept for the next call, which is reported once", { skip }, async () => {
  const { context, run } = shell({ refused: () => Promise.resolve(new Set(["PATH"])) });
  const note = "[PATH is not kept for later calls: set it in the command that needs it]";
  const moved = "export PATH=/x:$PATH FOO=1; echo ${PATH%%:*}";
  assert.equal(await run(moved), `/x\n${note}`);
  assert.deepEqual(context.shell.env, { FOO: "1" });
  assert.match(await run("echo $FOO; echo $PATH"), /^1\n\/usr\/local\//);
  assert.equal(await run(moved), "/x");
});

test("functions, unexported variables and options do not persist", { skip }, async () => {
  const { context, run } = shell();
  await run("f() { echo f; }; export -f f; v=1; set -u; alias a=b; shopt -s nullglob");
  assert.deepEqual(context.shell.env, {});
  assert.match(await run('echo "[$v]"; f'), /^\[\]\n\[stderr\]\nbash: line 1: f: command not found\n/);
});

test("lines of the command are counted from one, and it has no arguments", { skip }, async () => {
  const { run } = shell();
  assert.match(await run("true\nnot-there\necho $# $0"), /^0 bash\n\[stderr\]\nbash: line 2: not-there:/);
  assert.match(await run("-x"), /^bash: line 1: -x: command not found\n\[exit 127,/);
  assert.match(await run("if"), /syntax error: unexpected end of file\n\[exit 2,/);
});

test("standard input is empty, and not a pipe that a program would wait for", { skip }, async () => {
  assert.equal(await shell().run("readlink /proc/self/fd/0; cat"), "/dev/null");
});

const words = "tr '\\0' '\\n' </proc/$$/environ; tr '\\0' '\\n' </proc/$$/cmdline";

test("a command cannot learn the token that its shell uses", { skip }, async () => {
  const { box, run } = shell();
  assert.doesNotMatch(await run(words), /[0-9a-f]{8}-[0-9a-f]{4}-/);
  const fresh = shell({}, box);
  const there = await box.list("/run");
  assert.ok(there.kind === "ok");
  const names = there.value.map(({ name }) => name).toSorted();
  assert.deepEqual((await fresh.run("ls -A /run")).split("\n").toSorted(), names);
});

test("a state file altered by another process counts as an earlier call's", { skip }, async () => {
  const { context, run } = shell();
  await run("cd /tmp");
  await run("for f in /run/.harness-*; do sed -i 's:/tmp:/usr:g' $f; done; exec true");
  assert.equal(context.shell.folder, "/tmp");
});

test("more than 64 KiB of variables are not kept, with a note", { skip }, async () => {
  const { context, run } = shell();
  const said = await run("cd /tmp; export BIG=$(head -c 70000 /dev/zero | tr '\\0' x)");
  assert.match(
    said,
    /\[folder and exported variables stay as before the call: they are larger than 64 KiB\]/,
  );
  assert.deepEqual([context.shell.folder, context.shell.env], [context.workspace, {}]);
});

test("nothing runs in a removed folder, and the next call runs in the workspace", { skip }, async () => {
  const { context, run } = shell();
  await run("mkdir /tmp/short && cd /tmp/short && rmdir /tmp/short");
  assert.equal(context.shell.folder, "/tmp/short");
  assert.match(await run("pwd"), /^The working directory \/tmp\/short is gone/);
  assert.equal(await run("pwd"), context.workspace);
});

const LATE = "(sleep 1; touch late1) & setsid sh -c 'sleep 1; touch late2' & sleep 1; touch late3; sleep 30";

test("a time limit or a cancelled turn ends the whole process tree", { skip }, async () => {
  const { ask, run } = shell();
  await ask({ command: LATE, timeout: 0.1 });
  await ask({ command: LATE }, AbortSignal.timeout(100));
  assert.equal(await run("sleep 1.2; ls -A | grep late; pgrep -a sleep; true"), "(no output)");
  await run(LATE.replace("sleep 30", "true"));
  assert.equal(await run("ls late*; rm late*"), "late1\nlate2\nlate3");
});

test("processes that were left running are reported, with advice the first time", { skip }, async () => {
  const { run } = shell();
  const line = "[2 processes that it left running ended with it]";
  const advice = '[advice: to keep a process running, start it with "background": true and without &]';
  assert.equal(await run("sleep 60 & sleep 60 & echo x"), `x\n${advice}\n${line}`);
  assert.equal(await run("sleep 60 & sleep 60 & echo x"), `x\n${line}`);
});

test("a background server runs beside other calls until it is ended", { skip }, async () => {
  const { ask, run } = shell();
  await run("mkdir -p /tmp/site && cd /tmp/site && export PORT=8123 && echo hello >page");
  const serve = "exec python3 -u -m http.server $PORT";
  assert.match((await ask({ command: serve, background: true })).text, /\[j1 is running, /);
  const fetch = "for _ in 1 2 3 4 5 6 7 8 9; do curl -s localhost:$PORT/page && break; sleep 0.3; done";
  assert.equal(await run(fetch), "hello");
  assert.match((await ask({ job: "j1" })).text, /"GET \/page HTTP\/1.1" 200 -\n\[j1 is running/);
  assert.equal((await ask({ job: "j1", kill: true })).text, "[j1 was ended]");
  assert.match(await run("curl -s localhost:$PORT/page"), /^\(no output\)\n\[exit 7,/);
});
