import * as z from "zod";

/** Names that models know from elsewhere, for those of our tools. */
const ALIASES: Readonly<Record<string, string>> = {
  file_path: "path",
  filename: "path",
  old_string: "old",
  new_string: "new",
  old_text: "old",
  new_text: "new",
  replace_all: "all",
  case_insensitive: "ignore_case",
};

/** An input as small models send it: null for what is left out, names of other tools, a list written as a text. */
export function forgiving<S extends z.ZodType>(schema: S): z.ZodPreprocess<S> {
  return z.preprocess(tidied, schema);
}

function tidied(value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  const given = Object.entries(value).filter(([, one]) => one !== null && one !== undefined);
  const names = new Set(given.map(([name]) => name));
  return Object.fromEntries(
    given.map(([name, one]) => {
      const own = ALIASES[name] ?? name;
      return own !== name && !names.has(own) ? [own, one] : [name, one];
    }),
  );
}

export const flag = z.preprocess(
  (value) => (value === "true" ? true : value === "false" ? false : value),
  z.boolean(),
);

/** A whole number; some send it as a text. */
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
