import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

/** A loopback server with Ollama's wire format, which can be broken on request. */

interface FakeModel {
  /** A template in Go's template language. */
  readonly template?: string;
  /** A renderer of the server, instead of the template. */
  readonly renderer?: string;
  readonly name: string;
  readonly size?: number;
  /** Trained context length; null omits it. */
  readonly trained?: number | null;
  /** Context length of the loaded model; if absent, the model is not in memory. */
  readonly loaded?: number;
  readonly capabilities?: readonly string[];
  /** Parameter count in the file; if absent, the details say 8.2B. */
  readonly parameters?: number;
  /** Parameter size in the details, if different. */
  readonly billions?: string;
}

/** A fault in an answer: no answer at all, invalid JSON, a web page, another server, HTTP errors, a cut connection. */
type Fault = "silent" | "garbage" | "html" | "redirect" | "missing" | "error" | "cut";

type Route = (body: unknown, response: ServerResponse) => void;

export interface FakePull {
  /** The lines of the stream: JSON values, or text sent unchanged. */
  readonly lines: readonly unknown[];
  /** What follows the lines: a proper end, a broken connection, silence, or the last line repeated. */
  readonly ending?: "end" | "cut" | "silence" | "repeat";
}

export interface FakeOllamaOptions {
  readonly version?: string;
  /** By default any free port. */
  readonly port?: number;
  /** Loopback by default. */
  readonly host?: string;
  readonly models?: readonly FakeModel[];
  /** Faults by path, `*` for every path. */
  readonly faults?: Readonly<Record<string, Fault>>;
  readonly pull?: FakePull;
  /** Delay of every answer. */
  readonly delayMs?: number;
  /** Answers for further paths, such as /api/chat, or in place of the usual ones. */
  readonly routes?: Readonly<Record<string, Route>>;
}

interface FakeRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: unknown;
}

export interface FakeOllama extends AsyncDisposable {
  readonly url: string;
  /** Every request so far, in order. */
  readonly requests: readonly FakeRequest[];
}

export const FAKE_DIGEST = "sha256:a3de86cd1c132c822487ededd47a324c50491393e6565cd14bafa40d0b8e686f";

export async function startFakeOllama(options: FakeOllamaOptions = {}): Promise<FakeOllama> {
  const requests: FakeRequest[] = [];
  const routes = { ...usualRoutes(options), ...options.routes };
  const serve = async (incoming: IncomingMessage, response: ServerResponse): Promise<void> => {
    const request = await receive(incoming);
    requests.push(request);
    if (options.delayMs !== undefined) await sleep(options.delayMs, undefined, { ref: false });
    const path = request.path.split("?")[0] ?? "";
    const fault = options.faults?.[path] ?? options.faults?.["*"];
    const route = fault === undefined ? (routes[path] ?? nowhere) : FAULTS[fault];
    route(request.body, response);
  };
  const server = createServer((incoming, response) => {
    serve(incoming, response).catch(() => response.destroy());
  });
  await new Promise<void>(
    (resolve) => void server.listen(options.port ?? 0, options.host ?? "127.0.0.1", resolve),
  );
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise<void>((resolve) => void server.close(() => resolve()));
    },
  };
}

async function receive(incoming: IncomingMessage): Promise<FakeRequest> {
  let text = "";
  incoming.setEncoding("utf8");
  for await (const chunk of incoming) text += String(chunk);
  return {
    method: incoming.method ?? "",
    path: incoming.url ?? "",
    headers: incoming.headers,
    body: text === "" ? undefined : (JSON.parse(text) as unknown),
  };
}

function usualRoutes(options: FakeOllamaOptions): Record<string, Route> {
  const models = [...(options.models ?? [])];
  return {
    "/": (_body, response) => void response.end("Ollama is running"),
    "/api/version": (_body, response) => sendJson(response, { version: options.version ?? "0.12.6" }),
    "/api/tags": (_body, response) => sendJson(response, { models: models.map(summary) }),
    "/api/ps": (_body, response) =>
      sendJson(response, { models: models.filter(({ loaded }) => loaded !== undefined).map(running) }),
    "/api/show": (body, response) => show(body, response, models),
    "/api/pull": (body, response) => pull(body, response, options.pull, models),
  };
}

function nowhere(_body: unknown, response: ServerResponse): void {
  response.statusCode = 404;
  response.end("404 page not found");
}

export function sendJson(response: ServerResponse, value: unknown, status = 200): void {
  response.writeHead(status, { "content-type": "application/json; charset=utf-8" });
  response.end(JSON.stringify(value));
}

const FAULTS: Readonly<Record<Fault, Route>> = {
  silent: () => undefined,
  garbage(_body, response) {
    response.writeHead(200, { "content-type": "application/json; charset=utf-8" });
    response.end('{"version": "0.1');
  },
  html(_body, response) {
    response.writeHead(200, { "content-type": "text/html; charset=utf-8" });
    response.end("<!doctype html><title>Welcome</title>");
  },
  redirect(_body, response) {
    response.writeHead(302, { location: "https://login.example.org/?next=secret" });
    response.end();
  },
  missing: (_body, response) => sendJson(response, { error: "not found" }, 404),
  error: (_body, response) => sendJson(response, { error: "the model store cannot be read" }, 500),
  cut(_body, response) {
    response.writeHead(200, { "content-type": "application/json", "content-length": 1000 });
    response.write('{"version');
    setImmediate(() => response.destroy());
  },
};

const nameIn = (body: unknown): string => String((body as { model?: unknown } | undefined)?.model);
const detailsOf = ({ billions = "8.2B" }: Pick<FakeModel, "billions">): object => ({
  format: "gguf",
  family: "qwen3",
  families: ["qwen3"],
  parameter_size: billions,
  quantization_level: "Q4_K_M",
});

const summary = ({ name, size = 5_225_388_164, billions }: FakeModel): object => ({
  name,
  model: name,
  modified_at: "2026-10-03T23:34:03.409490317-07:00",
  size,
  digest: FAKE_DIGEST.slice("sha256:".length),
  details: detailsOf(billions === undefined ? {} : { billions }),
});

const running = (model: FakeModel): object => ({
  ...summary(model),
  expires_at: "2026-10-17T16:47:07.93355-07:00",
  size_vram: model.size ?? 5_225_388_164,
  context_length: model.loaded,
});

function show(body: unknown, response: ServerResponse, models: readonly FakeModel[]): void {
  const model = models.find(({ name }) => name === nameIn(body));
  if (model === undefined) return sendJson(response, { error: `model '${nameIn(body)}' not found` }, 404);
  const trained = model.trained === undefined ? 40_960 : model.trained;
  sendJson(response, {
    license: "Apache License 2.0",
    parameters: "temperature 0.6",
    template: model.template ?? "{{ .Prompt }}",
    ...(model.renderer === undefined ? {} : { renderer: model.renderer }),
    details: detailsOf(model),
    model_info: {
      "general.architecture": "qwen3",
      "qwen3.block_count": 36,
      "qwen3.vision.context_length": 512,
      ...(trained === null ? {} : { "qwen3.context_length": trained }),
      ...(model.parameters === undefined ? {} : { "general.parameter_count": model.parameters }),
      "tokenizer.ggml.tokens": null,
    },
    capabilities: model.capabilities ?? ["completion", "tools", "thinking"],
    modified_at: "2026-10-03T23:34:03.409490317-07:00",
  });
}

const PULL: FakePull = {
  lines: [
    { status: "pulling manifest" },
    { status: "pulling a3de86cd1c13", digest: FAKE_DIGEST, total: 2000 },
    { status: "pulling a3de86cd1c13", digest: FAKE_DIGEST, total: 2000, completed: 1000 },
    { status: "pulling a3de86cd1c13", digest: FAKE_DIGEST, total: 2000, completed: 2000 },
    { status: "verifying sha256 digest" },
    { status: "writing manifest" },
    { status: "success" },
  ],
};

/** Streams the lines; after a success the model exists. */
function pull(
  body: unknown,
  response: ServerResponse,
  { lines, ending = "end" }: FakePull = PULL,
  models: FakeModel[],
): void {
  const texts = lines.map((line) => `${typeof line === "string" ? line : JSON.stringify(line)}\n`);
  response.writeHead(200, { "content-type": "application/x-ndjson" });
  response.write(texts.join(""));
  if (texts.some((text) => text.includes('"success"'))) models.push({ name: nameIn(body) });
  if (ending === "end") response.end();
  if (ending === "cut") setImmediate(() => response.destroy());
  if (ending !== "repeat") return;
  const timer = setInterval(() => response.write(texts.at(-1) ?? "\n"), 10);
  response.on("close", () => clearInterval(timer));
}
