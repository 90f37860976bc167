/** Reads a YAML table and checks it against its schema. Every error names its file and row. */
import { parseDocument } from "yaml";
import type { z } from "zod";

/** An error in a file: where, and what is wrong. */
export const mistake = (where: string, what: string): Error => new Error(`${where}: ${what}`);

export const splitNames = (text: string): readonly string[] => text.split(", ");

export function readTable<Form>(text: string, file: string, shape: z.ZodType<Form>): Form {
  const document = parseDocument(text, { uniqueKeys: true });
  const [error] = document.errors;
  if (error !== undefined) throw mistake(file, error.message);
  const read = shape.safeParse(document.toJS({ maxAliasCount: -1 }));
  if (read.success) return read.data;
  const [issue] = read.error.issues;
  throw mistake(file, deepest(issue));
}

interface Leaf {
  readonly path: readonly PropertyKey[];
  readonly message: string;
  readonly custom: boolean;
}

const leavesOf = (issue: z.core.$ZodIssue, above: readonly PropertyKey[] = []): readonly Leaf[] => {
  const at = [...above, ...issue.path];
  const inner = issue.code === "invalid_union" ? issue.errors.flat() : [];
  if (inner.length > 0) return inner.flatMap((each) => leavesOf(each, at));
  return [{ path: at, message: issue.message, custom: issue.code === "custom" }];
};

/**
 * Among alternatives of a union, reports the error with the longest path, preferring those with a message of their own.
 */
function deepest(issue: z.core.$ZodIssue | undefined): string {
  const [furthest] = (issue === undefined ? [] : leavesOf(issue)).toSorted(
    (a, b) => b.path.length - a.path.length || Number(b.custom) - Number(a.custom),
  );
  if (furthest === undefined) return "not a table of this kind";
  return `${furthest.path.map(String).join(": ")}: ${furthest.message}`;
}
