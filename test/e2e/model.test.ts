import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import test, { after, describe } from "node:test";
import { type Ended, runProgram } from "../fixtures/cli.ts";
import { scratch } from "../fixtures/scratch.ts";
import { type ChatCall, chatLine, doneLine } from "../fakes/ollama-chat.ts";
import { type FakeOllama, sendJson, startFakeOllama } from "../fakes/ollama-server.ts";

/** Compiled code is kept between these tests, so that each start is as quick as a user's. */
const place = await scratch({ "w/x": "", "home/x": "" });
after(() => place[Symbol.asyncDispose]());

const run = (words: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Ended> =>
  runProgram("bin/harness", ["model", ...words], {
    home: place.at("home"),
    cwd: place.at("w"),
    env: { XDG_CACHE_HOME: place.path, XDG_CONFIG_HOME: place.at("none"), ...env },
  });

const CODE = 'function f() {\n  return {"a": [1, 2]};\n}';
const read = (title: string): ChatCall => ({ name: "read_note", args: { title } });

interface AskedFormat {
  readonly format?: unknown;
  readonly messages: readonly { readonly content: string }[];
}

const calls = (...made: readonly ChatCall[]): string => chatLine({ calls: made });

/** What a good model answers to the prompts of a probe. */
function answerTo(body: unknown): string {
  const { messages } = body as { readonly messages: readonly { readonly content: string }[] };
  const prompt = messages.at(-1)?.content ?? "";
  if (prompt.startsWith("Two notes")) return calls(read("alpha"), read("beta"));
  if (prompt.includes("write_note"))
    return calls({ name: "write_note", args: { title: "code", text: CODE } });
  if (prompt.startsWith("Call no tool")) return chatLine({ content: "It is a call of read_note." });
  return calls(read("alpha"));
}

const serving = (answer: (body: unknown) => string): Promise<FakeOllama> =>
  startFakeOllama({
    models: [
      { name: "qwen3:8b", size: 5000, trained: 8192 },
      { name: "gemma3:4b", size: 5000, trained: 16_384, capabilities: ["completion"] },
      { name: "all-minilm", size: 50, trained: 512, capabilities: ["embedding"] },
    ],
    routes: {
      "/api/chat": (body, response) => {
        response.writeHead(200, { "content-type": "application/x-ndjson" });
        response.end(answer(body) + doneLine());
      },
    },
  });

describe("model", { concurrency: 3 }, () => {
  test("list shows the server's models, and what is assumed and why", async () => {
    await using fake = await serving(answerTo);
    const state = { XDG_STATE_HOME: place.at("list"), OLLAMA_HOST: fake.url };
    assert.deepEqual(await run(["list"], state), {
      code: 0,
      stdout: `  model      window         native tools  calls          thinking    cache
* qwen3:8b   8,192 server   yes server    native server  yes server  yes server
  gemma3:4b  16,384 server  no server     text server    no server   yes server
  all-minilm  only embeds, for search; cannot chat
`,
      stderr: "",
    });
    const { stdout } = await run(["list", "--json", "--model", "mine"], state);
    const lines = stdout.trimEnd().split("\n");
    assert.deepEqual(JSON.parse(lines[0] ?? ""), {
      model: "mine",
      configured: true,
      present: false,
      kind: "chat",
      context: 32_768,
      tools: false,
      calls: "text",
      thinking: false,
      cache: true,
      origin: { context: "guess", tools: "guess", calls: "guess", thinking: "guess", cache: "server" },
    });
    assert.equal(lines.length, 4);
    assert.equal((JSON.parse(lines[3] ?? "") as { kind: string }).kind, "embedding");
  });

  test("a probe's result is stored, shown and used", async () => {
    await using fake = await serving(answerTo);
    const env = { XDG_STATE_HOME: place.at("probe"), OLLAMA_HOST: fake.url };
    const { code, stdout } = await run(["probe"], env);
    assert.deepEqual(
      [code, stdout],
      [
        0,
        `qwen3:8b at ${fake.url} (0.12.6)
ok    one call
ok    two calls in one reply
ok    braces and newlines in a string
ok    JSON that is only quoted
calls that got through: native 4 of 4
native calls work and are used
`,
      ],
    );
    const kept = JSON.parse(await place.read("probe/harness/probes.json")) as {
      readonly probes: readonly object[];
    };
    assert.equal(kept.probes.length, 1);
    const listed = await run(["list"], env);
    assert.match(listed.stdout, /^\* qwen3:8b +8,192 server +yes probe/m);
    const sent = fake.requests.filter(({ path }) => path === "/api/chat");
    assert.deepEqual(
      new Set(sent.map(({ body }) => (body as { options: { num_ctx: number } }).options.num_ctx)),
      new Set([8192]),
    );
  });

  test("a model that calls only when constrained is constrained from then on", async () => {
    await using fake = await serving((body) => {
      const { format, messages } = body as AskedFormat;
      if (format === undefined) return chatLine({ content: "You can use read_note for that." });
      const call = messages.at(-1)?.content.includes("write_note")
        ? { tool: "write_note", arguments: { title: "code", text: CODE } }
        : { tool: "read_note", arguments: { title: "alpha" } };
      return chatLine({ content: JSON.stringify(call) });
    });
    const env = { XDG_STATE_HOME: place.at("held"), OLLAMA_HOST: fake.url };
    const { code, stdout, stderr } = await run(["probe", "gemma3:4b"], env);
    assert.equal(code, 0);
    assert.doesNotMatch(stderr, /counts as large/);
    const unsized = await run(["probe", "mine"], env);
    assert.match(
      unsized.stderr,
      /^note: neither the name nor the server says how large mine is, so it counts as large.*"capabilities": \[\{"prefix":"mine","parameters":\d+\}\]$/m,
    );
    assert.match(
      stdout,
      /\nok {4}a call held to a schema\ncalls that got through: native 0 of 4, text 0 of 4, held 4 of 4\ncalls work best if replies are held/,
    );
    const probed = await run(["probe", "gemma3:4b", "--json"], env);
    const { calls, shares } = JSON.parse(probed.stdout) as Record<string, unknown>;
    assert.deepEqual([calls, (shares as Record<string, unknown>)["held"]], ["held", { valid: 4, asked: 4 }]);
    const listed = await run(["list"], env);
    assert.match(listed.stdout, /^ {2}gemma3:4b +16,384 server +no probe +held probe/m);
  });

  test("a model that cannot make calls ends with 5, and that result is stored too", async () => {
    await using fake = await serving(() => chatLine({ content: "I cannot do that." }));
    const env = { XDG_STATE_HOME: place.at("poor"), OLLAMA_HOST: fake.url };
    const { code, stdout } = await run(["probe", "gemma3:4b", "--json"], env);
    const { native, usable, model } = JSON.parse(stdout) as Record<string, unknown>;
    assert.deepEqual([code, native, usable, model], [5, false, false, "gemma3:4b"]);
    const listed = await run(["list"], env);
    assert.match(listed.stdout, /^ {2}gemma3:4b +16,384 server +no probe/m);
  });

  test("a missing model ends with 5 and the command to get it", async () => {
    await using fake = await startFakeOllama({
      routes: {
        "/api/chat": (_body, response) => sendJson(response, { error: "model 'x' not found" }, 404),
      },
    });
    const env = { XDG_STATE_HOME: place.at("missing"), OLLAMA_HOST: fake.url };
    const { code, stdout, stderr } = await run(["probe", "x"], env);
    assert.deepEqual([code, stdout], [5, ""]);
    assert.match(
      stderr,
      /^note: asking x at .*\nerror: x: .*not found\n {2}next: OLLAMA_HOST=\S+ ollama pull x\n$/,
    );
    assert.equal(existsSync(place.at("missing")), false);
  });

  test("without a server both commands end with 5, and the built-in table is still shown", async () => {
    const fake = await serving(answerTo);
    await fake[Symbol.asyncDispose]();
    const env = { XDG_STATE_HOME: place.at("down"), OLLAMA_HOST: fake.url };
    const [list, probe] = await Promise.all([run(["list"], env), run(["probe"], env)]);
    assert.deepEqual([list.code, probe.code, probe.stdout], [5, 5, ""]);
    assert.match(list.stdout, /^\* qwen3:8b +40,960 table +yes table +native table +yes table +yes table$/m);
    assert.match(list.stderr, /^error: no list of models from .*\n {2}next: harness doctor\n$/);
    assert.match(probe.stderr, /ECONNREFUSED.*\n {2}next: OLLAMA_HOST=\S+ ollama serve\n$/);
  });

  test("a row from the user takes precedence", async () => {
    await using fake = await serving(answerTo);
    await place.write(
      "own/harness/config.json",
      '{"capabilities": [{"prefix": "qwen3", "context": 4096, "tools": false}]}',
    );
    const env = { XDG_CONFIG_HOME: place.at("own"), XDG_STATE_HOME: place.at("row"), OLLAMA_HOST: fake.url };
    const { stdout } = await run(["list"], env);
    assert.match(stdout, /^\* qwen3:8b +4,096 user +no user +text user +yes server +yes server$/m);
  });

  test("a provider without its key: probe and doctor name the variable and send nothing", async () => {
    const probe = await run(["probe", "--provider", "gemini", "--model", "m"], {
      XDG_STATE_HOME: place.at("keyless"),
    });
    assert.equal(probe.code, 2, probe.stdout + probe.stderr);
    assert.match(probe.stderr, /GEMINI_API_KEY is not set/);
    await place.write("named/harness/config.json", '{"provider": "deepseek"}');
    const doctor = await runProgram("bin/harness", ["doctor", "--json"], {
      home: place.at("home"),
      cwd: place.at("w"),
      env: {
        XDG_CONFIG_HOME: place.at("named"),
        XDG_STATE_HOME: place.at("keyless"),
        DOCKER_HOST: "unix:///nowhere.sock",
      },
    });
    assert.match(doctor.stdout, /DEEPSEEK_API_KEY is not set/);
  });
});
