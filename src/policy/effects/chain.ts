import type { List, Node } from "../shell/syntax.ts";
import { either, type Scope } from "./scope.ts";

export type Link = List["items"][number]["then"];

/** `a && b || c`, as far as it is read. Null: nobody comes there. */
export interface Chain {
  /** Before its first command. */
  readonly start: Scope;
  /** Where what was read last went well, and where it did not. */
  readonly well: Scope | null;
  readonly ill: Scope | null;
}

export const chainFrom = (start: Scope): Chain => ({ start, well: start, ill: null });

/** What is true before the command behind `link`. One that nobody comes to is judged as if somebody did. */
export function startOf({ start, well, ill }: Chain, link: Link): Scope {
  if (link === "&&") return well ?? start;
  return link === "||" ? (ill ?? well ?? start) : start;
}

/** With the command behind `link`; null when nothing comes after that. */
export function linked(
  { start, well, ill }: Chain,
  link: Link,
  ends: { readonly after: Scope; readonly failed: Scope } | null,
): Chain {
  const after = ends?.after ?? null;
  const fails = ends?.failed ?? null;
  if (link === "&&") return { start, well: after, ill: any(ill, fails) };
  if (link === "||") return { start, well: any(well, after), ill: fails };
  return { start, well: after, ill: fails };
}

export const endOf = ({ start, well, ill }: Chain): Scope => any(well, ill) ?? start;

const any = (a: Scope | null, b: Scope | null): Scope | null =>
  a === null ? b : b === null ? a : either(a, b);

/** A command that failed has changed no folder; its variables it may have set. */
export function failed(after: Scope, before: Scope): Scope {
  return after.folders === before.folders
    ? after
    : { ...after, folders: either(after, { ...after, folders: before.folders }).folders };
}

/** `cd x || exit`: whoever goes on is in x. Only in its plain form: with a wrong argument or redirect it goes on. */
export function leaves(node: Node): boolean {
  if (node.kind !== "simple" || node.redirects.length > 0 || node.assignments.length > 0) return false;
  const [name = null, status = "0", ...more] = node.words.map(({ pieces: [piece, ...others] }) =>
    others.length === 0 && piece?.kind === "text" ? piece.text : null,
  );
  return name === "exit" && status !== null && /^\d{1,3}$/.test(status) && more.length === 0;
}
