import assert from "node:assert/strict";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import test from "node:test";
import { type OllamaStatus, ollamaStatus } from "../../src/models/providers/ollama-server.ts";
import { type FakeOllamaOptions, startFakeOllama } from "../fakes/ollama-server.ts";

const QWEN = { name: "qwen3:8b", size: 5000 };

const statusAt = (baseUrl: string, model = "qwen3:8b", timeoutMs = 10_000): Promise<OllamaStatus> =>
  ollamaStatus({ baseUrl, model, signal: new AbortController().signal, timeoutMs });

const ready = (changes: object = {}): object => ({
  kind: "ready",
  version: "0.12.6",
  model: "qwen3:8b",
  context: { trained: 40_960, loaded: null },
  capabilities: ["completion", "tools", "thinking"],
  size: 5000,
  parameters: 8.2,
  ...changes,
});

const CASES: readonly (readonly [string, FakeOllamaOptions, object])[] = [
  ["a listed model is ready", { models: [QWEN] }, ready()],
  [
    "a loaded model reports both windows",
    { models: [{ ...QWEN, loaded: 4096 }] },
    ready({ context: { trained: 40_960, loaded: 4096 } }),
  ],
  [
    "a model that reports no window is still ready",
    { models: [{ ...QWEN, trained: null }] },
    ready({ context: { trained: null, loaded: null } }),
  ],
  [
    "the exact count of parameters takes precedence over the written size",
    { models: [{ ...QWEN, parameters: 1_543_714_304, billions: "494.03M" }] },
    ready({ parameters: 1.5 }),
  ],
  ["a written size is read", { models: [{ ...QWEN, billions: "494.03M" }] }, ready({ parameters: 0.5 })],
  ["an invalid size is ignored", { models: [{ ...QWEN, billions: "large" }] }, ready({ parameters: null })],
  [
    "a template that prints tools in Go's format does not support tools",
    { models: [{ ...QWEN, template: "{{ range .Tools }}{{ .Function }}{{ end }}" }] },
    ready({ capabilities: ["completion", "thinking"] }),
  ],
  [
    "a template that prints parameters in Go's format does not support tools",
    { models: [{ ...QWEN, template: '{"name": "{{ .Function.Name }}", {{- .Function.Parameters -}} }' }] },
    ready({ capabilities: ["completion", "thinking"] }),
  ],
  [
    "a template that writes JSON, or prints only names, supports tools",
    { models: [{ ...QWEN, template: "{{ json .Function }} {{ .Function.Name }}" }] },
    ready(),
  ],
  [
    "a template is ignored where the server has a renderer",
    { models: [{ ...QWEN, template: "{{ .Function }}", renderer: "qwen3" }] },
    ready(),
  ],
  ["/api/ps is not needed", { models: [QWEN], faults: { "/api/ps": "error" } }, ready()],
  [
    "another loaded model does not affect this one",
    { models: [QWEN, { name: "llama3.2:latest", loaded: 2048 }] },
    ready(),
  ],
  [
    "a model that is not listed is missing, and the others are named",
    { models: [{ name: "qwen3:latest" }, { name: "qwen3:8b-q8_0" }] },
    { kind: "model-missing", version: "0.12.6", models: ["qwen3:latest", "qwen3:8b-q8_0"] },
  ],
  [
    "a model is missing too where none is listed",
    {},
    { kind: "model-missing", version: "0.12.6", models: [] },
  ],
  [
    "a model that disappears between two requests is missing",
    { models: [QWEN], faults: { "/api/show": "missing" } },
    { kind: "model-missing", version: "0.12.6", models: ["qwen3:8b"] },
  ],
  [
    "a null list of models counts as empty",
    { routes: { "/api/tags": (_body, response) => void response.end('{"models":null}') } },
    { kind: "model-missing", version: "0.12.6", models: [] },
  ],
  ["0.12.5 is too old", { version: "0.12.5" }, { kind: "too-old", version: "0.12.5" }],
  ["0.9.10 is too old", { version: "0.9.10" }, { kind: "too-old", version: "0.9.10" }],
  [
    "a release candidate of the oldest version is new enough",
    { version: "0.12.6-rc0", models: [QWEN] },
    ready({ version: "0.12.6-rc0" }),
  ],
  ["1.0.0 is new enough", { version: "1.0.0", models: [QWEN] }, ready({ version: "1.0.0" })],
  [
    "a build from source counts as new enough",
    { version: "0.0.0", models: [QWEN] },
    ready({ version: "0.0.0" }),
  ],
  [
    "a web page is not Ollama",
    { faults: { "*": "html" } },
    { kind: "not-ollama", reason: "it answers with text/html that is not JSON" },
  ],
  [
    "broken JSON is not Ollama",
    { faults: { "*": "garbage" } },
    { kind: "not-ollama", reason: "it answers with application/json that is not JSON" },
  ],
  [
    "JSON without a version is not Ollama",
    { routes: { "/api/version": (_body, response) => void response.end('{"version":7}') } },
    { kind: "not-ollama", reason: "it answers with unexpected JSON" },
  ],
  [
    "a server without the path is not Ollama",
    { faults: { "*": "missing" } },
    { kind: "not-ollama", reason: "HTTP 404: not found" },
  ],
  [
    "a redirect is not followed and its query not shown",
    { faults: { "*": "redirect" } },
    { kind: "not-ollama", reason: "it redirects to https://login.example.org" },
  ],
  [
    "a server error on the first request means down",
    { faults: { "*": "error" } },
    { kind: "down", reason: "HTTP 500: the model store cannot be read" },
  ],
  ["a cut answer means down", { faults: { "*": "cut" } }, { kind: "down", reason: "aborted" }],
  [
    "a list of models that cannot be read means a failing server",
    { faults: { "/api/tags": "error" } },
    {
      kind: "failing",
      version: "0.12.6",
      reason: "/api/tags: HTTP 500: the model store cannot be read",
    },
  ],
  [
    "a model that cannot be shown means a failing server",
    { models: [QWEN], faults: { "/api/show": "garbage" } },
    {
      kind: "failing",
      version: "0.12.6",
      reason: "/api/show: it answers with application/json that is not JSON",
    },
  ],
];

for (const [name, options, expected] of CASES)
  test(name, async () => {
    await using fake = await startFakeOllama(options);
    assert.deepEqual(await statusAt(fake.url), expected);
  });

const NAMES: readonly (readonly [string, string])[] = [
  ["qwen3", "qwen3:latest"],
  ["qwen3:latest", "qwen3:latest"],
  ["Qwen3", "qwen3:latest"],
  ["registry.ollama.ai/library/qwen3", "qwen3:latest"],
  ["hf.co/Org/Model-GGUF:q4_k_m", "hf.co/org/Model-GGUF:Q4_K_M"],
  ["box:5000/org/model", "box:5000/org/model:latest"],
];

for (const [wanted, listed] of NAMES)
  test(`the setting ${wanted} selects the listed ${listed}, which is then requested`, async () => {
    await using fake = await startFakeOllama({ models: [{ name: listed, size: 5000 }] });
    assert.deepEqual(await statusAt(fake.url, wanted), ready({ model: listed }));
    assert.deepEqual(fake.requests.map(({ method, path, body }) => ({ method, path, body })).slice(0, 3), [
      { method: "GET", path: "/api/version", body: undefined },
      { method: "GET", path: "/api/tags", body: undefined },
      { method: "POST", path: "/api/show", body: { model: listed } },
    ]);
  });

test("a path before the API's is kept", async () => {
  await using fake = await startFakeOllama({
    routes: { "/ollama/api/version": (_body, response) => void response.end('{"version":"0.1.0"}') },
  });
  assert.deepEqual(await statusAt(`${fake.url}/ollama`), { kind: "too-old", version: "0.1.0" });
});

test("a server that never answers counts as down after the time limit, at whichever request it hangs", async () => {
  await using hung = await startFakeOllama({ faults: { "*": "silent" } });
  await using late = await startFakeOllama({ models: [QWEN], faults: { "/api/show": "silent" } });
  assert.deepEqual(await Promise.all([hung, late].map(({ url }) => statusAt(url, "qwen3:8b", 200))), [
    { kind: "down", reason: "no answer in time" },
    { kind: "failing", version: "0.12.6", reason: "/api/show: no answer in time" },
  ]);
});

test("a cancelled status check returns a value, before and while it runs", async () => {
  await using hung = await startFakeOllama({ faults: { "*": "silent" } });
  const controller = new AbortController();
  const look = (): Promise<OllamaStatus> =>
    ollamaStatus({ baseUrl: hung.url, model: "m", signal: controller.signal, timeoutMs: 10_000 });
  const running = look();
  controller.abort();
  const cancelled = { kind: "down", reason: "cancelled" };
  assert.deepEqual([await running, await look()], [cancelled, cancelled]);
});

test("an address where nothing listens is down", async () => {
  const fake = await startFakeOllama();
  await fake[Symbol.asyncDispose]();
  assert.deepEqual(await statusAt(fake.url), {
    kind: "down",
    reason: `connect ECONNREFUSED ${fake.url.slice("http://".length)}`,
  });
});

test("a server of another protocol is not Ollama", async () => {
  const server = createServer((socket) => void socket.end("SSH-2.0-OpenSSH_10.0\r\n"));
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  const status = await statusAt(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  server.close();
  assert.deepEqual(status, { kind: "not-ollama", reason: "what answers there does not speak HTTP" });
});

test("https to a server without TLS is named as the reason, in one line", async () => {
  await using fake = await startFakeOllama();
  assert.deepEqual(await statusAt(fake.url.replace("http:", "https:")), {
    kind: "not-ollama",
    reason: "it does not speak TLS (EPROTO)",
  });
});
