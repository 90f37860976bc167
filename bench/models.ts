import type { Capabilities, ModelRequest } from "../src/core/model-provider.ts";
import { makeProvider, type ProviderOptions } from "../src/models/provider.ts";
import type { ModelWire, WireEvent, WireRequest } from "../src/models/model-api.ts";
import { plainText } from "../src/models/text-calls/text-protocol.ts";
import { type Figure, inTurn } from "./figure.ts";

const CHUNKS = 20_000;
const RUNS = 15;
const signal = new AbortController().signal;

const TOOLS = Array.from({ length: 12 }, (_, index) => ({
  name: `tool_${index}`,
  description: "What the tool does, in a sentence or two of the usual length, and when to take another one.",
  schema: { type: "object", properties: { path: { type: "string" }, content: { type: "string" } } },
}));

/** A conversation of a hundred turns. */
const MESSAGES = Array.from({ length: 100 }, (_, turn) => [
  {
    role: "assistant" as const,
    text: "I look.",
    calls: [{ id: `call${turn}`, name: "tool_1", args: { path: "a" } }],
  },
  { role: "tool" as const, call: `call${turn}`, text: "a line of the file\n".repeat(40) },
]).flat();

const REQUEST: ModelRequest = { model: "bench", messages: MESSAGES, tools: TOOLS };
const SENT: WireRequest = { ...REQUEST, nativeTools: true, connectMs: 1000 };

const capabilities = (): Promise<Capabilities> => Promise.reject(new Error("nobody asks"));

/** A reply that is available at once: pieces of text as models stream them. */
const wire: ModelWire = {
  async *send() {
    await Promise.resolve();
    for (let chunk = 0; chunk < CHUNKS; chunk += 1) yield { type: "text", text: "some words " };
    yield { type: "stop", stop: "end" };
  },
};

const perChunk = (start: number): number => ((performance.now() - start) * 1000) / CHUNKS;

async function throughProvider(options: Pick<ProviderOptions, "written">): Promise<number> {
  const provider = makeProvider(wire, { capabilities, ...options });
  const start = performance.now();
  let text = "";
  for await (const event of provider.stream(REQUEST, signal)) if (event.type === "text") text += event.text;
  return checked(text, perChunk(start));
}

async function plainly(): Promise<number> {
  const start = performance.now();
  let text = "";
  for await (const event of wire.send(SENT, signal)) if (event.type === "text") text += event.text;
  return checked(text, perChunk(start));
}

function checked(text: string, us: number): number {
  if (text.trimEnd().length !== CHUNKS * "some words ".length - 1) throw new Error("the text is not whole");
  return us;
}

/** A typical reply of a turn: some prose, and three calls, one of them long. */
const REPLY: readonly WireEvent[] = [
  { type: "text", text: "I change the file and look at the others.\n".repeat(20) },
  {
    type: "call",
    index: 0,
    name: "tool_0",
    args: JSON.stringify({ path: "a.ts", content: "const line = 1;\n".repeat(500) }),
  },
  { type: "call", index: 1, name: "tool_1", args: '{"path":"b.ts"}' },
  { type: "call", index: 2, name: "tool_2", args: '{"path":"c.ts"}' },
  { type: "usage", prompt: 30_000, completion: 2600 },
  { type: "stop", stop: "calls" },
];

/** Microseconds from the end of the server's data to the `finished` event. */
async function toFinished(): Promise<number> {
  let end = Number.NaN;
  const ending: ModelWire = {
    async *send() {
      await Promise.resolve();
      yield* REPLY;
      end = performance.now();
    },
  };
  for await (const event of makeProvider(ending, { capabilities }).stream(REQUEST, signal))
    if (event.type === "finished" && event.message.calls.length === 3)
      return (performance.now() - end) * 1000;
  throw new Error("the reply did not end as it should");
}

/** The same events without the provider, with their arguments parsed. */
async function plainlyFinished(): Promise<number> {
  const start = performance.now();
  let calls = 0;
  for (const event of await Promise.resolve(REPLY))
    if (event.type === "call" && typeof JSON.parse(event.args ?? "") === "object") calls += 1;
  if (calls !== 3) throw new Error("the reply did not end as it should");
  return (performance.now() - start) * 1000;
}

const PASSED = "the same events passed on";

export const MODELS: readonly Figure[] = [
  {
    name: "models.chunk",
    unit: "us",
    against: PASSED,
    hold: 6,
    measure: () => inTurn(RUNS, () => throughProvider({ written: plainText }), plainly),
  },
  // The same, but the text is searched for calls.
  {
    name: "models.read",
    unit: "us",
    against: PASSED,
    hold: 25,
    measure: () => inTurn(RUNS, () => throughProvider({}), plainly),
  },
  {
    name: "models.finished",
    unit: "us",
    against: "the same events, their arguments read as JSON",
    hold: 40,
    measure: () => inTurn(101, toFinished, plainlyFinished),
  },
];
