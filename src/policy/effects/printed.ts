import type { Arg } from "../programs/program-model.ts";
import {
  FILTERS,
  PRINTS_NAMES,
  PRINTS_NUMBERS,
  SET_ANY_VARIABLE,
  SET_VARIABLES,
} from "./printed.generated.ts";

/** Questions to the tables of `printed.yaml`, by the words of a command. */

/** Commands that set the variables they name. */
export const SETS: ReadonlySet<string> = new Set(SET_VARIABLES);
/** After these commands any variable may have any value. */
export const SETS_ANY: ReadonlySet<string> = new Set(SET_ANY_VARIABLE);

const fits = (pattern: string | undefined, text: string, otherwise: boolean): boolean =>
  pattern === undefined ? otherwise : new RegExp(pattern).test(text);

const rowOf = <Row>(table: Readonly<Record<string, Row>>, name: string): Row | undefined =>
  Object.hasOwn(table, name) ? table[name] : undefined;

/** The command prints a number, or fails and prints nothing. */
export function printsNumber([name = "", ...rest]: readonly string[]): boolean {
  const row = rowOf(PRINTS_NUMBERS, name);
  const words = rest.join(" ");
  return row !== undefined && fits(row.words, words, true) && !fits(row["but not"], words, false);
}

/**
 * The places below which the command lists file names, one per line. Null: it prints something else. Empty: the current
 * folder.
 */
export function placesOfNames(name: string, args: readonly Arg[]): readonly Arg[] | null {
  const own = name.includes(" ") ? undefined : rowOf(PRINTS_NAMES, name);
  const row = own ?? rowOf(PRINTS_NAMES, `${name} ${args[0]?.value ?? ""}`);
  if (row === undefined) return null;
  const words = own === undefined ? args.slice(1) : args;
  const has = (pattern: string): boolean => words.some(({ value }) => fits(pattern, value, false));
  if ((row.with !== undefined && !has(row.with)) || (row.without !== undefined && has(row.without)))
    return null;
  if (row.below === "folder") return [];
  const end = words.findIndex(({ value }) => fits(row["options end"], value, false));
  const operands = end === -1 ? words.filter(({ value }) => !value.startsWith("-")) : words.slice(0, end);
  return row.below === "some operands" && operands.length === 0 ? null : operands;
}

/** The command prints its input with lines sorted or left out. */
export function filtersLines([name = "", ...rest]: readonly string[]): boolean {
  const row = rowOf(FILTERS, name);
  if (row === undefined) return false;
  const operands = rest.filter((text) => !text.startsWith("-")).length;
  return (
    rest.every((text) => fits(row.every, text, true) && !fits(row.without, text, false)) &&
    (row.operands ?? operands) === operands
  );
}
