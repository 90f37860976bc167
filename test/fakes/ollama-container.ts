import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { chatLine, doneLine } from "./ollama-chat.ts";
import { startFakeOllama } from "./ollama-server.ts";

/**
 * Runs as `ollama` in a test image: it keeps its models and the parts of downloads in the folder of the sidecar's
 * volume, so that a recreated container has what its predecessor had.
 */

const STORE = "/root/.ollama";
const TOTAL = 10_000_000;
const STEPS = 20;
const STEP_MS = 100;

const fileOf = (name: string, kind: "model" | "part"): string =>
  `${STORE}/${encodeURIComponent(name)}.${kind}`;

const models = (): string[] =>
  readdirSync(STORE)
    .filter((file) => file.endsWith(".model"))
    .map((file) => decodeURIComponent(file.slice(0, -".model".length)));

/** Continues an earlier download of the same model, as Ollama does. */
function pull(body: unknown, response: ServerResponse, add: (name: string) => void): void {
  const { model } = body as { readonly model: string };
  const part = fileOf(model, "part");
  let done = existsSync(part) ? Number(readFileSync(part, "utf8")) : 0;
  const tell = (value: object): void => void response.write(`${JSON.stringify(value)}\n`);
  response.writeHead(200, { "content-type": "application/x-ndjson" });
  tell({ status: "pulling manifest" });
  const timer = setInterval(() => {
    tell({ status: "pulling a3de86cd1c13", digest: "sha256:a3de86cd1c13", total: TOTAL, completed: done });
    if (done < TOTAL) {
      done = Math.min(TOTAL, done + TOTAL / STEPS);
      writeFileSync(part, String(done));
      return;
    }
    clearInterval(timer);
    writeFileSync(fileOf(model, "model"), "");
    add(model);
    tell({ status: "success" });
    response.end();
  }, STEP_MS);
  response.on("close", () => clearInterval(timer));
}

const [, , command = ""] = process.argv;
if (command === "list") {
  const { ok } = await fetch("http://127.0.0.1:11434/api/tags").catch(() => ({ ok: false }));
  process.exit(ok ? 0 : 1);
}
process.on("SIGTERM", () => process.exit(0));
mkdirSync(STORE, { recursive: true });
const shown = (name: string): object => ({
  model_info: { "general.architecture": "fake", "fake.context_length": 40_960 },
  capabilities: name.includes("embed") ? ["embedding"] : ["completion", "tools"],
});
const list = models();
await startFakeOllama({
  host: "0.0.0.0",
  port: 11_434,
  version: "0.32.15",
  routes: {
    "/api/tags": (_body, response) =>
      void response.end(JSON.stringify({ models: list.map((name) => ({ name, model: name, size: TOTAL })) })),
    "/api/show": (body, response) =>
      void response.end(JSON.stringify(shown((body as { model: string }).model))),
    "/api/pull": (body, response) => pull(body, response, (name) => void list.push(name)),
    "/api/chat": (_body, response) => {
      response.writeHead(200, { "content-type": "application/x-ndjson" });
      response.end(chatLine({ content: "It is four." }) + doneLine());
    },
  },
});
