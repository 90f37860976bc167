import type { Stats } from "node:fs";
import * as z from "zod";
import { DuplicateKey, JsonEnds, parseUniqueJson } from "../../core/text/json-text.ts";
import { withoutMark } from "../../core/raw-data.ts";
import { visibleLine } from "../../core/visible.ts";
import { truncate, DURATION_FORM, parseDuration } from "../../core/wording.ts";
import { EXIT, HarnessError, reasonOf } from "../../core/errors.ts";
import { type Message, SERVER_FAILURES, type Stop } from "../../core/model-provider.ts";
import { readRegularSync } from "../../platform/safe-files.ts";
import type { WireRequest } from "../model-api.ts";

/** A step's conditions on the request that it answers. */

const pattern = z.string("expected a regular expression").transform((source, context) => {
  try {
    return new RegExp(source, "su");
  } catch {
    context.addIssue({ code: "custom", message: "expected a regular expression" });
    return z.NEVER;
  }
});

const words = z.string("expected text");

/** A text that must occur, a text that must not, or a regular expression. */
const demand = z.union(
  [words, z.strictObject({ not: words }), z.strictObject({ matches: pattern })],
  'expected text, {"not": text} or {"matches": regular expression}',
);
const demands = z.union([demand, z.array(demand)]).optional();

const expectationSchema = z.strictObject({
  system: demands,
  user: demands,
  tool: demands,
  any: demands,
  tools: z.array(words, "expected a list of tool names").optional(),
  think: z.boolean("expected true or false").optional(),
});

type Expectation = z.output<typeof expectationSchema>;
type Demand = z.output<typeof demand>;

const MAX_SHOWN_LENGTH = 300;

/** How the request differs from the expectation; undefined if it matches. */
export function mismatch(expected: Expectation, request: WireRequest): string | undefined {
  for (const place of ["system", "user", "tool", "any"] as const) {
    const wanted = expected[place];
    if (wanted === undefined) continue;
    const text = textAt(place, request.messages);
    const failed = [wanted].flat().find((demand) => !meetsDemand(demand, text));
    if (failed !== undefined)
      return `${PLACES[place]} ${describeDemand(failed)}; there is: ${quoteText(text)}`;
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

const joinedTexts = (kept: readonly Message[]): string => kept.map(({ text }) => text).join("\n");

function textAt(place: keyof typeof PLACES, messages: readonly Message[]): string {
  switch (place) {
    case "any":
      return joinedTexts(messages);
    case "system":
      return joinedTexts(messages.filter(({ role }) => role === "system"));
    case "user":
      return messages.findLast(({ role }) => role === "user")?.text ?? "";
    case "tool": {
      const since = messages.slice(messages.findLastIndex(({ role }) => role === "assistant") + 1);
      const results = since.filter(({ role }) => role === "tool");
      return joinedTexts(results.length > 0 ? results : since);
    }
  }
}

function meetsDemand(demand: Demand, text: string): boolean {
  if (typeof demand === "string") return text.includes(demand);
  return "not" in demand ? !text.includes(demand.not) : demand.matches.test(text);
}

function describeDemand(demand: Demand): string {
  if (typeof demand === "string") return `should contain ${JSON.stringify(demand)}`;
  return "not" in demand
    ? `should not contain ${JSON.stringify(demand.not)}`
    : `should match ${String(demand.matches)}`;
}

const quoteText = (text: string): string => JSON.stringify(truncate(text, MAX_SHOWN_LENGTH));

/** The parts of a reply, in order. One key names the kind of a part; a bare string is text. */

const MAX_TIMES = 1_000_000;

const text = z.string("expected text");
const name = z.string("expected a tool's name").min(1, "expected a tool's name");
const times = z
  .int(`expected a whole number from 1 to ${MAX_TIMES}`)
  .min(1, "expected 1 or more")
  .max(MAX_TIMES, `expected ${MAX_TIMES} or less`)
  .default(1);
const count = z.int("expected a number of tokens").min(0, "expected 0 or more").optional();
const yes = z.literal(true, "expected true");
const object = z.record(z.string(), z.unknown(), "expected an object of arguments");

const duration = z
  .union([z.string(), z.number()], `expected ${DURATION_FORM}`)
  .transform((value, context) => {
    const ms = parseDuration(String(value));
    if (ms !== undefined) return ms;
    context.addIssue({ code: "custom", message: `expected ${DURATION_FORM}` });
    return z.NEVER;
  });

const STOPS = ["end", "calls", "length", "filtered", "unknown"] as const satisfies readonly Stop[];

const oneOf = <const T extends readonly string[]>(values: T) =>
  z.enum(values, `expected one of ${values.join(", ")}`);

/** The forms in which a call can be written as text. */
export const FORMS = ["tag", "fence", "bare"] as const;

const shapes = {
  text: z.strictObject({ text, times }),
  thinking: z.strictObject({ thinking: text, times }),
  /** Arguments given as text are sent unchanged, so they can be invalid. */
  call: z.strictObject({ call: name, args: z.union([object, text]).default({}), id: text.optional() }),
  written: z.strictObject({ written: name, args: object.default({}), form: oneOf(FORMS).default("tag") }),
  delay: z.strictObject({ delay: duration }),
  usage: z.strictObject({ usage: z.strictObject({ prompt: count, completion: count, cached: count }) }),
  stop: z.strictObject({ stop: oneOf(STOPS) }),
  note: z.strictObject({ note: text }),
  fail: z.strictObject({
    fail: oneOf(SERVER_FAILURES),
    reason: text.optional(),
    passing: z.boolean("expected true or false").default(false),
    retry_after: duration.optional(),
    raw: text.optional(),
  }),
  refuse_tools: z.strictObject({ refuse_tools: yes }),
  cut: z.strictObject({ cut: yes }),
  garbage: z.strictObject({ garbage: text }),
};

type Shapes = typeof shapes;
export type ScenarioPart = {
  [Key in keyof Shapes]: { readonly kind: Key } & z.output<Shapes[Key]>;
}[keyof Shapes];

const NAMES = Object.keys(shapes) as (keyof Shapes)[];

/** One part. An error concerns only the kind that its key names, not every kind of part. */
const partSchema = z.unknown().transform((value, context): ScenarioPart => {
  if (typeof value === "string") return { kind: "text", text: value, times: 1 };
  const named =
    typeof value === "object" && value !== null ? NAMES.filter((name) => Object.hasOwn(value, name)) : [];
  const [kind, other] = named;
  if (kind === undefined || other !== undefined) {
    const message = `expected text, or an object with one of ${NAMES.join(", ")}`;
    context.addIssue({ code: "custom", message });
    return z.NEVER;
  }
  const read = shapes[kind].safeParse(value);
  if (read.success) return { kind, ...read.data } as ScenarioPart;
  for (const { path, message } of read.error.issues) context.addIssue({ code: "custom", path, message });
  return z.NEVER;
});

const MAX_BYTES = 16 * 2 ** 20;
const REMEDY = "docs/scripted-models.md explains the form; examples/ has scenarios.";

export function readScenario(file: string): Scenario {
  return scenarioFrom(textOf(file), file);
}

/** JSON values one after another, each starting on a new line; between them, lines that begin with // are comments. */
export function scenarioFrom(text: string, file: string): Scenario {
  const steps: Scenario["steps"][number][] = [];
  let capabilities: Scenario["capabilities"] = {};
  for (const { json, line } of valuesIn(text, file)) {
    const entry = entryAt(json, line, file);
    if (entry.kind === "step") steps.push(entry.step);
    else if (steps.length === 0) capabilities = entry.header;
    else throw fault(file, line, "capabilities must come before the first step");
  }
  if (steps.length === 0) throw fault(file, 1, "there are no steps");
  return { file, steps, capabilities };
}

function* valuesIn(text: string, file: string): Generator<{ readonly json: string; readonly line: number }> {
  let open: { ends: JsonEnds; lines: string[]; line: number } | null = null;
  for (const [index, line] of withoutMark(text).split("\n").entries()) {
    const bare = line.trim();
    if (open === null && (bare === "" || bare.startsWith("//"))) continue;
    open ??= { ends: new JsonEnds(), lines: [], line: index + 1 };
    open.lines.push(line);
    open.ends.push(line);
    if (open.ends.open) continue;
    yield { json: open.lines.join("\n"), line: open.line };
    open = null;
  }
  if (open !== null) throw fault(file, open.line, "a bracket or a quote that opens here is never closed");
}

function entryAt(json: string, line: number, file: string): Entry {
  try {
    return entryFrom(parseUniqueJson(json), line);
  } catch (thrown) {
    if (thrown instanceof ScenarioFault) throw fault(file, line, thrown.message);
    if (thrown instanceof DuplicateKey) throw fault(file, line, visibleLine(thrown.message));
    throw fault(file, line, `this is not JSON: ${reasonOf(thrown)}`);
  }
}

const fault = (file: string, line: number, reason: string): HarnessError =>
  new HarnessError(EXIT.usage, `${file}:${line}: ${reason}`, REMEDY);

function textOf(file: string): string {
  try {
    const check = ({ size }: Stats): void => {
      if (size > MAX_BYTES) throw new Error(`it has ${size} bytes, too many for a scenario`);
    };
    return readRegularSync(file, { links: "follow", max: MAX_BYTES, check }).toString();
  } catch (thrown) {
    throw new HarnessError(EXIT.usage, `cannot read the scenario ${file}: ${reasonOf(thrown)}`, REMEDY);
  }
}

/** The schema of scenario files; docs/scripted-models.md explains it. */

/** The reply to one request. */
export interface ScenarioStep {
  /** The line of the file where the step begins. */
  readonly line: number;
  readonly expect: Expectation;
  /** The beginning of the conversation that the step is for; undefined: any conversation that no other step is for. */
  readonly to: string | undefined;
  readonly reply: readonly ScenarioPart[];
}

/** Steps that are repeated. */
interface Loop {
  readonly repeat: number;
  readonly steps: readonly (ScenarioStep | Loop)[];
}

export interface Scenario {
  readonly file: string;
  readonly steps: readonly (ScenarioStep | Loop)[];
  readonly capabilities: Header;
}

const REPEAT = 'expected a whole number from 1 up, or "forever"';
const repeat = z
  .union([z.literal("forever"), z.int().min(1, REPEAT)], REPEAT)
  .default(1)
  .transform((times) => (times === "forever" ? Number.POSITIVE_INFINITY : times));

const yesNo = z.boolean("expected true or false").optional();
const headerSchema = z.strictObject({
  context: z.int("expected a number of tokens").min(1, "expected a number of tokens").optional(),
  tools: yesNo,
  thinking: yesNo,
  cache: yesNo,
});
type Header = z.output<typeof headerSchema>;

/** The fault, and the key that has it. */
class ScenarioFault extends Error {
  override readonly name = "ScenarioFault";
}

const stepSchema = z.strictObject({
  expect: expectationSchema.default({}),
  to: words.optional(),
  reply: z.array(partSchema, "expected a list of parts"),
  repeat,
});

const loopSchema = z.strictObject({
  repeat,
  steps: z.array(z.unknown(), "expected a list of steps").min(1, "expected a list of steps"),
});

const capabilitiesSchema = z.strictObject({ capabilities: headerSchema });

type Entry =
  | { readonly kind: "step"; readonly step: ScenarioStep | Loop }
  | { readonly kind: "capabilities"; readonly header: Header };

function entryFrom(value: unknown, line: number): Entry {
  if (has(value, "capabilities"))
    return { kind: "capabilities", header: read(capabilitiesSchema, value).capabilities };
  return { kind: "step", step: stepFrom(value, line) };
}

function stepFrom(value: unknown, line: number): ScenarioStep | Loop {
  if (has(value, "steps")) {
    const { repeat, steps } = read(loopSchema, value);
    return { repeat, steps: steps.map((step) => stepFrom(step, line)) };
  }
  const { expect, to, reply, repeat } = read(stepSchema, value);
  const step = { line, expect, to, reply };
  return repeat === 1 ? step : { repeat, steps: [step] };
}

const has = (value: unknown, key: string): boolean =>
  typeof value === "object" && value !== null && Object.hasOwn(value, key);

function read<T extends z.ZodType>(schema: T, value: unknown): z.output<T> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  const place = issue === undefined || issue.path.length === 0 ? "" : `${issue.path.join(".")}: `;
  throw new ScenarioFault(`${place}${issue?.message ?? "it is not a step"}`);
}
