import * as z from "zod";
import { commandForm, patienceForm } from "./hook-form.ts";

/** Tools that a user or a trusted project adds: a command of the box, and the form of what it is given. */

const NAME = /^[\w-]{1,64}$/;
const NAMED = "expected names of tools, of at most 64 letters, digits, _ and -";
const SCHEMA = "expected a JSON Schema of an object";
const MAX_SCHEMA = 16 * 1024;
const DEEPEST = 16;
const DESCRIPTION = "expected a description of at most 2,000 characters";

/** Nothing that takes long to be read, or to be told to a model with every request. */
const schemaForm = z
  .record(z.string(), z.unknown(), SCHEMA)
  .refine((schema) => (schema["type"] ?? "object") === "object", SCHEMA)
  .refine((schema) => depthOf(schema) <= DEEPEST, `${SCHEMA}, at most ${DEEPEST} levels deep`)
  .refine((schema) => JSON.stringify(schema).length <= MAX_SCHEMA, `${SCHEMA}, of at most 16 KiB`);

function depthOf(value: unknown, depth = 0): number {
  if (typeof value !== "object" || value === null || depth > DEEPEST) return depth;
  return Math.max(depth, ...Object.values(value).map((inner) => depthOf(inner, depth + 1)));
}

const toolForm = z.strictObject({
  description: z.string(DESCRIPTION).min(1, DESCRIPTION).max(2000, DESCRIPTION),
  command: commandForm,
  /** Left out, it takes an object of any form. */
  schema: schemaForm.optional(),
  timeout: patienceForm.optional(),
  /** It is handed the values that are kept, and may leave others. */
  state: z.boolean("expected true or false").optional(),
});

/** As a project writes it. */
export const projectToolsForm = tableOf(toolForm);

/** As the user writes it, who alone can say of a program that it changes nothing. */
const ownToolForm = toolForm.extend({ reads: z.boolean("expected true or false").optional() });
export const toolsForm = tableOf(ownToolForm);

/** Of one tool. */
export const TOOL_KEYS = Object.keys(ownToolForm.shape);

export type CustomToolGiven = z.infer<typeof toolsForm>[string];

function tableOf<T extends z.ZodType>(each: T) {
  return z
    .record(z.string().regex(NAME, NAMED), each, NAMED)
    .refine((table) => Object.keys(table).length <= 64, "expected at most 64 tools");
}
