import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { randomInt } from "node:crypto";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import path from "node:path";
import test from "node:test";
import { promisify } from "node:util";
import { COMPILED, type Ended, runProgram } from "../fixtures/cli.ts";
import { many } from "../fixtures/property.ts";
import { scratch } from "../fixtures/scratch.ts";
import { ROOT } from "./package.ts";

const HARNESS = path.join(ROOT, "bin/harness");
const MISTAKE = ["config", "get", "--bogus"];
const ESCAPE = "\u001B[";

async function colours(args: readonly string[], env: Readonly<Record<string, string>>): Promise<boolean> {
  await using place = await scratch();
  const { stdout, stderr } = await runProgram("bin/harness", args, { home: place.path, env });
  assert.notEqual(stdout + stderr, "");
  return (stdout + stderr).includes(ESCAPE);
}

test("without a terminal nothing is coloured, unless it is forced", async () => {
  assert.equal(await colours(MISTAKE, {}), false);
  assert.equal(await colours(["config", "list"], {}), false);
  assert.equal(await colours(["--help"], {}), false);
  assert.equal(await colours(MISTAKE, { FORCE_COLOR: "1" }), true);
});

test("--no-color takes precedence over FORCE_COLOR", async () => {
  assert.equal(await colours([...MISTAKE, "--no-color"], { FORCE_COLOR: "1" }), false);
});

const SCRIPT = "/usr/bin/script";
const skip = !existsSync(SCRIPT) && "script(1) makes the terminal of this test and is not here";

/** What harness shows on a terminal of its own. */
async function onTerminal(words: string, env: Readonly<Record<string, string>> = {}): Promise<string> {
  await using place = await scratch();
  const home = {
    ...COMPILED,
    HOME: place.path,
    PATH: "/usr/bin:/bin",
    TERM: "xterm-256color",
    HARNESS_NODE: process.execPath,
  };
  const child = promisify(execFile)(SCRIPT, ["-qec", `${HARNESS} ${words}; true`, "/dev/null"], {
    env: { ...home, ...env },
  });
  return (await child).stdout;
}

test("a terminal gets colours, and none with NO_COLOR or --no-color", { skip }, async () => {
  assert.match(await onTerminal("config get --bogus"), /\u001B\[31merror:/);
  assert.match(
    await onTerminal("config get --bogus", { NO_COLOR: "1" }),
    /^error: Nonexistent flag: --bogus/,
  );
  assert.match(await onTerminal("config get --bogus --no-color"), /^error: Nonexistent flag: --bogus/);
});

test("--no-color also applies to an unknown command", { skip }, async () => {
  assert.match(await onTerminal("bogus --no-color"), /^error: command bogus not found/);
});

const ANSWERS = [
  ["config", "list"],
  ["config", "list", "--json"],
  ["config", "get", "mode"],
  ["--help"],
  ["--version"],
];

for (const args of ANSWERS)
  test(`harness ${args.join(" ")} ends quietly when its reader has closed`, async () => {
    await using place = await scratch();
    const env = { ...COMPILED, HOME: place.path, PATH: process.env["PATH"] ?? "" };
    // The reader is a program of its own: this process must not close a pipe of node's before it is read.
    const line = '{ "$0" "$@"; echo "code $?" >&2; } | true';
    const { stderr } = await promisify(execFile)("/bin/sh", ["-c", line, HARNESS, ...args], { env });
    assert.equal(stderr, "code 0\n");
  });

test("a run ends normally when the reader of its answer has closed", async () => {
  await using place = await scratch();
  const env = { ...COMPILED, HOME: place.path, PATH: process.env["PATH"] ?? "" };
  await place.write("model.jsonl", JSON.stringify({ reply: ["Hello."] }));
  const words = ["run", "--quiet", "--provider", "scripted", "--model", place.at("model.jsonl"), "hello"];
  const line = '{ "$0" "$@"; echo "code $?" >&2; } | true';
  const shell = promisify(execFile)("/bin/sh", ["-c", line, HARNESS, ...words], { env, cwd: place.path });
  assert.equal((await shell).stderr, "code 0\n");
});

test("harness config list | head -n 1 shows one line and nothing on stderr", async () => {
  await using place = await scratch();
  const env = { ...COMPILED, HOME: place.path, PATH: process.env["PATH"] ?? "" };
  const piped = promisify(execFile)("/bin/sh", ["-c", `"${HARNESS}" config list | head -n 1`], { env });
  const { stdout, stderr } = await piped;
  assert.deepEqual([stdout.replaceAll(/ {2,}/g, "  "), stderr], ["provider  ollama  default\n", ""]);
});

for (const flag of ["--help", "-h"])
  test(`${flag} lists the commands and ends with 0`, async () => {
    await using place = await scratch();
    const { code, stdout, stderr } = await runProgram("bin/harness", [flag], { home: place.path });
    const names = [...stdout.matchAll(/^ {2}([a-z]+) {2,}[A-Z]/gm)].map((match) => match[1]);
    assert.deepEqual([code, stderr], [0, ""]);
    for (const name of ["config", "demo", "doctor", "sandbox"])
      assert.ok(names.includes(name), `${name} in ${names.join(", ")}`);
    for (const hidden of ["setup", "teardown"]) assert.equal(names.includes(hidden), false);
  });

test("a topic's help lists its commands", async () => {
  await using place = await scratch();
  const { code, stdout } = await runProgram("bin/harness", ["config", "--help"], { home: place.path });
  const names = [...stdout.matchAll(/^ {2}config ([a-z]+) {2,}[A-Z]/gm)].map((match) => match[1]);
  assert.deepEqual([code, names], [0, ["get", "list", "set"]]);
});

const SCRIPTS: Readonly<Record<string, readonly [program: string, args: readonly string[], code: number]>> = {
  "start.sh --help": ["start.sh", ["--help"], 0],
  "start.sh -h": ["start.sh", ["--yes", "-h"], 0],
  "stop.sh --help": ["stop.sh", ["--help"], 0],
};

for (const [name, [program, args, code]] of Object.entries(SCRIPTS))
  test(`${name} shows its usage and does nothing`, async () => {
    await using place = await scratch();
    const ended = await runProgram(program, args, { home: place.path });
    assert.deepEqual([ended.code, ended.stderr], [code, ""]);
    assert.match(ended.stdout, new RegExp(`^Usage: \\./${program} `));
  });

const NEXT: Readonly<Record<string, string>> = {
  "start.sh": "error: unknown option --bogus\n  next: ./start.sh --help\n",
  "stop.sh": "error: Nonexistent flag: --bogus\n  next: harness teardown --help\n",
};

for (const [program, stderr] of Object.entries(NEXT))
  test(`${program} refuses an unknown option with 2`, async () => {
    await using place = await scratch();
    const ended = await runProgram(program, ["--bogus"], { home: place.path });
    assert.deepEqual(ended, { code: 2, stdout: "", stderr });
  });

/** What a command line of the shell, with harness as `$0`, says and ends with. */
async function inShell(line: string, env: Readonly<Record<string, string>> = {}): Promise<Ended> {
  await using place = await scratch();
  const child = spawn("/bin/sh", ["-c", line, HARNESS], {
    env: { ...COMPILED, PATH: "/usr/bin:/bin", ...env, HOME: place.path },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let [stdout, stderr] = ["", ""];
  child.stdout.on("data", (chunk: Buffer) => (stdout += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (stderr += chunk.toString()));
  const code = await new Promise<number | null>((resolve) => child.once("close", resolve));
  return { code, stdout, stderr };
}

for (const words of ["--version", "config list", "config get mode --json"])
  test(`harness ${words} on a full device reports it and ends with 1`, async () => {
    const { code, stderr } = await inShell(`exec "$0" ${words} >/dev/full`);
    const [error, next, ...rest] = stderr.trimEnd().split("\n");
    assert.match(error ?? "", /^error: the answer could not be written: ENOSPC/);
    assert.match(next ?? "", /^ {2}next: .*df -h/);
    assert.deepEqual([code, rest], [1, []]);
  });

test("an unwritable stderr does not change the exit code", async () => {
  const ends = ["2>/dev/full", "2>&-"].map(
    async (to) => (await inShell(`exec "$0" config get nonsense ${to}`)).code,
  );
  const closed = inShell('{ { sleep 0.2; "$0" nonsense 2>&1 >/dev/null; echo $? >&3; } | true; } 3>&1');
  assert.deepEqual([...(await Promise.all(ends)), (await closed).stdout], [2, 2, "2\n"]);
});

test("an engine at a port is contacted without warnings from Node", async () => {
  const { stderr } = await inShell('exec "$0" demo', { DOCKER_HOST: "tcp://127.0.0.1:1" });
  assert.match(stderr, /^status .*\(exit 6\): the container engine does not answer at tcp:/m);
  assert.doesNotMatch(stderr, /Warning/);
});

test("in a deleted folder a command reports it and ends with 2", async () => {
  const { code, stderr } = await inShell(
    'mkdir "$HOME/gone"; cd "$HOME/gone"; rmdir "$PWD"; exec "$0" config list',
  );
  assert.equal(code, 2);
  assert.match(stderr, /error: the current folder no longer exists\n {2}next: cd /);
});

test("every command with --json prints its error to stdout as one line of JSON", async () => {
  const manifest = JSON.parse(await readFile(path.join(ROOT, "oclif.manifest.json"), "utf8")) as {
    readonly commands: Readonly<Record<string, { readonly flags: Readonly<Record<string, unknown>> }>>;
  };
  const names = Object.entries(manifest.commands).flatMap(([id, { flags }]) => ("json" in flags ? [id] : []));
  assert.ok(names.length > 20, names.join(" "));
  await using place = await scratch();
  // One way for all of them: a third in each run, HARNESS_CASES=3 all.
  const [turn, share] = [randomInt(3), many(1)];
  for (const [at, name] of names.entries()) {
    if ((at + turn) % 3 >= share) continue;
    const ran = await runProgram("bin/harness", [...name.split(":"), "--json", "--bogus"], {
      home: place.path,
    });
    const { error } = JSON.parse(ran.stdout) as { error: { message: string; exit_code: number } };
    assert.match(error.message, /bogus/, name);
    assert.deepEqual([error.exit_code, ran.code, ran.stderr], [2, 2, ""], name);
  }
});
