import * as z from "zod";
import { DURATION_FORM, parseDuration } from "../../core/bounds.ts";
import type { FailureKind, Stop } from "../../core/provider.ts";

/** What a reply is made of, in the order in which it comes. A part is named by one key; a bare text is a text. */

const MOST_TIMES = 1_000_000;

const text = z.string("expected text");
const name = z.string("expected a tool's name").min(1, "expected a tool's name");
const times = z
  .int(`expected a whole number from 1 to ${MOST_TIMES}`)
  .min(1, "expected 1 or more")
  .max(MOST_TIMES, `expected ${MOST_TIMES} or less`)
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

const KINDS = [
  "unreachable",
  "unauthorised",
  "no_model",
  "too_long",
  "rate_limited",
  "server",
  "garbled",
  "timeout",
  "out_of_memory",
  "empty",
  "cut",
  "refused",
] as const satisfies readonly FailureKind[];

const oneOf = <const T extends readonly string[]>(values: T) =>
  z.enum(values, `expected one of ${values.join(", ")}`);

/** The forms in which a call can be written into the text. */
export const FORMS = ["tag", "fence", "bare"] as const;

const shapes = {
  text: z.strictObject({ text, times }),
  thinking: z.strictObject({ thinking: text, times }),
  /** Arguments as text are sent as they are, so they can be wrong. */
  call: z.strictObject({ call: name, args: z.union([object, text]).default({}), id: text.optional() }),
  written: z.strictObject({ written: name, args: object.default({}), form: oneOf(FORMS).default("tag") }),
  delay: z.strictObject({ delay: duration }),
  usage: z.strictObject({ usage: z.strictObject({ prompt: count, completion: count, cached: count }) }),
  stop: z.strictObject({ stop: oneOf(STOPS) }),
  note: z.strictObject({ note: text }),
  fail: z.strictObject({
    fail: oneOf(KINDS),
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
export type Part = { [Key in keyof Shapes]: { readonly kind: Key } & z.output<Shapes[Key]> }[keyof Shapes];

const NAMES = Object.keys(shapes) as (keyof Shapes)[];

/** One part; what is wrong with it is told of the key that names it, not of every kind of part. */
export const partSchema = z.unknown().transform((value, context): Part => {
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
  if (read.success) return { kind, ...read.data } as Part;
  for (const { path, message } of read.error.issues) context.addIssue({ code: "custom", path, message });
  return z.NEVER;
});
