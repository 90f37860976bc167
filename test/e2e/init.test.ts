import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import path from "node:path";
import test, { describe } from "node:test";
import { type Ended, runProgram } from "../fixtures/cli.ts";
import { scratch } from "../fixtures/scratch.ts";
import { startFakeOllama } from "../fakes/ollama-server.ts";
import { ROOT } from "./package.ts";
import { noTerminal, onTerminal } from "./terminal.ts";

type Place = Awaited<ReturnType<typeof scratch>>;

/** The other servers' ports may be taken on a machine, so that Ollama alone is asked. */
const init = (place: Place, server: string, words: readonly string[]): Promise<Ended> =>
  runProgram("bin/harness", ["init", "--provider", "ollama", ...words], {
    home: place.path,
    env: { XDG_CONFIG_HOME: place.at("config"), OLLAMA_HOST: server },
  });

const models = [
  { name: "qwen3:8b", size: 5000, capabilities: ["completion", "tools"] },
  { name: "gemma3:4b", size: 5000, capabilities: ["completion"] },
];

interface Told {
  readonly file: string;
  readonly written: boolean;
}

const alone =
  spawnSync("unshare", ["-rn", "true"]).status === 0
    ? false
    : "no network namespace may be made here (unshare -rn)";

/** What to type next after a run whose model is at an address without a listener. */
async function nextOf(place: Place, words: readonly string[], env: Record<string, string> = {}) {
  const run = spawnSync("unshare", ["-rn", path.join(ROOT, "bin/harness"), "run", ...words, "hello"], {
    cwd: place.at("work"),
    env: { PATH: process.env["PATH"], HOME: place.path, ...env },
    encoding: "utf8",
  });
  assert.equal(run.status, 5, run.stderr);
  return /^next {6}(.*)$/m.exec(run.stderr)?.[1];
}

describe("init", () => {
  test("init is suggested when a run cannot reach a model that nobody chose", { skip: alone }, async () => {
    await using place = await scratch({ "work/x": "" });
    assert.equal(await nextOf(place, []), "harness init");
    assert.equal(await nextOf(place, ["--model", "mine:8b"]), "harness doctor");
    assert.equal(await nextOf(place, [], { HARNESS_BASE_URL: "http://127.0.0.1:9" }), "harness doctor");
  });

  test("without a terminal it shows what it would write, and with --yes it writes that", async () => {
    await using place = await scratch({ x: "" });
    await using fake = await startFakeOllama({ models });
    const asked = await init(place, fake.url, []);
    assert.equal(asked.code, 2, asked.stderr);
    assert.match(asked.stdout, /provider = ollama\n {2}chat_model = qwen3:8b\nnothing was written/);
    const done = await init(place, fake.url, ["--yes", "--json"]);
    assert.equal(done.code, 0, done.stderr);
    const told = JSON.parse(done.stdout) as Told;
    assert.equal(told.written, true);
    assert.deepEqual(JSON.parse(await readFile(told.file, "utf8")), {
      base_url: fake.url,
      provider: "ollama",
      chat_model: "qwen3:8b",
    });
    const again = await init(place, fake.url, []);
    assert.equal(again.code, 0);
    assert.match(again.stdout, /already name it/);
    const other = await init(place, fake.url, ["--yes", "--model", "gemma3:4b"]);
    assert.equal(other.code, 0);
    assert.match(
      other.stdout,
      /your own settings stay \(chat_model qwen3:8b\).*harness config set chat_model gemma3:4b/,
    );
    assert.match(await readFile(told.file, "utf8"), /qwen3:8b/);
  });

  test("with --json nothing is asked, not even at a terminal", { skip: noTerminal }, async () => {
    await using place = await scratch({ "work/x": "" });
    await using fake = await startFakeOllama({ models });
    const env = { XDG_CONFIG_HOME: place.at("config"), OLLAMA_HOST: fake.url, HARNESS_CHAT_MODEL: "" };
    const words = ["init", "--provider", "ollama", "--json"];
    await using asked = onTerminal(place, words, env);
    assert.equal(await asked.ended, 2);
    const told = JSON.parse(asked.screen().trim()) as Told;
    assert.equal(told.written, false);
    assert.equal(existsSync(told.file), false);
    await using done = onTerminal(place, [...words, "--yes"], env);
    assert.equal(await done.ended, 0);
    assert.equal((JSON.parse(done.screen().trim()) as Told).written, true);
  });

  test("without a server it reports what was tried, and ends with 5", async () => {
    await using place = await scratch({ x: "" });
    const gone = await startFakeOllama();
    await gone[Symbol.asyncDispose]();
    const ended = await init(place, gone.url, ["--yes"]);
    assert.equal(ended.code, 5);
    assert.ok(ended.stderr.includes(gone.url), ended.stderr);
    assert.match(ended.stderr, /ollama serve/);
  });
});

test(
  "Ctrl-D at a question is a no, and Ctrl-C ends with 130; nothing is written",
  { skip: noTerminal },
  async () => {
    await using server = await startFakeOllama({ models });
    for (const [before, key, wanted, code] of [
      ["", "\u0004", /nothing was written/, 0],
      ["", "\u0003", /interrupted\s+next: harness init/, 130],
      ["1\r", "\u0004", /nothing was written/, 0],
      ["1\r", "\u0003", /interrupted\s+next: harness init/, 130],
    ] as const) {
      await using place = await scratch();
      await place.write("work/a", "");
      await using terminal = onTerminal(place, ["init", "--provider", "ollama"], { OLLAMA_HOST: server.url });
      await terminal.until(/Which one\? \[[^\]]*\] $/);
      terminal.type(before);
      if (before !== "") await terminal.until(/Write this\? \[y\/N\] $/);
      terminal.type(key);
      await terminal.until(wanted);
      assert.equal(await terminal.ended, code, terminal.screen());
      assert.doesNotMatch(terminal.screen(), /internal error/);
      assert.equal(existsSync(place.at(".config/harness/config.json")), false);
    }
  },
);
