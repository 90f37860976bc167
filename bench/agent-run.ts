import { type ChildProcess, spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";

const LAUNCHER = path.join(import.meta.dirname, "..", "bin", "harness");

interface Body {
  readonly messages: readonly object[];
  readonly tools?: readonly object[];
}

/** Timings of one run against a model that answers at once: `turns` turns, each with one trivial command in the box. */
export interface AgentRun {
  /** From the start of the process to the first request. */
  readonly firstMs: number;
  readonly wholeMs: number;
  /** From the last byte of the last reply to the end of the process. */
  readonly endMs: number;
  /** From the last byte of a reply to the next request, with the command in between. */
  readonly gapsMs: readonly number[];
  /** The text of each request: system prompt, tools and messages, in the order in which a server reads them. */
  readonly prompts: readonly string[];
  /** Peak memory of the process in MB, taken at its last request. */
  readonly peakMb: number;
}

/** `beside` runs before each reply, while the run waits; it is not part of any gap. */
export async function agentRun(
  turns: number,
  folder: string,
  beside: (nth: number) => Promise<unknown> = () => Promise.resolve(),
): Promise<AgentRun> {
  const asked: { readonly at: number; readonly body: Body }[] = [];
  const answered: number[] = [];
  const state: { child?: ChildProcess; peak: number } = { peak: 0 };
  const chat = async (body: Body, response: ServerResponse): Promise<void> => {
    asked.push({ at: performance.now(), body });
    await beside(asked.length);
    if (asked.length === turns + 1) state.peak = await peakOf(state.child?.pid ?? 0);
    response.writeHead(200, { "content-type": "application/x-ndjson" });
    response.end(replyOf(asked.length, turns));
    answered.push(performance.now());
  };
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const text = Buffer.concat(chunks).toString();
      if (request.url === "/api/chat") void chat(JSON.parse(text) as Body, response);
      else response.end(JSON.stringify(OTHER[request.url ?? ""] ?? {}));
    });
  });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  try {
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const start = performance.now();
    const child = started(url, folder);
    state.child = child;
    await ended(child);
    const end = performance.now();
    const [first] = asked;
    if (first === undefined || asked.length !== turns + 1)
      throw new Error(`${asked.length} requests came for ${turns} turns`);
    return {
      firstMs: first.at - start,
      wholeMs: end - start,
      endMs: end - (answered.at(-1) ?? Number.NaN),
      gapsMs: asked.slice(1).map(({ at }, index) => at - (answered[index] ?? Number.NaN)),
      prompts: asked.map(({ body }) => promptOf(body)),
      peakMb: state.peak,
    };
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

function started(url: string, folder: string): ChildProcess {
  const words = ["run", "--quiet", "--provider", "ollama", "--base-url", url, "--model", "bench:7b"];
  const turns = ["--max-turns", "200", "Run the commands one after the other."];
  const env = { PATH: process.env["PATH"], HOME: path.join(folder, "home") };
  const cwd = path.join(folder, "work");
  return spawn(LAUNCHER, [...words, ...turns], { cwd, env, stdio: ["ignore", "ignore", "inherit"] });
}

async function ended(child: ChildProcess): Promise<void> {
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", resolve);
  });
  if (code !== 0) throw new Error(`the run ended with ${code}`);
}

function replyOf(nth: number, turns: number): string {
  const call = { function: { name: "bash", arguments: { command: `true ${nth}` } } };
  const message =
    nth > turns
      ? { role: "assistant", content: "Done." }
      : { role: "assistant", content: "", tool_calls: [call] };
  const counts = { prompt_eval_count: 1000 + nth * 60, eval_count: 20 };
  return `${JSON.stringify({ model: "bench:7b", message, done: false })}\n${JSON.stringify({ model: "bench:7b", message: { role: "assistant", content: "" }, done: true, done_reason: "stop", ...counts })}\n`;
}

const OTHER: Readonly<Record<string, object>> = {
  "/api/version": { version: "0.30.0" },
  "/api/tags": { models: [{ name: "bench:7b", model: "bench:7b" }] },
  "/api/ps": { models: [] },
  "/api/show": {
    capabilities: ["completion", "tools"],
    model_info: { "general.architecture": "qwen3", "qwen3.context_length": 131_072 },
  },
};

/** In the order of a chat template: tools belong to the system part. */
const promptOf = ({ messages: [system, ...others], tools }: Body): string =>
  [system, tools, ...others].map((part) => JSON.stringify(part)).join("\n");

async function peakOf(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, "utf8");
  return Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1]) / 1024;
}
