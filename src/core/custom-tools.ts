import * as z from "zod";
import { commandForm, patienceForm } from "./hook-form.ts";

/** Tools that a user or a trusted project adds: a command of the box, and the schema of its input. */

const NAME = /^[\w-]{1,64}$/;
const NAMED = "expected tool names of at most 64 letters, digits, _ and -";
const SCHEMA = "expected a JSON Schema of an object";
const MAX_SCHEMA = 16 * 1024;
const DEEPEST = 16;
const DESCRIPTION = "expected a description of at most 2,000 characters";

/** Rejects schemas that take long to read, or to send to a model with every request. */
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
  /** Left out, the tool takes any object. */
  schema: schemaForm.optional(),
  timeout: patienceForm.optional(),
  /** The tool gets the stored values, and may store others. */
  state: z.boolean("expected true or false").optional(),
});

/** As written in a project. */
export const projectToolsForm = tableOf(toolForm);

/** As written by the user. Only the user can state that a program changes nothing. */
const ownToolForm = toolForm.extend({ reads: z.boolean("expected true or false").optional() });
export const toolsForm = tableOf(ownToolForm);

/** Keys of one tool. */
export const TOOL_KEYS = Object.keys(ownToolForm.shape);

export type CustomToolGiven = z.infer<typeof toolsForm>[string];

function tableOf<T extends z.ZodType>(each: T) {
  return z
    .record(z.string().regex(NAME, NAMED), each, NAMED)
    .refine((table) => Object.keys(table).length <= 64, "expected at most 64 tools");
}
