import assert from "node:assert/strict";
import test from "node:test";
import { hostFrom } from "../../src/app/host.ts";
import { DownloadTotals } from "../../src/app/model-download.ts";
import { modelStep } from "../../src/app/setup-model.ts";
import type { SetupContext, StepResult } from "../../src/app/setup-steps.ts";
import { loadConfig } from "../../src/config/load-config.ts";
import type { Engine } from "../../src/docker/engine.ts";
import { type FakeOllama, type FakeOllamaOptions, startFakeOllama } from "../fakes/ollama-server.ts";
import { type Scratch, scratch } from "../fixtures/scratch.ts";

/** An engine that has no card and no sidecar. */
const ENGINE = {
  api: {
    info: () => Promise.resolve({ Runtimes: {} }),
    getContainer: () => ({ inspect: () => Promise.reject(new Error("no such container")) }),
  },
  endpoint: { host: "tcp://127.0.0.1:1", origin: "test" },
} as unknown as Engine;

interface Step {
  readonly result: StepResult;
  readonly asked: readonly string[];
  readonly pulled: readonly unknown[];
  readonly kept: string | undefined;
}

interface Person {
  /** The chosen row, and the answer to other questions; if absent, nobody is there. */
  readonly takes?: number;
  readonly yes?: boolean;
  readonly env?: Readonly<Record<string, string>>;
}

async function step(ollama: FakeOllama, person: Person = {}, place?: Scratch): Promise<Step> {
  await using own = place === undefined ? await scratch() : undefined;
  const home = place ?? own ?? assert.fail();
  const env = { HOME: home.path, PATH: "/nowhere", OLLAMA_HOST: ollama.url, ...person.env };
  const host = hostFrom(env);
  const asked: string[] = [];
  const before = ollama.requests.length;
  const { takes } = person;
  const context: SetupContext = {
    host,
    root: home.path,
    workspace: home.path,
    config: await loadConfig({ env, project: undefined, flags: new Map() }),
    signal: new AbortController().signal,
    mayInstall: false,
    yes: person.yes ?? false,
    attended: takes !== undefined,
    onLine: () => undefined,
    onAdvance: () => undefined,
    confirm: (question) => (
      asked.push(question),
      Promise.resolve(takes !== undefined || person.yes === true)
    ),
    choose: (question, rows) => {
      asked.push([question, ...rows].join("\n"));
      return Promise.resolve(takes ?? (person.yes === true ? 0 : null));
    },
  };
  const result = await modelStep(ENGINE, false, context);
  const pulled = ollama.requests.slice(before).filter(({ path }) => path === "/api/pull");
  const kept = await home.read(".config/harness/config.json").catch(() => undefined);
  return { result, asked, pulled: pulled.map(({ body }) => (body as { model: string }).model), kept };
}

const SMALL = { size: 5000, trained: 32_768 };
const THERE: FakeOllamaOptions = {
  models: [
    { ...SMALL, name: "nomic-embed-text:latest", capabilities: ["embedding"] },
    { ...SMALL, name: "gemma3:4b", capabilities: ["completion"] },
    { ...SMALL, name: "own/coder:7b", capabilities: ["completion", "tools"] },
    { ...SMALL, name: "huge:700b", size: 4e14, capabilities: ["completion", "tools"] },
  ],
};

test("models on the server are offered before a download, those with tool calls first, without embedding models or ones that are too large", async () => {
  await using ollama = await startFakeOllama(THERE);
  const { result, asked, pulled, kept } = await step(ollama, { takes: 1 });
  const rows = (asked[0] ?? "").split("\n").slice(1);
  assert.match(rows[0] ?? "", /^own\/coder:7b +on the server, 4\.9 KiB$/);
  assert.match(rows[1] ?? "", /^gemma3:4b +on the server, 4\.9 KiB; not trained to call tools$/);
  assert.ok(
    rows.slice(2).every((row) => row.includes(" to load, ")),
    rows.join("\n"),
  );
  assert.ok(!rows.some((row) => /embed|huge/.test(row)));
  assert.deepEqual([result.state, asked.length, pulled], ["ok", 1, []]);
  assert.deepEqual(JSON.parse(kept ?? ""), { chat_model: "gemma3:4b" });
});

test("the user has to choose only once", async () => {
  await using ollama = await startFakeOllama(THERE);
  await using place = await scratch();
  await step(ollama, { takes: 0 }, place);
  const { asked, result } = await step(ollama, { takes: 1 }, place);
  assert.deepEqual([asked, result.state], [[], "ok"]);
  assert.match(result.detail, /own\/coder:7b/);
});

test("with nobody there nothing is chosen, stored or loaded, and the remedy says what to type", async () => {
  await using full = await startFakeOllama(THERE);
  const there = await step(full);
  assert.deepEqual([there.result.state, there.pulled, there.kept], ["stand-in", [], undefined]);
  assert.match(
    there.result.remedy,
    /^\.\/start\.sh --yes {3}uses own\/coder:7b, which is already there; or another: harness config set chat_model NAME$/,
  );
  await using empty = await startFakeOllama();
  const none = await step(empty);
  assert.deepEqual([none.result.state, none.pulled, none.kept], ["stand-in", [], undefined]);
  assert.match(none.result.remedy, /^\.\/start\.sh --yes {3}loads \S+ \([\d.]+ GiB\); or another/);
  const own = await step(empty, { env: { HARNESS_CHAT_MODEL: "qwen3:14b" } });
  assert.deepEqual([own.result.state, own.pulled], ["stand-in", []]);
  assert.match(
    own.result.remedy,
    /^\.\/start\.sh --yes {3}loads qwen3:14b \(8\.7 GiB\) {3}or: OLLAMA_HOST=\S+ ollama pull qwen3:14b$/,
  );
});

test("an installed default model is used without a question", async () => {
  await using ollama = await startFakeOllama({ models: [{ name: "qwen3:8b" }] });
  const { asked, result, kept } = await step(ollama, { takes: 0 });
  assert.deepEqual([asked, result.state, kept], [[], "ok", undefined]);
});

test("yes loads the best fitting model and the model for search", async () => {
  await using ollama = await startFakeOllama();
  const { result, pulled, kept } = await step(ollama, { yes: true });
  const { chat_model: model } = JSON.parse(kept ?? "") as { readonly chat_model: string };
  assert.deepEqual([result.state, pulled], ["ok", [model, "nomic-embed-text"]]);
});

test("a failed download is reported with its reason and continued without a question", async () => {
  const HALF = { status: "pulling a3de", digest: "sha256:a3de", total: 4 * 2 ** 30, completed: 2 ** 30 };
  await using place = await scratch();
  await using broken = await startFakeOllama({
    pull: { lines: [HALF, { error: "dial tcp: lookup registry.ollama.ai: no such host" }] },
  });
  const env = { HARNESS_CHAT_MODEL: "own/coder:7b" };
  const first = await step(broken, { takes: 0, env }, place);
  assert.equal(first.asked.length, 1);
  assert.equal(first.result.state, "stand-in");
  assert.match(
    first.result.detail,
    /^own\/coder:7b: dial tcp: .*no such host; 1\.0 GiB of 4\.0 GiB are kept$/,
  );
  assert.match(first.result.remedy, /ollama pull own\/coder:7b {3}or again: \.\/start\.sh$/);
  const second = await step(broken, { takes: 0, env }, place);
  assert.deepEqual([second.asked, second.pulled], [[], ["own/coder:7b"]]);
  const nobody = await step(broken, { env }, place);
  assert.deepEqual(nobody.pulled, []);
  assert.match(nobody.result.detail, /nothing was downloaded; 1\.0 GiB of 4\.0 GiB of it are already here$/);
});

test("without the sidecar a missing Ollama is reported with the command that installs it", async () => {
  const gone = await startFakeOllama();
  await gone[Symbol.asyncDispose]();
  const { result } = await step({ ...gone, requests: [] }, { yes: true });
  assert.equal(result.state, "stand-in");
  assert.match(result.detail, /^no Ollama answers at \S+, and none is installed$/);
  assert.equal(result.remedy, "install Ollama from https://ollama.com/download   or leave --no-sidecars out");
});

test("the size of a download is the sum of its parts", () => {
  const totals = new DownloadTotals();
  const take = (status: string, completed: number | null, total: number | null): void =>
    totals.take({ status, completed, total });
  take("pulling manifest", null, null);
  take("pulling a", null, 100);
  take("pulling a", 60, 100);
  take("pulling b", 5, 10);
  take("pulling a", null, 100);
  take("verifying sha256 digest", null, null);
  assert.deepEqual(totals.sum, { completed: 65, total: 110 });
});
