import * as z from "zod";
import { type Expectation, expectationSchema } from "./expect.ts";
import { type Part, partSchema } from "./parts.ts";

/** The schema of scenario files; docs/scripted-models.md explains it. */

/** The reply to one request. */
export interface Step {
  /** Where it begins in its file. */
  readonly line: number;
  readonly expect: Expectation;
  readonly reply: readonly Part[];
}

/** Steps that are played so many times. */
interface Loop {
  readonly repeat: number;
  readonly steps: readonly (Step | Loop)[];
}

export interface Scenario {
  readonly file: string;
  readonly steps: readonly (Step | Loop)[];
  readonly capabilities: Header;
}

const REPEAT = 'expected a whole number from 1 on, or "forever"';
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

const stepSchema = z.strictObject({
  expect: expectationSchema.default({}),
  reply: z.array(partSchema, "expected a list of parts"),
  repeat,
});

const loopSchema = z.strictObject({
  repeat,
  steps: z.array(z.unknown(), "expected a list of steps").min(1, "expected a list of steps"),
});

const capabilitiesSchema = z.strictObject({ capabilities: headerSchema });

export type Entry =
  | { readonly kind: "step"; readonly step: Step | Loop }
  | { readonly kind: "capabilities"; readonly header: Header };

/** What is wrong, and in which key. */
export class ScenarioFault extends Error {
  override readonly name = "ScenarioFault";
}

/** One value of a file. */
export function entryFrom(value: unknown, line: number): Entry {
  if (has(value, "capabilities"))
    return { kind: "capabilities", header: read(capabilitiesSchema, value).capabilities };
  return { kind: "step", step: stepFrom(value, line) };
}

function stepFrom(value: unknown, line: number): Step | Loop {
  if (has(value, "steps")) {
    const { repeat, steps } = read(loopSchema, value);
    return { repeat, steps: steps.map((step) => stepFrom(step, line)) };
  }
  const { expect, reply, repeat } = read(stepSchema, value);
  const step = { line, expect, reply };
  return repeat === 1 ? step : { repeat, steps: [step] };
}

const has = (value: unknown, key: string): boolean =>
  typeof value === "object" && value !== null && Object.hasOwn(value, key);

function read<T extends z.ZodType>(schema: T, value: unknown): z.output<T> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  const place = issue === undefined || issue.path.length === 0 ? "" : `${issue.path.join(".")}: `;
  throw new ScenarioFault(`${place}${issue?.message ?? "it is no step"}`);
}
