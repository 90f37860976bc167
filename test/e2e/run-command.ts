import type { ChildProcess } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import type { ServerResponse } from "node:http";
import type { AgentEvent } from "../../src/core/events.ts";
import { type FakeOllama, startFakeOllama } from "../fakes/ollama-server.ts";
import { type Ended, runProgram } from "../fixtures/cli.ts";
import type { Scratch } from "../fixtures/scratch.ts";

/** Runs `harness run` as a user types it, against an Ollama on this machine with scripted answers. */

export type Ran = Ended;

export interface RunStart {
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string;
  readonly cwd?: string;
  /** Called once this file exists. */
  readonly whenMade?: readonly [file: string, then: (child: ChildProcess) => void];
  /** Closes its stdout after the first bytes. */
  readonly readsOnce?: boolean;
  /** Kills the run with SIGKILL after this time. */
  readonly killAfterMs?: number;
}

/** Runs in a separate home in the scratch folder, with the workspace `work`. */
export const harness = (place: Scratch, words: readonly string[], start: RunStart = {}): Promise<Ran> =>
  runProgram("bin/harness", words, {
    env: start.env,
    home: place.path,
    cwd: start.cwd ?? place.at("work"),
    input: start.input ?? "",
    onStart: (child) => watch(child, start),
  });

function watch(child: ChildProcess, { whenMade, readsOnce, killAfterMs }: RunStart): void {
  child.stdin?.on("error", () => undefined);
  if (readsOnce === true) child.stdout?.once("data", () => child.stdout?.destroy());
  const [file = "", then] = whenMade ?? [];
  const poll = setInterval(() => {
    if (then === undefined || !existsSync(file)) return;
    clearInterval(poll);
    then(child);
  }, 20);
  const kill = killAfterMs === undefined ? undefined : setTimeout(() => child.kill("SIGKILL"), killAfterMs);
  for (const event of ["error", "close"])
    child.once(event, () => {
      clearInterval(poll);
      clearTimeout(kill);
    });
}

/** The events of a run with --json. */
export const eventsOf = ({ stdout }: Ran): readonly AgentEvent[] =>
  stdout
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as AgentEvent);

type Finished = Extract<AgentEvent, { readonly type: "run.finished" }>;

export function finishedOf(ran: Ran): Finished {
  const last = eventsOf(ran).at(-1);
  if (last?.type !== "run.finished") throw new Error(`no run.finished: ${ran.stdout}\n${ran.stderr}`);
  return last;
}

/** A message of a request, in the format of Ollama's API. */
export interface AskedMessage {
  readonly role: string;
  readonly content: string;
  readonly tool_calls?: readonly {
    readonly function: { readonly name: string; readonly arguments: Readonly<Record<string, unknown>> };
  }[];
}

export interface AskedChat {
  readonly messages: readonly AskedMessage[];
  readonly tools?: readonly {
    readonly function: { readonly name: string; readonly parameters?: { readonly properties?: object } };
  }[];
  readonly format?: unknown;
  readonly options?: { readonly num_predict?: number; readonly temperature?: number };
}

/** A reply: its text and its calls. */
export interface Said {
  readonly text?: string;
  readonly calls?: readonly (readonly [name: string, args: Readonly<Record<string, unknown>>])[];
  /** Token counts reported by the server. */
  readonly tokens?: readonly [prompt: number, completion: number];
}

/** A broken answer: what the server writes, and whether it then drops the connection. */
export interface Broken {
  readonly status?: number;
  readonly lines: readonly object[];
  readonly drops?: boolean;
}

export interface Model extends AsyncDisposable {
  /** Flags that direct `harness` to this server. */
  readonly flags: readonly string[];
  /** The same, for a model that this server passes on to another machine. */
  readonly cloudFlags: readonly string[];
  /** The same, for a small model. */
  readonly smallFlags: readonly string[];
  /** The same, for a model that only its server reports as small. */
  readonly toldSmallFlags: readonly string[];
  readonly port: number;
  /** All requests so far, in order. */
  readonly asked: () => readonly AskedChat[];
}

/** Answers for the nth request; the last one is repeated. */
type Reply = Said | Broken | "hang" | "cut";
export type Replies = readonly Reply[] | ((chat: AskedChat, nth: number) => Reply | Promise<Reply>);

export async function startModel(replies: Replies, context = 32_768, port = 0): Promise<Model> {
  const state = { nth: 0 };
  const chat = async (body: unknown, response: ServerResponse): Promise<void> => {
    const nth = state.nth;
    state.nth += 1;
    const said =
      typeof replies === "function"
        ? await replies(body as AskedChat, nth)
        : replies.at(Math.min(nth, replies.length - 1));
    if (said === "hang") return;
    if (said === "cut" || said === undefined) {
      response.destroy();
      return;
    }
    const { status = 200, lines, drops = false } = "lines" in said ? said : { lines: linesOf(said) };
    response.writeHead(status, { "content-type": "application/x-ndjson" });
    for (const line of lines) response.write(`${JSON.stringify(line)}\n`);
    if (drops) setImmediate(() => response.destroy());
    else response.end();
  };
  const server: FakeOllama = await startFakeOllama({
    models: ["coder:7b", "coder:7b-cloud", "coder:1b", "mine:latest"].map((name) => ({
      name,
      ...(name === "mine:latest" ? { parameters: 1_543_714_304 } : {}),
      trained: context,
      capabilities: ["completion", "tools"],
    })),
    routes: { "/api/chat": (body, response) => void chat(body, response) },
    port,
  });
  const flags = ["--provider", "ollama", "--base-url", server.url, "--model"];
  return {
    flags: [...flags, "coder:7b"],
    cloudFlags: [...flags, "coder:7b-cloud"],
    smallFlags: [...flags, "coder:1b"],
    toldSmallFlags: [...flags, "mine"],
    port: Number(new URL(server.url).port),
    asked: () =>
      server.requests.filter(({ path: at }) => at === "/api/chat").map(({ body }) => body as AskedChat),
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

export function* linesOf({ text = "", calls = [], tokens }: Said): Generator<object> {
  const head = { model: "coder:7b", created_at: "2026-01-01T00:00:00Z" };
  const tool_calls = calls.map(([name, args]) => ({ function: { name, arguments: args } }));
  if (text !== "") yield { ...head, message: { role: "assistant", content: text }, done: false };
  if (calls.length > 0)
    yield { ...head, message: { role: "assistant", content: "", tool_calls }, done: false };
  const counts = tokens === undefined ? {} : { prompt_eval_count: tokens[0], eval_count: tokens[1] };
  yield { ...head, message: { role: "assistant", content: "" }, done: true, done_reason: "stop", ...counts };
}

type Call = NonNullable<Said["calls"]>[number];

/** One reply that calls bash once for each command. */
export const bash = (...commands: readonly string[]): Said => ({
  calls: commands.map((command) => ["bash", { command }] as const),
});

/** Replies with one call after the other, whatever the results, then an answer. */
export const calling =
  (calls: readonly Call[]): Replies =>
  (chat): Said => {
    const call = calls[chat.messages.filter(({ role }) => role === "tool").length];
    return call === undefined ? { text: "All of it is done." } : { text: "Next.", calls: [call] };
  };

/** The last message of a request. */
export const lastOf = (chat: AskedChat | undefined): string => chat?.messages.at(-1)?.content ?? "";

/** Whether this is a request for a summary of messages that later requests will omit. */
export const isAside = ({ messages }: AskedChat): boolean =>
  messages.at(-1)?.content.includes("will no longer be shown to you") === true;

/** All audit lines in a user's state folder. */
export const auditLines = (place: Scratch): readonly Record<string, unknown>[] => {
  const folder = place.at(".local/state/harness/audit");
  return readdirSync(folder)
    .filter((name) => name.endsWith(".jsonl"))
    .flatMap((name) => readFileSync(path.join(folder, name), "utf8").trim().split("\n"))
    .map((line) => JSON.parse(line) as Record<string, unknown>);
};
