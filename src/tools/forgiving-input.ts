import * as z from "zod";

/** Parameter names of other tools that models know → names of our tools. */
const ALIASES: Readonly<Record<string, string>> = {
  file_path: "path",
  filename: "path",
  old_string: "old",
  new_string: "new",
  old_text: "old",
  new_text: "new",
  replace_all: "all",
  case_insensitive: "ignore_case",
  run_in_background: "background",
  cmd: "command",
};

/** Remarks about a call that many models add. Dropping them does not change the call. */
const COMMENTARY: ReadonlySet<string> = new Set([
  "comment",
  "description",
  "explanation",
  "justification",
  "purpose",
  "rationale",
  "reason",
  "reasoning",
  "thought",
  "thoughts",
]);

/**
 * Accepts an input as small models send it: null for an omitted field, names of other tools, a list written as text,
 * remarks. Any other name is an error: dropping it would silently ignore what the model meant.
 */
export function forgiving<S extends z.ZodObject<z.ZodRawShape, z.core.$strict>>(
  schema: S,
): z.ZodPreprocess<S> {
  const known: ReadonlySet<string> = new Set(Object.keys(schema.shape));
  return z.preprocess((value) => tidied(value, known), schema);
}

function tidied(value: unknown, known: ReadonlySet<string>): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  const given = Object.entries(value).filter(([name, one]) => one !== null && !isComment(name, one, known));
  const names = new Set(given.map(([name]) => name));
  return Object.fromEntries(
    given.map(([name, one]) => {
      const own = ALIASES[name];
      return own !== undefined && known.has(own) && !names.has(own) ? [own, one] : [name, one];
    }),
  );
}

const isComment = (name: string, value: unknown, known: ReadonlySet<string>): boolean =>
  value === undefined || (typeof value === "string" && COMMENTARY.has(name) && !known.has(name));

/** Some models send an empty text for an omitted field. Blanks are not a valid command, task or name either. */
export const isGiven = (value: string | true | undefined): value is string | true =>
  value === true || (value !== undefined && value.trim() !== "");

export const flag = z.preprocess(
  (value) => (value === "true" ? true : value === "false" ? false : value),
  z.boolean(),
);

/** A whole number; some models send it as text. */
export const count = z.preprocess(
  (value) => (typeof value === "string" && /^\d+$/.test(value) ? Number(value) : value),
  z.number().min(0),
);

export const listOf = <S extends z.ZodType>(item: S): z.ZodPreprocess<z.ZodArray<S>> =>
  z.preprocess((value) => (typeof value === "string" ? parsed(value) : value), z.array(item));

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
