import type { Role } from "./model.ts";
import { roleOf } from "./options.ts";

export interface OperandTable {
  readonly first: readonly Role[];
  /** Any number of these between the first and the last ones. */
  readonly many: Role | null;
  readonly last: readonly Role[];
  /** Without operands it works on the current folder. */
  readonly here: boolean;
}

/** Reads the small language of `Model.operands`. */
export function operandTable(text: string): OperandTable {
  const [roles = "", here] = text.split("|");
  const first: Role[] = [];
  const last: Role[] = [];
  let many: Role | null = null;
  for (const token of roles.split(/\s+/)) {
    if (token === "") continue;
    const role = roleOf(token.replace(/[*?]$/, ""), text);
    if (token.endsWith("*")) many = role;
    else (many === null ? first : last).push(role);
  }
  return { first, many, last, here: here === "." };
}

/** The role of each operand; null where the table has none left. `pattern` is dropped where an option gave it. */
export function rolesFor(
  table: OperandTable,
  count: number,
  patternGiven: boolean,
): readonly (Role | null)[] {
  const first = patternGiven ? table.first.filter((role) => role !== "pattern") : table.first;
  const lastFrom =
    table.many === null ? Number.MAX_SAFE_INTEGER : Math.max(first.length, count - table.last.length);
  return Array.from({ length: count }, (_, index) => {
    if (index < first.length) return first[index] ?? null;
    return index >= lastFrom ? (table.last[index - lastFrom] ?? null) : table.many;
  });
}
