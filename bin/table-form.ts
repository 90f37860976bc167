/** Building blocks of YAML tables: words, names, patterns, examples, and the exports of a module. */
import { z } from "zod";
import { readTable, splitNames } from "./yaml-table.ts";

/** An example of a table: whether the row, or the table, applies to `given`. */
export interface TableExample {
  readonly where: string;
  readonly about: string;
  readonly row: string;
  readonly given: string;
  readonly holds: boolean;
}

export const words = z
  .string()
  .regex(/^\S+(?: \S+)*$/, "words, with one blank between them")
  .transform((text) => text.split(" "))
  .refine((list) => new Set(list).size === list.length, { error: "a word stands twice" });
export const names = z
  .string()
  .regex(/^\S[^,]*(?:, \S[^,]*)*$/, "names, with a comma and a blank between them")
  .transform(splitNames);
export const pattern = z.string().refine(isPattern, { error: "no pattern" });
const texts = z.array(z.string().min(1)).min(1);
export const examples = z.strictObject({ is: texts.optional(), "is not": texts.optional() });
type Examples = z.infer<typeof examples>;

function isPattern(text: string): boolean {
  try {
    return new RegExp(text).source !== "";
  } catch {
    return false;
  }
}

/** The exports of a module: name → type and value. */
export type Exports = Readonly<Record<string, readonly [type: string, value: unknown]>>;

export interface Compiled {
  readonly exports: Exports;
  readonly examples: readonly TableExample[];
}

export interface Table {
  /** Path from the root. */
  readonly file: string;
  readonly compile: (text: string, file: string) => Compiled;
}

export const table = <Form>(
  file: string,
  shape: z.ZodType<Form>,
  compile: (form: Form, name: string) => Compiled,
): Table => ({
  file,
  compile: (text, name) => compile(readTable(text, name, shape), name),
});

export const casesOf = (
  about: string,
  where: string,
  row: string,
  given: Examples = {},
): readonly TableExample[] =>
  (["is", "is not"] as const).flatMap((key) =>
    (given[key] ?? []).map((each) => ({ where, about, row, given: each, holds: key === "is" })),
  );
