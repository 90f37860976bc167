import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { mkdir, readdir, writeFile } from "node:fs/promises";
import test, { after, describe } from "node:test";
import { hostFrom } from "../../src/app/host.ts";
import { SETTING_KEYS } from "../../src/config/settings-schema.ts";
import { filesOf } from "../../src/docker/environments/environment-record.ts";
import { type Ended, runProgram } from "../fixtures/cli.ts";
import { scratch, type Scratch } from "../fixtures/scratch.ts";

const USER = ".config/harness/config.json";
type Env = Readonly<Record<string, string>>;

/** Compiled code is kept between these tests, so that each start is as quick as a user's. */
const cache = await scratch();
after(() => cache[Symbol.asyncDispose]());

const harness = (place: Scratch, args: readonly string[], env: Env = {}): Promise<Ended> =>
  runProgram("bin/harness", args, { home: place.path, env: { XDG_CACHE_HOME: cache.path, ...env } });

const ok = (stdout: string): Ended => ({ code: 0, stdout, stderr: "" });

const printed = (message: string, remedy: string): string => `error: ${message}\n  next: ${remedy}\n`;

const KNOWN = `known keys: ${SETTING_KEYS.join(", ")}`;
const SIZE = "expected a size such as 256m or 2g, from 64m to 4t";

interface Mistake {
  readonly args: readonly string[];
  readonly file?: string;
  readonly env?: Env;
  /** With FILE for the path of the user's config file. */
  readonly message: string;
  readonly remedy?: string;
}

const MISTAKES: Readonly<Record<string, Mistake>> = {
  "an unknown flag": {
    args: ["config", "get", "mode", "--bogus"],
    message: "Nonexistent flag: --bogus",
    remedy: "harness config get --help",
  },
  "a misspelt flag": {
    args: ["config", "get", "mode", "--jsn"],
    message: "Nonexistent flag: --jsn; did you mean --json?",
    remedy: "harness config get --help",
  },
  "a flag that its own words refuse": {
    args: ["approve", "x", "--edit", ""],
    message: "--edit needs a command",
    remedy: 'harness approve ID --edit "make test"',
  },
  "a misspelt flag of the chat": {
    args: ["--provder=ollama"],
    message: "Nonexistent flag: --provder=ollama; did you mean --provider?",
    remedy: "harness chat --help",
  },
  "a command named as in other programs": {
    args: ["notes", "rm", "x"],
    message: "command notes rm x not found; did you mean notes remove?",
    remedy: "harness notes remove --help",
  },
  "a server without command and address": {
    args: ["mcp", "add", "x"],
    message: "x needs a command or an address",
    remedy: "harness mcp add x -- CMD...   (or --url URL)",
  },
  "a repository without a name": {
    args: ["vet", ""],
    message: "the name of the repository is empty",
    remedy: "harness vet FOLDER   (or an archive, or https://HOST/OWNER/NAME)",
  },
  "a time limit of vet that is none": {
    args: ["vet", "--max-time", "0", "."],
    message: '--max-time: expected a duration such as 90, 90s, 30m or 2h, found "0"',
    remedy: "harness vet --max-time 5m .",
  },
  "commits of a folder that is not a repository": {
    args: ["vet", "--diff", "a..b", "/usr/share"],
    message: "/usr/share is not a git repository, so it has no commits to compare",
    remedy: "harness vet OLDER NEWER   (two folders, archives or addresses)",
  },
  "a misspelt value of a flag": {
    args: ["run", "--provider", "olama", "x"],
    message:
      "Expected --provider=olama to be one of: ollama, openai, anthropic, gemini, deepseek, openrouter, mistral, groq, lmstudio, vllm, llamacpp, scripted; did you mean ollama?",
    remedy: "harness run --help",
  },
  "flags that exclude each other": {
    args: ["approve", "x", "--once", "--deny"],
    message: "--deny and --once cannot be used together",
    remedy: "harness approve --help",
  },
  "a flag without the one it depends on": {
    args: ["approve", "x", "--because", "y"],
    message: "--because can only be used with --deny",
    remedy: "harness approve --help",
  },
  "a number out of range": {
    args: ["search", "x", "--limit", "-1"],
    message: "--limit: expected an integer greater than or equal to 1 but received: -1",
    remedy: "harness search --help",
  },
  "a missing argument after a flag with several values": {
    args: ["approve"],
    message: "Missing 1 required arg:\nid  session ID, or the beginning of it",
    remedy: "harness approve --help",
  },
  "a setting with an impossible value": {
    args: ["config", "set", "pids", "-1"],
    message: "pids: expected a whole number from 16 to 4000000, found -1",
    remedy: "harness config set pids VALUE",
  },
  "a flag with an impossible value": {
    args: ["run", "x", "--max-turns", "0"],
    message: "--max-turns: expected a whole number from 1 to 10000, found 0",
    remedy: "give it another value, or leave it out",
  },
  "an API without its key": {
    args: ["run", "--provider", "anthropic", "hello"],
    message: "ANTHROPIC_API_KEY is not set; https://api.anthropic.com needs it",
    remedy: "export ANTHROPIC_API_KEY=KEY",
  },
  "a folder with an empty name": {
    args: ["undo", "--cwd", ""],
    message: "--cwd needs a folder",
    remedy: "--cwd FOLDER, or leave it out",
  },
  "an optional folder with an empty name": {
    args: ["policy", "path", "a", "--op", "write", "--cwd", ""],
    message: "--cwd needs a folder",
  },
  "a page without a name": {
    args: ["report", "--html", ""],
    message: "--html needs a file name",
    remedy: "--html FILE",
  },
  "an undo with both --redo and --to": {
    args: ["undo", "--redo", "--to", "3"],
    message: "--redo and --to cannot be used together",
    remedy: "harness undo --help",
  },
  "a folder inside the named folder": {
    args: ["index", "sub", "--cwd", "/nowhere"],
    message: "there is no folder /nowhere/sub: ENOENT: no such file or directory, realpath '/nowhere/sub'",
  },
  "an unknown command": { args: ["bogus"], message: "command bogus not found" },
  "a misspelt command with its arguments": {
    args: ["rnu", "hello"],
    message: "command rnu hello not found; did you mean run?",
    remedy: "harness run --help",
  },
  "a misspelt topic": {
    args: ["polciy", "x"],
    message: "command polciy x not found; did you mean policy?",
    remedy: "harness policy --help",
  },
  "a repository without TLS": {
    args: ["vet", "http://example.org/a.git"],
    message: "http://example.org/a.git: without TLS, anyone on the network path could change it",
    remedy: "harness vet https://example.org/a.git",
  },
  "a command to run without the dashes before it": {
    args: ["sandbox", "exec", "ls"],
    message: "sandbox exec: unexpected argument: ls",
    remedy: "harness sandbox exec -- ls",
  },
  "a command to judge without the dashes, after a flag": {
    args: ["policy", "check", "--explain", "git", "status"],
    message: "policy check: unexpected argument: git status",
    remedy: "harness policy check -- git status",
  },
  "a value for a switch, which would be a word of the task": {
    args: ["run", "--record=proposed.toml", "do it"],
    message: "--record takes no value, found proposed.toml",
    remedy: "--record",
  },
  "a missing required flag": {
    args: ["policy", "path", "a"],
    message: "Missing required flag --op",
    remedy: "harness policy path --help",
  },
  "a missing argument": {
    args: ["config", "get"],
    message: "Missing 1 required arg:\nkey  name of a setting, e.g. mode or search.store",
    remedy: "harness config get --help",
  },
  "an argument too many": {
    args: ["config", "get", "mode", "pids"],
    message: "Unexpected argument: pids",
    remedy: "harness config get --help",
  },
  "a misspelt setting": {
    args: ["config", "get", "chat_modle"],
    message: "chat_modle: unknown key; did you mean chat_model?",
    remedy: "harness config list",
  },
  "a setting similar to no other": {
    args: ["config", "set", "sandbox", "off"],
    message: `sandbox: unknown key; ${KNOWN}`,
    remedy: "harness config list",
  },
  "a broken config file": {
    args: ["config", "get", "mode"],
    file: '{\n  "mode": "read-only",,\n}\n',
    message: "FILE:2:23: property name expected; expected a JSON object",
  },
  "an unknown key in the config file": {
    args: ["config", "list"],
    file: '{\n  "memroy": "1g"\n}\n',
    message: "FILE:2:13: memroy: unknown key; did you mean memory?",
  },
  "a value out of range in the config file": {
    args: ["config", "list"],
    file: '{"pids": 1}',
    message: "FILE:1:10: pids: expected a whole number from 16 to 4000000, found 1",
  },
  "a variable that is not a size": {
    args: ["config", "get", "mode"],
    env: { HARNESS_MEMORY: "lots" },
    message: `HARNESS_MEMORY: ${SIZE}, found "lots"`,
  },
};

describe("a mistake", { concurrency: 3 }, () => {
  for (const [name, { args, file, env = {}, message, remedy }] of Object.entries(MISTAKES)) {
    const given = (json: boolean) => async () => {
      await using place = await scratch(file === undefined ? {} : { [USER]: file });
      const ended = await harness(place, json ? [...args, "--json"] : args, env);
      const text = message.replace("FILE", place.at(USER));
      if (json) {
        const { error } = JSON.parse(ended.stdout) as { error: Readonly<Record<string, unknown>> };
        const wanted = { message: text, remedy: remedy ?? error["remedy"], exit_code: 2 };
        assert.deepEqual(ended, { code: 2, stdout: `${JSON.stringify({ error: wanted })}\n`, stderr: "" });
      } else {
        const next = remedy ?? ended.stderr.split("next: ")[1]?.trim() ?? "";
        assert.deepEqual(ended, { code: 2, stdout: "", stderr: printed(text, next) });
      }
    };
    test(`${name} ends with 2 and a message on stderr`, given(false));
    test(`${name} with --json is one object on stdout`, given(true));
  }
});

test("a page and JSON cannot both be written to stdout", async () => {
  await using place = await scratch();
  for (const words of [["report"], ["vet", "."]]) {
    const { code, stdout } = await harness(place, [...words, "--html", "-", "--json"]);
    const { error } = JSON.parse(stdout) as { error: Readonly<Record<string, unknown>> };
    assert.deepEqual([code, error["message"]], [2, "--html - and --json both write to stdout"]);
  }
});

test("results of an eval can be compared as JSON too", async () => {
  const row = {
    task: "one",
    language: "sh",
    nth: 1,
    exit_code: 0,
    status: "done",
    reason: "",
    check_exit_code: 0,
    check_output: "",
    solved: true,
    false_done: false,
    refusals: 0,
    turns: 2,
    tool_calls: 1,
    prompt_tokens: null,
    completion_tokens: null,
    duration_ms: 1,
  };
  await using place = await scratch({
    "a/results.jsonl": `${JSON.stringify(row)}\n`,
    "b/results.jsonl": `${JSON.stringify({ ...row, solved: false, false_done: true })}\n`,
  });
  const words = ["eval", "suite", "--out", place.at("b"), "--compare", place.at("a"), "--json"];
  const { code, stdout } = await harness(place, words);
  const [task, last] = stdout
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>);
  const { a, b, task: name } = task as Record<"a" | "b", Record<string, number>> & { task: string };
  assert.deepEqual([code, name, a["solved"], b["solved"], b["false_done"]], [0, "one", 1, 0, 1]);
  assert.deepEqual(last, { summary: { a, b } });
});

test("the output of an environment's last build is an object with --json", async () => {
  await using place = await scratch({ "repo/a": "" });
  const { log, folder } = filesOf(hostFrom({ HOME: place.path }).places.state, place.at("repo"), "");
  await mkdir(folder, { recursive: true });
  await writeFile(log, "fetched\nbuilt\n");
  const { code, stdout } = await harness(place, [
    "env",
    "show",
    "--log",
    "--json",
    "--cwd",
    place.at("repo"),
  ]);
  assert.deepEqual([code, JSON.parse(stdout)], [0, { workspace: place.at("repo"), log: "fetched\nbuilt\n" }]);
});

test("a run that cannot start leaves no session that a later command would take for the last one", async () => {
  await using place = await scratch();
  await harness(place, ["run", "--provider", "anthropic", "hello"]);
  const { code, stdout } = await harness(place, ["sessions", "list", "--all", "--json"]);
  assert.deepEqual([code, stdout], [0, ""]);
});

test("the advice for an unknown command works", async () => {
  await using place = await scratch();
  for (const words of [["bogus"], ["config", "bogus"]]) {
    const { stderr } = await harness(place, words);
    const advice = /next: harness (.+)\n$/.exec(stderr)?.[1]?.split(" ") ?? [];
    const { code } = await harness(place, advice);
    assert.deepEqual([words, advice, code], [words, advice, 0]);
  }
});

test("mutually exclusive flags are separated in the usage line, and none is empty", async () => {
  await using place = await scratch();
  for (const command of ["approve", "replay", "diff"]) {
    const { stdout } = await harness(place, [command, "--help"]);
    const [, usage = ""] = /^USAGE\n([^]*?)\n\n/m.exec(stdout) ?? [];
    assert.match(usage.replaceAll(/\s+/g, " "), new RegExp(`harness ${command} .*\\|`), command);
    assert.doesNotMatch(usage, /\|\s*[|\]]/, command);
  }
});

test("the advice for a broken config file is not the command that just failed", async () => {
  await using place = await scratch({ [USER]: "{" });
  const { stderr } = await harness(place, ["config", "list"]);
  assert.doesNotMatch(stderr, /next: .*harness config list/);
});

test("a word after -- is an argument, even if it looks like an output flag", async () => {
  await using place = await scratch();
  const { code, stdout } = await harness(place, ["config", "get", "--", "--json"]);
  assert.deepEqual([code, stdout], [2, ""]);
});

test("config set, get and list agree on the values, and set keeps everything else", async () => {
  await using place = await scratch({ [USER]: '{\n  // mine\n  "pids": 64,\n  "mode": "read-only"\n}\n' });
  const file = place.at(USER);
  assert.deepEqual(await harness(place, ["config", "set", "pids", "65"]), ok(`pids is set in ${file}\n`));
  assert.equal(await place.read(USER), '{\n  // mine\n  "pids": 65,\n  "mode": "read-only"\n}\n');
  assert.deepEqual(await harness(place, ["config", "get", "pids"]), ok("65\n"));
  const got = JSON.stringify({ key: "pids", value: 65, origin: file });
  assert.deepEqual(await harness(place, ["config", "get", "pids", "--json"]), ok(`${got}\n`));
  const set = JSON.stringify({ key: "mode", file });
  assert.deepEqual(
    await harness(place, ["config", "set", "mode", "workspace-write", "--json"]),
    ok(`${set}\n`),
  );
  const listed = await harness(place, ["config", "list", "--json"], { HARNESS_CPUS: "2" });
  const { pids, mode, cpus, timeout, ...rest } = JSON.parse(listed.stdout) as Record<string, unknown>;
  assert.equal(listed.stdout.split("\n").length, 2);
  assert.deepEqual(
    { pids, mode, cpus, timeout },
    {
      pids: { value: 65, origin: file },
      mode: { value: "workspace-write", origin: file },
      cpus: { value: 2, origin: "HARNESS_CPUS" },
      timeout: { value: 120_000, origin: "default" },
    },
  );
  assert.equal(Object.keys(rest).length, SETTING_KEYS.length - 4);
});

test("config list has one line per setting: key, value, origin", async () => {
  await using place = await scratch();
  const { code, stdout, stderr } = await harness(place, ["config", "list"], { HARNESS_MEMORY: "256m" });
  const rows = stdout
    .trimEnd()
    .split("\n")
    .map((line) => line.split(/ {2,}/));
  assert.deepEqual([code, stderr, rows.map(([key]) => key)], [0, "", SETTING_KEYS]);
  assert.deepEqual(rows[SETTING_KEYS.indexOf("memory")], ["memory", "256m", "HARNESS_MEMORY"]);
});

test("config set says when a variable overrides the file", async () => {
  await using place = await scratch();
  const ended = await harness(place, ["config", "set", "pids", "65"], { HARNESS_PIDS: "66" });
  assert.deepEqual([ended.code, ended.stderr], [0, "note: HARNESS_PIDS is set and overrides the file\n"]);
});

test("a refused config set leaves no file", async () => {
  await using place = await scratch();
  assert.equal((await harness(place, ["config", "set", "pids", "1"])).code, 2);
  assert.equal(existsSync(place.at(USER)), false);
});

test("each part of search names its origin", async () => {
  await using place = await scratch({ [USER]: '{"search": {"store": "embedded"}}' });
  const env = { HARNESS_SEARCH_URL: "http://127.0.0.1:7000" };
  const { stdout } = await harness(place, ["config", "get", "search.store", "--json"], env);
  assert.deepEqual(JSON.parse(stdout), { key: "search.store", value: "embedded", origin: place.at(USER) });
});

for (const key of ["memory", "timeout", "pids", "search.store"])
  test(`config set accepts what config get prints for ${key}`, async () => {
    await using place = await scratch();
    const value = (await harness(place, ["config", "get", key])).stdout.trim();
    assert.equal((await harness(place, ["config", "set", key, value])).code, 0, `${key} ${value}`);
  });

test("an empty HOME does not make files of the current folder the user's, and leaves nothing there", async () => {
  await using place = await scratch({ "repo/.harness/config.json": '{"mode": "danger-full-access"}' });
  const { stdout } = await runProgram("bin/harness", ["config", "get", "mode"], {
    home: place.path,
    cwd: place.at("repo"),
    env: { HOME: "" },
  });
  assert.deepEqual([stdout, await readdir(place.at("repo"))], ["workspace-write\n", [".harness"]]);
});

test("a relative XDG_CACHE_HOME leaves nothing in the current folder", async () => {
  await using place = await scratch();
  await mkdir(place.at("repo"));
  const start = { home: place.at("home"), cwd: place.at("repo"), env: { XDG_CACHE_HOME: "cache" } };
  await runProgram("bin/harness", ["config", "get", "mode"], start);
  assert.deepEqual(await readdir(place.at("repo")), []);
});

test("help before a command is its --help, and help alone lists all commands", async () => {
  await using place = await scratch();
  for (const [asked, same] of [
    [["help"], ["--help"]],
    [
      ["help", "sessions", "show"],
      ["sessions", "show", "--help"],
    ],
  ] as const)
    assert.deepEqual(await harness(place, asked), await harness(place, same));
  assert.equal((await harness(place, ["help", "bogus"])).code, 2);
});

test("a state folder that cannot be created ends the command with the cause", async () => {
  await using place = await scratch({ file: "" });
  for (const state of ["/proc", place.at("file")]) {
    const { code, stderr } = await harness(place, ["report"], { XDG_STATE_HOME: state });
    assert.deepEqual([code, /it cannot be reached[^]*\n {2}next: /.test(stderr)], [1, true], stderr);
  }
});
