import assert from "node:assert/strict";
import { existsSync, readFileSync, symlinkSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { EXIT, HarnessError } from "../../src/core/errors.ts";
import { type HostPlace, readAnswer, runInBox, runOnHost } from "../../src/extensions/hook-programs.ts";
import { fakeBox } from "../fakes/box.ts";
import { type Scratch, scratch } from "../fixtures/scratch.ts";
import { HOOK_EVENTS, type HookEvent } from "../../src/core/added-programs.ts";

const run = { input: '{"event":"Stop"}\n', limit: 1000, timeoutMs: 60_000 };
const never = new AbortController().signal;

const placeOf = (place: Scratch, env: Readonly<Record<string, string>> = {}): HostPlace => ({
  env: { PATH: process.env["PATH"], HOME: place.at("home"), SECRET_KEY: "hunter2", ...env },
  cwd: place.at("config"),
  home: place.at("home"),
  apart: place.at("work"),
});

const files = {
  "config/answer.sh": '#!/bin/sh\necho \'{"text": "mine"}\'\n',
  "home/bin/tool": "#!/bin/sh\necho home\n",
  "work/evil.sh": "#!/bin/sh\ntouch ran\n",
  "work/an evil.sh": "#!/bin/sh\ntouch ran\n",
  "work/bin/guard": "#!/bin/sh\ntouch ran\n",
};

async function household(): Promise<Scratch> {
  const place = await scratch();
  for (const [name, text] of Object.entries(files)) await place.write(name, text, 0o755);
  return place;
}

async function said(...given: Parameters<typeof runOnHost>): Promise<string> {
  const ran = await runOnHost(...given);
  return ran.kind === "broken"
    ? `broken: ${ran.why}`
    : `${ran.exitCode} ${Buffer.from(ran.stdout).toString().trim()}`;
}

test("a hook gets its data on stdin, and not as arguments or variables", async () => {
  await using place = await household();
  assert.equal(await said("cat", placeOf(place), run, never), '0 {"event":"Stop"}');
  assert.equal(await said(["cat"], placeOf(place), run, never), '0 {"event":"Stop"}');
  const env = await said(["env"], placeOf(place), run, never);
  assert.ok(
    !env.includes("hunter2") && !env.includes("Stop") && env.includes(`HOME=${place.at("home")}`),
    env,
  );
});

test("a hook starts in the folder of the user's settings, and names with a slash are relative to it or the home", async () => {
  await using place = await household();
  assert.equal(await said("pwd", placeOf(place), run, never), `0 ${place.at("config")}`);
  assert.equal(await said(["./answer.sh"], placeOf(place), run, never), '0 {"text": "mine"}');
  assert.equal(await said(["~/bin/tool"], placeOf(place), run, never), "0 home");
});

test("nothing in the workspace is started under any name, and the same programs elsewhere are", async () => {
  await using place = await household();
  symlinkSync(place.at("work/evil.sh"), place.at("config/linked.sh"));
  const env = { PATH: `${place.at("work/bin")}:${place.at("home/bin")}:.:${process.env["PATH"]}` };
  const rows: readonly (readonly [string | string[], RegExp])[] = [
    [[place.at("work/evil.sh")], /broken: .* lies in the workspace/],
    [["./linked.sh"], /broken: .* lies in the workspace/],
    [["sh", place.at("work/evil.sh")], /broken: .* lies in the workspace/],
    [["sh", path.relative(place.at("config"), place.at("work/evil.sh"))], /broken: .* lies in the workspace/],
    [["sh", `--x=${place.at("work/evil.sh")}`], /broken: .* lies in the workspace/],
    [["guard"], /broken: there is no program guard/],
    [place.at("work/evil.sh"), /broken: .* lies in the workspace/],
    [`cat;./linked.sh`, /broken: .\/linked.sh lies in the workspace/],
    [`sh "${place.at("work/an evil.sh")}"`, /broken: .* lies in the workspace/],
    [`sh -c 'exec ${place.at("work/evil.sh")}'`, /broken: .* lies in the workspace/],
    [`X=${place.at("work/evil.sh")}; "$X"`, /broken: .* lies in the workspace/],
    ["sh $HOME/../work/evil.sh", /broken: .* lies in the workspace/],
    ["X=${HOME}/../work/evil.sh; exec $X", /broken: .* lies in the workspace/],
    [["$HOME/bin/tool"], /broken: there is no program/],
    ["$HOME/bin/tool", /^0 home$/],
    [". ../work/evil.sh", /broken: .* lies in the workspace/],
    [`ls ${place.at("work")} >/dev/null && echo kept`, /^0 kept$/],
    ["guard", /^127/],
    [
      `case :$PATH: in *:${place.at("work/bin")}:*) exit 9 ;; *:${place.at("home/bin")}:*) echo kept ;; esac`,
      /^0 kept$/,
    ],
    [["tool"], /^0 home$/],
  ];
  for (const [command, what] of rows)
    assert.match(await said(command, placeOf(place, env), run, never), what, String(command));
  assert.ok(!existsSync(place.at("config/ran")) && !existsSync(place.at("work/ran")));
});

test("a hook that hangs, floods or cannot start is broken, and nothing of it keeps running", async () => {
  await using place = await household();
  const pid = place.at("config/pid");
  const hang = `sleep 600 & echo $! > ${pid}; wait`;
  assert.match(
    await said(hang, placeOf(place), { ...run, timeoutMs: 300 }, never),
    /no answer within 0\.3 s/,
  );
  const alive = (): boolean => {
    try {
      // A zombie that has not been reaped yet does nothing either.
      return !/^State:\s+Z/m.test(readFileSync(`/proc/${readFileSync(pid, "utf8").trim()}/status`, "utf8"));
    } catch {
      return false;
    }
  };
  while (alive()) await new Promise((resolve) => setImmediate(resolve));
  assert.match(await said("yes", placeOf(place), run, never), /printed more than 1000 bytes/);
  assert.match(await said(["./none"], placeOf(place), run, never), /there is no program/);
  assert.match(
    await said(["./answer.sh"], { ...placeOf(place), cwd: "/none" }, run, never),
    /there is no program/,
  );
  assert.match(await said("kill -9 $$", placeOf(place), run, never), /it was killed by SIGKILL/);
  assert.equal(await said("exit 3", placeOf(place), run, never), "3 ");
  // One that answers without reading, however large its input is.
  assert.equal(
    await said("echo yes", placeOf(place), { ...run, input: "x".repeat(9_999_999) }, never),
    "0 yes",
  );
});

test("processes that a hook leaves behind end with it, and nobody waits for them", async () => {
  await using place = await household();
  assert.equal(await said("sleep 600 & echo done", placeOf(place), run, never), "0 done");
});

test("a hook whose daemon keeps its pipes has answered all the same", async () => {
  await using place = await household();
  const daemon =
    "setsid sh -c 'echo $$ > ../pid; exec sleep 3600' & while [ ! -s ../pid ]; do sleep 0.05; done; echo '{}'";
  assert.equal(await said(daemon, placeOf(place), run, never), "0 {}");
  process.kill(Number(await place.read("pid")), "SIGKILL");
});

test("cancelling ends a hook", async () => {
  await using place = await household();
  const cancel = new AbortController();
  const ran = said("sleep 600", placeOf(place), run, cancel.signal);
  cancel.abort();
  assert.equal(await ran, "broken: it was cancelled");
  assert.equal(await said("sleep 600", placeOf(place), run, AbortSignal.abort()), "broken: it was cancelled");
});

test("a project's hook is a command in the box with the same input", async () => {
  const box = fakeBox({ commands: { sh: ({ out }) => out('{"text":"x"}').then(() => 0) } });
  const opened = { box: () => Promise.resolve(box), folder: "/repo" };
  const ran = await runInBox("node x.js", opened, run, never);
  assert.ok(ran.kind === "ended" && ran.exitCode === 0);
  assert.deepEqual(
    box.asked.map(({ words, folder, timeoutMs, env }) => [words, folder, timeoutMs, env]),
    [[["sh", "-c", "node x.js"], "/repo", 60_000, undefined]],
  );
  const told = await runInBox(["cat"], opened, run, never);
  assert.equal(told.kind === "ended" && Buffer.from(told.stdout).toString(), run.input);
});

test("a hook in the box that hangs, floods or is missing is broken, and a lost box is not its fault", async () => {
  const box = fakeBox();
  const opened = { box: () => Promise.resolve(box), folder: "/repo" };
  const why = async (words: readonly string[], limits = {}): Promise<string> => {
    const ran = await runInBox([...words], opened, { ...run, ...limits }, never);
    return ran.kind === "broken" ? ran.why : `ended ${ran.exitCode}`;
  };
  assert.match(await why(["sleep", "600"], { timeoutMs: 50 }), /no answer within/);
  assert.match(await why(["flood", "100000"]), /printed more than 1000 bytes/);
  assert.notEqual(await why(["no-such-program"]), "ended 0");
  box.lose("gone");
  await assert.rejects(
    why(["cat"]),
    (thrown) => thrown instanceof HarnessError && thrown.exit === EXIT.sandbox,
  );
});

const answerOf = (event: HookEvent, out: unknown, exitCode = 0, stderr = "") =>
  readAnswer(event, {
    kind: "ended",
    exitCode,
    stdout: Buffer.from(typeof out === "string" ? out : JSON.stringify(out)),
    stderr,
  });

test("only the fields that belong to an event are accepted", () => {
  const rows: readonly (readonly [HookEvent, unknown, object])[] = [
    ["PreToolUse", { decision: "skip", reason: "no" }, { skip: "no" }],
    ["PreToolUse", { decision: "skip" }, { skip: "it gave no reason" }],
    ["PreToolUse", { args: { command: "ls" } }, { args: { command: "ls" } }],
    ["PostToolUse", { text: "less" }, { text: "less" }],
    ["PostToolUse", { text: "" }, { text: "" }],
    ["Stop", { continue: "run the tests" }, { continue: "run the tests" }],
    ["Stop", { text: "done" }, { text: "done" }],
    ["SessionStart", { text: "it is Monday" }, { text: "it is Monday" }],
    ["PreCompact", { text: "keep this" }, { text: "keep this" }],
    ["PreCompact", { state: { n: 1, gone: null } }, { state: { n: 1, gone: null } }],
  ];
  for (const [event, out, taken] of rows)
    assert.deepEqual(answerOf(event, out), { kind: "answered", ...taken });
  for (const event of HOOK_EVENTS)
    for (const silent of ["", " \n"]) assert.deepEqual(answerOf(event, silent), { kind: "answered" });
});

test("no hook can approve anything: an invalid answer for its event is broken", () => {
  const wrong: readonly (readonly [HookEvent, unknown])[] = [
    ["PreToolUse", { decision: "allow" }],
    ["PreToolUse", { decision: "approve", args: {} }],
    ["PreToolUse", { decision: "skip", args: {} }],
    ["PreToolUse", { reason: "because" }],
    ["PreToolUse", { args: [] }],
    ["PreToolUse", { args: "ls" }],
    ["PreToolUse", { permission: "allow" }],
    ["PreToolUse", { text: "fine" }],
    ["PostToolUse", { kind: "ok" }],
    ["PostToolUse", { text: 1 }],
    ["Stop", { text: "a", continue: "b" }],
    ["SessionStart", { continue: "b" }],
    ["PreCompact", "garbage"],
    ["PreToolUse", "{}{}"],
    ["PreToolUse", "[]"],
    ["PreToolUse", "null"],
  ];
  for (const [event, out] of wrong)
    assert.equal(answerOf(event, out).kind, "broken", `${event} ${JSON.stringify(out)}`);
});

test("exit code 2 is a veto where vetoes exist, and any other code except 0 is broken", () => {
  assert.deepEqual(answerOf("PreToolUse", "", 2, "no force\n"), { kind: "answered", skip: "no force" });
  assert.deepEqual(answerOf("Stop", "", 2), { kind: "broken", why: "it exited with 2" });
  assert.deepEqual(answerOf("PreToolUse", { args: {} }, 1, "oops\nmore"), {
    kind: "broken",
    why: "it exited with 1: oops",
  });
  assert.deepEqual(readAnswer("Stop", { kind: "broken", why: "it hung" }), {
    kind: "broken",
    why: "it hung",
  });
});

test("a hook's output contains no control characters, and added text is bounded", () => {
  const loud = answerOf("SessionStart", { text: `\u001B[2Jhello${"x".repeat(99_999)}` });
  assert.ok(loud.kind === "answered" && loud.text !== undefined);
  assert.ok(!loud.text.includes("\u001B") && loud.text.length <= 16 * 1024);
  const veto = answerOf("PreToolUse", { decision: "skip", reason: `\u001B]0;x\u0007${"y".repeat(5000)}` });
  assert.ok(veto.kind === "answered" && (veto.skip?.length ?? 0) <= 1000 && !veto.skip?.includes("\u001B"));
  const bytes = readAnswer("Stop", {
    kind: "ended",
    exitCode: 0,
    stdout: Buffer.from([0x7b, 0xff, 0x7d]),
    stderr: "",
  });
  assert.deepEqual(bytes, { kind: "broken", why: "its output is not UTF-8" });
});
