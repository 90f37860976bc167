import assert from "node:assert/strict";
import test from "node:test";
import { type PullProgress, pullModel, type PullResult } from "../../src/models/providers/ollama-setup.ts";
import { type FakeOllamaOptions, type FakePull, startFakeOllama } from "../fakes/ollama-server.ts";

const MANIFEST = { status: "pulling manifest" };
const HALF = { status: "pulling a3de86cd1c13", digest: "sha256:a3de", total: 2000, completed: 1000 };

interface Seen {
  readonly result: PullResult;
  readonly steps: readonly PullProgress[];
}

async function pullFrom(
  baseUrl: string,
  changes: Partial<Parameters<typeof pullModel>[0]> = {},
): Promise<Seen> {
  const steps: PullProgress[] = [];
  const result = await pullModel({
    baseUrl,
    model: "qwen3:8b",
    signal: new AbortController().signal,
    onProgress: (step) => void steps.push(step),
    stallMs: 10_000,
    ...changes,
  });
  return { result, steps };
}

test("a pull reports each step and ends as done, and the model is there", async () => {
  await using fake = await startFakeOllama();
  const part = { status: "pulling a3de86cd1c13", total: 2000 };
  assert.deepEqual(await pullFrom(fake.url), {
    result: { kind: "done" },
    steps: [
      { status: "pulling manifest", completed: null, total: null },
      { ...part, completed: null },
      { ...part, completed: 1000 },
      { ...part, completed: 2000 },
      { status: "verifying sha256 digest", completed: null, total: null },
      { status: "writing manifest", completed: null, total: null },
      { status: "success", completed: null, total: null },
    ],
  });
  assert.deepEqual(
    fake.requests.map(({ method, path, body }) => ({ method, path, body })),
    [{ method: "POST", path: "/api/pull", body: { model: "qwen3:8b", stream: true } }],
  );
});

const errorLine = (error: string): FakeOllamaOptions => ({ pull: { lines: [MANIFEST, { error }] } });
const stream = (pull: FakePull): FakeOllamaOptions => ({ pull });

const FAILURES: readonly (readonly [string, FakeOllamaOptions, string, string])[] = [
  [
    "an unknown model, reported with status 200",
    errorLine("pull model manifest: file does not exist"),
    "pull model manifest: file does not exist",
    "harness config set chat_model NAME",
  ],
  [
    "a full disk",
    errorLine("write /models/blobs/sha256-a3-partial: no space left on device"),
    "write /models/blobs/sha256-a3-partial: no space left on device",
    "OLLAMA_HOST=URL ollama rm NAME",
  ],
  [
    "a model that needs a newer server",
    errorLine("pull model manifest: 412: requires a newer version of Ollama"),
    "pull model manifest: 412: requires a newer version of Ollama",
    "update Ollama: https://ollama.com/download",
  ],
  [
    "a model that needs an account",
    errorLine("pull model manifest: 401: unauthorized"),
    "pull model manifest: 401: unauthorized",
    "ollama signin",
  ],
  [
    "a registry that is not reached",
    errorLine("dial tcp: lookup registry.ollama.ai: no such host"),
    "dial tcp: lookup registry.ollama.ai: no such host",
    "OLLAMA_HOST=URL ollama pull qwen3:8b",
  ],
  [
    "a stream that ends without success",
    stream({ lines: [MANIFEST, HALF] }),
    "the server ended the download without saying that it is complete",
    "OLLAMA_HOST=URL ollama pull qwen3:8b",
  ],
  [
    "a connection that breaks off",
    stream({ lines: [MANIFEST, HALF], ending: "cut" }),
    "the connection broke off before the download was complete",
    "OLLAMA_HOST=URL ollama pull qwen3:8b",
  ],
  [
    "a line that is not JSON",
    stream({ lines: [MANIFEST, "<html>"] }),
    "the server sends something other than the progress of a download",
    "OLLAMA_HOST=URL ollama pull qwen3:8b",
  ],
  [
    "an endless line",
    stream({ lines: ["x".repeat(3 * 2 ** 20)], ending: "silence" }),
    "the server sends an endless line",
    "OLLAMA_HOST=URL ollama pull qwen3:8b",
  ],
  [
    "a refusal before the stream",
    { faults: { "/api/pull": "error" } },
    "the model store cannot be read",
    "OLLAMA_HOST=URL ollama pull qwen3:8b",
  ],
  [
    "a redirect",
    { faults: { "/api/pull": "redirect" } },
    "it redirects to https://login.example.org",
    "OLLAMA_HOST=URL ollama pull qwen3:8b",
  ],
];

for (const [name, options, reason, remedy] of FAILURES)
  test(`${name} is a failure with its fix`, async () => {
    await using fake = await startFakeOllama(options);
    const { result } = await pullFrom(fake.url);
    assert.deepEqual(result, { kind: "failed", reason, remedy: remedy.replace("URL", fake.url) });
  });

test("a stalled download ends, whether the server is silent or repeats itself", async () => {
  const ends = (["silence", "repeat"] as const).map(async (ending) => {
    await using fake = await startFakeOllama({ pull: { lines: [MANIFEST, HALF], ending } });
    const { result } = await pullFrom(fake.url, { stallMs: 150 });
    return result.kind === "failed" ? result.reason : result;
  });
  assert.deepEqual(await Promise.all(ends), ["no progress for 150 ms", "no progress for 150 ms"]);
});

test("hashing may be quiet for longer than a download", async () => {
  const lines = [MANIFEST, { status: "verifying sha256 digest" }];
  await using fake = await startFakeOllama({ pull: { lines, ending: "silence" } });
  const { result } = await pullFrom(fake.url, { stallMs: 300 });
  assert.deepEqual(result, {
    kind: "failed",
    reason: "no progress for 3.0 s",
    remedy: `OLLAMA_HOST=${fake.url} ollama pull qwen3:8b`,
  });
});

test("a pull is cancelled before it starts and while it runs", async () => {
  await using fake = await startFakeOllama({ pull: { lines: [MANIFEST, HALF], ending: "silence" } });
  const controller = new AbortController();
  const running = await pullFrom(fake.url, {
    signal: controller.signal,
    onProgress: ({ completed }) => void (completed === null || controller.abort()),
  });
  const late = await pullFrom(fake.url, { signal: controller.signal });
  assert.deepEqual([running.result, late.result], [{ kind: "cancelled" }, { kind: "cancelled" }]);
  assert.equal(fake.requests.length, 1);
});

test("an error in the progress display does not make the pull throw", async () => {
  await using fake = await startFakeOllama();
  const { result } = await pullFrom(fake.url, {
    onProgress() {
      throw new Error("the screen is gone");
    },
  });
  assert.deepEqual(result, {
    kind: "failed",
    reason: "the screen is gone",
    remedy: `OLLAMA_HOST=${fake.url} ollama pull qwen3:8b`,
  });
});

test("without a server the suggested command starts one", async () => {
  const fake = await startFakeOllama();
  await fake[Symbol.asyncDispose]();
  const { result } = await pullFrom(fake.url);
  assert.deepEqual(result, {
    kind: "failed",
    reason: `connect ECONNREFUSED ${fake.url.slice("http://".length)}`,
    remedy: `OLLAMA_HOST=${fake.url} ollama serve`,
  });
});
