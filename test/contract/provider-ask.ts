import assert from "node:assert/strict";
import type { Capabilities, ModelRequest, ProviderEvent, ToolOffer } from "../../src/core/model-provider.ts";
import type { RequestLimits } from "../../src/models/model-api.ts";
import { makeProvider } from "../../src/models/provider.ts";
import { HISTORY, KEY, type Opened, type Scenario, type ServerFixture } from "./provider-server.ts";

/** Asks a provider as the agent does, and checks what must hold for every answer. */

const pathed = (name: string, description: string): ToolOffer => ({
  name,
  description,
  schema: {
    type: "object",
    properties: { path: { type: "string" }, content: { type: "string" } },
    required: ["path"],
    additionalProperties: false,
  },
});

export const TOOLS: readonly ToolOffer[] = [
  pathed("list_dir", "Lists a folder."),
  pathed("read_file", "Reads a file."),
  pathed("write_file", "Writes a file."),
];

export const REQUEST: ModelRequest = { model: "contract-model", messages: HISTORY, tools: TOOLS };

const CAPABILITIES: Capabilities = {
  context: 8192,
  tools: true,
  calls: "native",
  thinking: true,
  cache: true,
  origin: { context: "user", tools: "user", calls: "user", thinking: "user", cache: "user" },
};

/** Too long to be reached even on a loaded machine: a test of one limit sets it shorter. */
const LIMITS: RequestLimits = {
  connectMs: 60_000,
  firstMs: 60_000,
  idleMs: 60_000,
  totalMs: 120_000,
  characters: 16 * 2 ** 20,
  events: 100_000,
};

export type Finished = Extract<ProviderEvent, { readonly type: "finished" }>;
export type Failed = Extract<ProviderEvent, { readonly type: "failed" }>;
type Waiting = Extract<ProviderEvent, { readonly type: "waiting" }>;

export interface Answer {
  readonly events: readonly ProviderEvent[];
  readonly waits: readonly Waiting[];
  /** Text since the start of the last attempt. */
  readonly text: string;
  readonly thinking: string;
  readonly last: Finished | Failed;
}

export interface Talk extends AsyncDisposable {
  readonly opened: Opened;
  readonly ask: (change?: Partial<ModelRequest>, signal?: AbortSignal) => Promise<Answer>;
  readonly stream: (signal: AbortSignal) => AsyncIterable<ProviderEvent>;
}

/** A provider over the fixture's adapter. Waits before retries take no time. */
export async function talk(
  fixture: ServerFixture,
  scenario: Scenario,
  limits: Partial<RequestLimits> = {},
): Promise<Talk> {
  const opened = await fixture.open(scenario);
  const provider = makeProvider(opened.wire, {
    capabilities: () => Promise.resolve(CAPABILITIES),
    limits: { ...LIMITS, ...limits },
    retry: { wait: () => Promise.resolve() },
    keys: [KEY],
  });
  return {
    opened,
    stream: (signal) => provider.stream(REQUEST, signal),
    ask: async (change = {}, signal = new AbortController().signal) =>
      answerFrom(await all(provider.stream(frozen({ ...REQUEST, ...change }), signal))),
    [Symbol.asyncDispose]: () => opened[Symbol.asyncDispose](),
  };
}

async function all(stream: AsyncIterable<ProviderEvent>): Promise<readonly ProviderEvent[]> {
  const events: ProviderEvent[] = [];
  for await (const event of stream) events.push(event);
  return events;
}

/** Freezes a request deeply, so that nothing in it can be changed. */
function frozen(request: ModelRequest): ModelRequest {
  const freeze = (value: unknown): void => {
    if (typeof value !== "object" || value === null || Object.isFrozen(value)) return;
    Object.freeze(value);
    for (const inner of Object.values(value)) freeze(inner);
  };
  freeze(request);
  return request;
}

export function answerFrom(events: readonly ProviderEvent[]): Answer {
  const endings = events.filter(({ type }) => type === "finished" || type === "failed");
  const last = events.at(-1);
  assert.ok(last !== undefined && (last.type === "finished" || last.type === "failed"), "no ending");
  assert.equal(endings.length, 1, "one ending");
  const since = events.slice(events.findLastIndex(({ type }) => type === "waiting") + 1);
  const joined = (kind: "text" | "thinking"): string =>
    since.map((event) => (event.type === kind ? event.text : "")).join("");
  const [text, thinking] = [joined("text"), joined("thinking")];
  if (last.type === "finished") {
    assert.equal(last.message.text, text, "texts joined are the message's text");
    assert.equal(last.message.thinking ?? "", thinking, "thoughts joined are the message's thinking");
  } else {
    assert.notEqual(last.failure.reason, "");
    assert.doesNotMatch(JSON.stringify(events), new RegExp(KEY), "no key in a failure");
  }
  return {
    events,
    waits: events.filter((event) => event.type === "waiting"),
    text,
    thinking,
    last,
  };
}

export function finished({ last }: Answer): Finished {
  assert.equal(last.type, "finished", JSON.stringify(last));
  return last;
}

export function failed({ last }: Answer): Failed {
  assert.equal(last.type, "failed", JSON.stringify(last));
  return last;
}

export const calls = (answer: Answer): readonly { name: string; args: unknown }[] =>
  finished(answer).message.calls.map(({ name, args }) => ({ name, args }));
