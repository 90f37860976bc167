import { parse, type ParseError } from "jsonc-parser";
import type * as z from "zod";
import { type CustomToolGiven, projectToolsForm } from "../core/custom-tools.ts";
import { type HookGiven, hooksForm } from "../core/hook-form.ts";

/** A project's hooks and tools. Throws a one-line error if something is wrong with them. */

export const projectHooks = (file: string, text: string): readonly HookGiven[] =>
  readAs(hooksForm, file, text);

export const projectTools = (file: string, text: string): Readonly<Record<string, CustomToolGiven>> =>
  readAs(projectToolsForm, file, text);

function readAs<T>(form: z.ZodType<T>, file: string, text: string): T {
  const errors: ParseError[] = [];
  if (isNestedTooDeep(text)) throw new Error(`${file}: it is nested too deep`);
  const value: unknown = parse(text, errors, { allowTrailingComma: true });
  if (errors.length > 0) throw new Error(`${file}: it is not JSON`);
  const read = form.safeParse(value);
  if (read.success) return read.data;
  const [issue] = read.error.issues;
  const at = (issue?.path ?? []).map(String).join(".");
  throw new Error(`${file}: ${at === "" ? "" : `${at}: `}${issue?.message ?? "unexpected value"}`);
}

const DEEPEST = 32;

/**
 * Checked before parsing, because the parser recurses. Counts brackets in strings too: valid files never have that
 * many.
 */
function isNestedTooDeep(text: string): boolean {
  let depth = 0;
  for (const sign of text) {
    if (sign === "{" || sign === "[") depth += 1;
    else if (sign === "}" || sign === "]") depth -= 1;
    if (depth > DEEPEST) return true;
  }
  return false;
}
