import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { LlamaEngine, TooLong } from "./llama-engine.ts";
import { SchemaRefused } from "./json-grammar.ts";
import { ollamaRoutes } from "./ollama-dialect.ts";
import { openAiRoutes } from "./openai-dialect.ts";
import { type Body, MODEL, Queue, Refusal, type Route, Served } from "./served.ts";

/** A real model behind a small server with the parts of Ollama's and OpenAI's APIs that are used here. */

export interface GgufServer extends AsyncDisposable {
  readonly url: string;
}

export async function serveGguf(file: string): Promise<GgufServer> {
  const engine = await LlamaEngine.open(file);
  const queue = new Queue();
  const routes: Readonly<Record<string, Route>> = {
    ...ollamaRoutes,
    ...openAiRoutes,
    // Not part of any API: lets a test see that computing has stopped.
    "GET /computed": (_body, served) => Promise.resolve(served.json({ tokens: engine.computed })),
  };
  const server = createServer((request, response) => {
    const served = new Served(engine, response, queue);
    serve(routes, request, served).catch((thrown: unknown) => fail(thrown, request, served));
  });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise<void>((resolve) => void server.close(() => resolve()));
      await queue.add(() => engine.close());
    },
  };
}

async function serve(
  routes: Readonly<Record<string, Route>>,
  request: IncomingMessage,
  served: Served,
): Promise<void> {
  let text = "";
  request.setEncoding("utf8");
  for await (const chunk of request) text += String(chunk);
  const at = `${request.method} ${request.url?.split("?")[0]}`;
  const route = routes[at];
  if (route === undefined) throw new Refusal(404, `nothing is at ${at}`);
  const body = text === "" ? {} : (JSON.parse(text) as Body);
  const { model } = body;
  if (typeof model === "string" && model !== MODEL) throw new Refusal(404, `model '${model}' not found`);
  await route(body, served);
}

function fail(thrown: unknown, { url = "" }: IncomingMessage, { response, signal }: Served): void {
  if (signal.aborted) return;
  const { status, message } = refusalOf(thrown);
  const error = url.startsWith("/v1/")
    ? { error: { message, code: status, type: typeOf(thrown) } }
    : { error: message };
  if (!response.headersSent)
    response.writeHead(status, { "content-type": "application/json; charset=utf-8" });
  response.end(`${JSON.stringify(error)}\n`);
}

const typeOf = (thrown: unknown): string =>
  thrown instanceof TooLong ? "exceed_context_size_error" : "invalid_request_error";

function refusalOf(thrown: unknown): { readonly status: number; readonly message: string } {
  if (thrown instanceof Refusal) return thrown;
  if (thrown instanceof TooLong)
    return { status: 400, message: `the input length exceeds the context length: ${thrown.message}` };
  if (thrown instanceof SchemaRefused || thrown instanceof SyntaxError)
    return { status: 400, message: thrown.message };
  return { status: 500, message: thrown instanceof Error ? thrown.message : String(thrown) };
}
