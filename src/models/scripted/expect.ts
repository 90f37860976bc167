import * as z from "zod";
import type { Message } from "../../core/messages.ts";
import type { WireRequest } from "../wire.ts";

/** What a step demands of the request that it answers. */

const pattern = z.string("expected a regular expression").transform((source, context) => {
  try {
    return new RegExp(source, "su");
  } catch {
    context.addIssue({ code: "custom", message: "expected a regular expression" });
    return z.NEVER;
  }
});

const words = z.string("expected text");

/** A text that must be there, one that must not, or a regular expression. */
const demand = z.union(
  [words, z.strictObject({ not: words }), z.strictObject({ matches: pattern })],
  'expected text, {"not": text} or {"matches": regular expression}',
);
const demands = z.union([demand, z.array(demand)]).optional();

export const expectationSchema = z.strictObject({
  system: demands,
  user: demands,
  tool: demands,
  any: demands,
  tools: z.array(words, "expected a list of tools' names").optional(),
  think: z.boolean("expected true or false").optional(),
});

export type Expectation = z.output<typeof expectationSchema>;
type Demand = z.output<typeof demand>;

const LONGEST_SHOWN = 300;

/** How the request differs from what is expected of it; undefined when it does not. */
export function mismatch(expected: Expectation, request: WireRequest): string | undefined {
  for (const place of ["system", "user", "tool", "any"] as const) {
    const wanted = expected[place];
    if (wanted === undefined) continue;
    const text = textAt(place, request.messages);
    const failed = [wanted].flat().find((demand) => !holds(demand, text));
    if (failed !== undefined) return `${PLACES[place]} ${told(failed)}; there is: ${shown(text)}`;
  }
  const { tools, think } = expected;
  const offered = request.nativeTools ? request.tools.map(({ name }) => name) : [];
  const missing = tools?.find((name) => !offered.includes(name));
  if (missing !== undefined)
    return `the tool ${missing} should be offered; there are: ${offered.join(", ") || "none"}`;
  if (think !== undefined && request.think !== think)
    return `thinking should be ${think}; it is: ${request.think ?? "left to the model"}`;
  return undefined;
}

const PLACES = {
  system: "the system prompt",
  user: "the last message of the user",
  tool: "the last results of tools",
  any: "some message",
} as const;

const texts = (kept: readonly Message[]): string => kept.map(({ text }) => text).join("\n");

function textAt(place: keyof typeof PLACES, messages: readonly Message[]): string {
  switch (place) {
    case "any":
      return texts(messages);
    case "system":
      return texts(messages.filter(({ role }) => role === "system"));
    case "user":
      return messages.findLast(({ role }) => role === "user")?.text ?? "";
    case "tool": {
      const since = messages.slice(messages.findLastIndex(({ role }) => role === "assistant") + 1);
      const results = since.filter(({ role }) => role === "tool");
      return texts(results.length > 0 ? results : since);
    }
  }
}

function holds(demand: Demand, text: string): boolean {
  if (typeof demand === "string") return text.includes(demand);
  return "not" in demand ? !text.includes(demand.not) : demand.matches.test(text);
}

function told(demand: Demand): string {
  if (typeof demand === "string") return `should hold ${JSON.stringify(demand)}`;
  return "not" in demand
    ? `should not hold ${JSON.stringify(demand.not)}`
    : `should match ${String(demand.matches)}`;
}

const shown = (text: string): string =>
  JSON.stringify(text.length > LONGEST_SHOWN ? `${text.slice(0, LONGEST_SHOWN)}…` : text);
