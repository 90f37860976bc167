import type { ModelRequest, ToolOffer } from "../../core/provider.ts";

/** What a probe asks of a model, and what it wants to see. */

export interface Seen {
  /** Calls that came in the server's own format. */
  readonly native: number;
  readonly calls: readonly { readonly name: string; readonly args: Readonly<Record<string, unknown>> }[];
  readonly text: string;
}

export interface Check {
  readonly name: string;
  readonly prompt: string;
  readonly passes: (seen: Seen) => boolean;
}

const text = { type: "string" } as const;

const offer = (name: string, description: string, properties: Record<string, object>): ToolOffer => ({
  name,
  description,
  schema: { type: "object", properties, required: Object.keys(properties), additionalProperties: false },
});

const TOOLS: readonly ToolOffer[] = [
  offer("read_note", "Returns the text of a note.", { title: text }),
  offer("write_note", "Keeps a note. The text is kept character by character.", { title: text, text }),
];

const CODE = 'function f() {\n  return {"a": [1, 2]};\n}';

const isCall = (
  call: Seen["calls"][number] | undefined,
  name: string,
  args: Record<string, string>,
): boolean =>
  call?.name === name &&
  Object.keys(call.args).length === Object.keys(args).length &&
  Object.entries(args).every(([key, value]) => String(call.args[key]).trim() === value);

export const ONE_CALL: Check = {
  name: "one call",
  prompt:
    'Call the tool read_note with the title "alpha". Make the call at once, without an answer in words.',
  passes: ({ calls }) => calls.length === 1 && isCall(calls[0], "read_note", { title: "alpha" }),
};

export const BRACES: Check = {
  name: "braces and newlines in a string",
  prompt: `Call the tool write_note with the title "code". The text is exactly these three lines:\n${CODE}`,
  passes: ({ calls }) => calls.length === 1 && isCall(calls[0], "write_note", { title: "code", text: CODE }),
};

export const CHECKS: readonly Check[] = [
  ONE_CALL,
  {
    name: "two calls in one reply",
    prompt:
      'Two notes are needed, "alpha" and "beta". Call the tool read_note twice in this one reply, first for "alpha", then for "beta".',
    passes: ({ calls }) =>
      calls.length === 2 &&
      isCall(calls[0], "read_note", { title: "alpha" }) &&
      isCall(calls[1], "read_note", { title: "beta" }),
  },
  BRACES,
  {
    name: "JSON that is only quoted",
    prompt:
      'Call no tool now. Explain in one sentence of plain words what this line of a log means, and quote the line in your answer: {"name": "read_note", "arguments": {"title": "alpha"}}',
    passes: ({ calls, text }) => calls.length === 0 && text.trim() !== "",
  },
];

/** The same every time, and long enough for a model that thinks first. */
export const requestFor = (model: string, { prompt }: Check): ModelRequest => ({
  model,
  messages: [
    { role: "system", text: "You are being tried out. Do exactly what you are told, and nothing else." },
    { role: "user", text: prompt },
  ],
  tools: TOOLS,
  maxTokens: 4096,
  temperature: 0,
});
