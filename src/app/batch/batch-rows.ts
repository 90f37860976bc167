import { createHash } from "node:crypto";
import path from "node:path";
import * as z from "zod";
import { DURATION_FORM, nearest, parseDuration } from "../../core/wording.ts";
import { MODES } from "../../core/decision.ts";
import { EXIT, HarnessError, reasonOf } from "../../core/errors.ts";
import { DuplicateKey, parseUniqueJson } from "../../core/text/json-text.ts";
import { visibleLine } from "../../core/visible.ts";
import { readRegular, TooLargeError } from "../../platform/safe-files.ts";

/** The limit of `harness run -` for a prompt from a pipe. */
export const MAX_PROMPT_BYTES = 2 ** 20;
const MAX_FILE_BYTES = 64 * 2 ** 20;

const DURATION = `expected ${DURATION_FORM}, as a string`;
const duration = z.string(DURATION).refine((text) => parseDuration(text) !== undefined, DURATION);
const WHOLE = "expected a whole number of at least 1";
const whole = z.int(WHOLE).positive(WHOLE);
const COST = "expected a cost greater than 0";
const WORD = "expected a string that is not empty";
/** Arguments of a program have a limit, which is 128 KiB on Linux. */
export const MAX_WORD_BYTES = 64 * 1024;
/** A word for `harness run`: a NUL byte cannot be passed in an argument. */
const word = z
  .string(WORD)
  .regex(/^[^\0]+$/, WORD)
  .refine((text) => Buffer.byteLength(text) <= MAX_WORD_BYTES, "it is longer than 64 KiB");

const limitsShape = {
  max_turns: whole.optional(),
  max_time: duration.optional(),
  max_tokens: whole.optional(),
  max_cost: z.number(COST).positive(COST).max(1e12, COST).optional(),
  max_tool_calls: whole.optional(),
};
const limitsForm = z.strictObject(
  limitsShape,
  `expected an object with the keys ${Object.keys(limitsShape).join(", ")}`,
);

const FIELDS = {
  dir: word.optional(),
  repo: word.optional(),
  prompt: z
    .string("expected a task, as a string")
    .refine((text) => text.trim() !== "", "expected a task, found nothing")
    .refine((text) => Buffer.byteLength(text) <= MAX_PROMPT_BYTES, "it is longer than 1 MiB"),
  check: word.optional(),
  limits: limitsForm.optional(),
  mode: z.enum(MODES, `expected one of ${MODES.join(", ")}`).optional(),
  env: word.optional(),
};

const rowForm = z
  .strictObject(FIELDS, "expected an object")
  .refine(
    ({ dir, repo }) => (dir === undefined) !== (repo === undefined),
    'expected one of "dir" and "repo"',
  );

type RowLimits = z.output<typeof limitsForm>;

/** One requested run. */
export interface BatchRow extends Pick<z.output<typeof rowForm>, "prompt" | "check" | "mode" | "env"> {
  /** Starts at 1, in the order of the file. */
  readonly row: number;
  /** The same for the same request; a row that occurs twice gets two ids. */
  readonly id: string;
  readonly kind: "dir" | "repo";
  /** As written in the file. */
  readonly target: string;
  readonly limits: RowLimits;
}

export interface RowDefaults {
  /** The check of rows that name none. */
  readonly check: string | undefined;
}

interface Problem {
  readonly line: number;
  readonly why: string;
}

const SHOWN_PROBLEMS = 10;

/** All rows of a file, or an error that names the bad lines; `name` is what to call the file. */
export function readRows(text: string, name: string, defaults: RowDefaults): readonly BatchRow[] {
  const problems: Problem[] = [];
  const ids = new RowIds();
  const rows: BatchRow[] = [];
  for (const { line, text: each } of linesOf(text)) {
    const read = rowOf(each);
    if (typeof read === "string") problems.push({ line, why: read });
    else rows.push(ids.named(rows.length + 1, { ...read, check: read.check ?? defaults.check }));
  }
  if (problems.length > 0) throw notRows(problems, name);
  if (rows.length === 0) throw noRows(name);
  return rows;
}

/** A row for each path or address of a list with one per line. */
export function rowsOfList(
  text: string,
  name: string,
  wanted: RowDefaults & { readonly prompt: string },
): readonly BatchRow[] {
  const ids = new RowIds();
  const named = linesOf(text).filter(({ text: each }) => !each.trimStart().startsWith("#"));
  const odd = named.find(({ text: each }) => each.includes("\0"));
  if (odd !== undefined) throw notRows([{ line: odd.line, why: "expected a path or an address" }], name);
  const rows = named.map(({ text: each }, at) =>
    ids.named(at + 1, { repo: each.trim(), prompt: wanted.prompt, check: wanted.check }),
  );
  if (rows.length === 0) throw noRows(name);
  return rows;
}

function linesOf(text: string): readonly { readonly line: number; readonly text: string }[] {
  return text
    .replace(/^\uFEFF/, "")
    .split("\n")
    .map((each, at) => ({ line: at + 1, text: each.replace(/\r$/, "") }))
    .filter((each) => each.text.trim() !== "");
}

type ReadRow = z.output<typeof rowForm>;

/** The row, or why the text is not a row. */
function rowOf(text: string): ReadRow | string {
  let value: unknown;
  try {
    value = parseUniqueJson(text);
  } catch (thrown) {
    if (thrown instanceof DuplicateKey) return visibleLine(thrown.message);
    return `not valid JSON: ${visibleLine(reasonOf(thrown))}`;
  }
  const read = rowForm.safeParse(value);
  if (read.success) return read.data;
  return read.error.issues.flatMap(wordsOf).join("; ");
}

function wordsOf(issue: z.core.$ZodIssue): readonly string[] {
  const at = issue.path.join(".");
  if (issue.code !== "unrecognized_keys") return [`${at === "" ? "" : `${at}: `}${issue.message}`];
  const known = Object.keys(at === "limits" ? limitsShape : FIELDS);
  return issue.keys.map((key) => {
    const meant = nearest(key, known);
    const named = visibleLine(JSON.stringify(at === "" ? key : `${at}.${key}`));
    return `unknown key ${named}${meant === undefined ? "" : `; did you mean ${meant}?`}`;
  });
}

const KEYS = Object.keys(FIELDS).join(", ");

function notRows(problems: readonly Problem[], name: string): HarnessError {
  const shown = problems.slice(0, SHOWN_PROBLEMS).map(({ line, why }) => `${name}, line ${line}: ${why}`);
  const more = problems.length - shown.length;
  return new HarnessError(
    EXIT.usage,
    [...shown, ...(more > 0 ? [`and ${more} more lines`] : [])].join("\n"),
    `nothing was started; a row has these keys: ${KEYS}`,
  );
}

const noRows = (name: string): HarnessError =>
  new HarnessError(
    EXIT.usage,
    `${name} has no rows`,
    'one JSON object a line: {"dir": "FOLDER", "prompt": "…"}',
  );

/** Numbers the rows and derives their ids from what they request. */
class RowIds {
  readonly #seen = new Map<string, number>();

  named(row: number, { dir, repo, prompt, check, limits = {}, mode, env }: ReadRow): BatchRow {
    const kind = dir === undefined ? "repo" : "dir";
    const target = dir ?? repo ?? "";
    const place = /^[a-z][a-z0-9+.-]*:\/\//i.test(target) ? target : path.resolve(target);
    const bounds = Object.entries(limits).toSorted(([a], [b]) => (a < b ? -1 : 1));
    const wish = digest([kind, place, prompt, check, bounds, mode, env]);
    const nth = (this.#seen.get(wish) ?? 0) + 1;
    this.#seen.set(wish, nth);
    const id = nth === 1 ? wish : digest([wish, nth]);
    const others = {
      ...(check === undefined ? {} : { check }),
      ...(mode === undefined ? {} : { mode }),
      ...(env === undefined ? {} : { env }),
    };
    return { row, id, kind, target, prompt, limits, ...others };
  }
}

const ID_CHARACTERS = 16;

const digest = (parts: readonly unknown[]): string =>
  createHash("sha256")
    .update(JSON.stringify(parts.map((part) => part ?? null)))
    .digest("hex")
    .slice(0, ID_CHARACTERS);

/** The text of a file of rows, or of a list. */
export async function rowsFile(file: string): Promise<string> {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: false }).decode(
      await readRegular(file, { links: "follow", max: MAX_FILE_BYTES }),
    );
  } catch (thrown) {
    const why =
      thrown instanceof TooLargeError
        ? "it is larger than 64 MiB"
        : thrown instanceof TypeError
          ? "it is not UTF-8"
          : reasonOf(thrown);
    throw new HarnessError(EXIT.usage, `${file} cannot be read: ${why}`, `ls -l ${file}`, thrown);
  }
}
