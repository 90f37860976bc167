import type { Arg } from "../models/model.ts";
import { isInside, resolvePath } from "../paths/normal.ts";
import { isTemp } from "../paths/system.ts";
import type { Node, Simple } from "../shell/syntax.ts";
import type { Words } from "./assume.ts";

/** Stands for the names that a search finds. */
const FOUND = "./*found*";

/** Programs that print nothing but names of files, one a line, each below a place that they are given. */
const LISTERS: Readonly<Record<string, (args: readonly Arg[]) => readonly Arg[] | null>> = {
  find: (args) => {
    const end = args.findIndex(({ value }) => /^[-(!]/.test(value));
    const tests = end === -1 ? [] : args.slice(end);
    const acts = tests.some(({ value }) => /^-(?:exec|ok|f?printf|fls|ls|delete|files0)/.test(value));
    const narrows = tests.some(({ value }) =>
      /^-(?:i?name|i?path|i?regex|newer|mmin|mtime|size|empty)/.test(value),
    );
    return acts || !narrows ? null : end === -1 ? args : args.slice(0, end);
  },
  grep: (args) => (has(args, /^-[a-zA-Z]*[lL][a-zA-Z]*$|^--files-with/) ? operands(args).slice(1) : null),
  rg: (args) => (has(args, /^-[a-zA-Z]*l[a-zA-Z]*$|^--files-with/) ? operands(args).slice(1) : null),
  ls: (args) => (has(args, /^-[^-]*[lgonisSZ]|^--/) || operands(args).length === 0 ? null : operands(args)),
  git: ([first, ...rest]) => {
    if (first?.value === "ls-files") return operands(rest).length > 0 ? operands(rest) : null;
    if (first?.value === "diff") return has(rest, /^--name-only$/) ? [] : null;
    return first?.value === "grep" && has(rest, /^-[a-zA-Z]*l$|^--name-only$|^--files-with/) ? [] : null;
  },
};

const has = (args: readonly Arg[], shape: RegExp): boolean => args.some(({ value }) => shape.test(value));
const operands = (args: readonly Arg[]): readonly Arg[] => args.filter(({ value }) => !value.startsWith("-"));

/** A pattern for the names that a command prints; null where it prints other things, or names of other places. */
export function namesOf(body: Node, words: Words, workspace: string): string | null {
  const node = listerOf(body);
  if (node === null) return null;
  const [name, ...args] = words(node.words);
  if (name?.kind !== "literal" || args.some(({ kind }) => kind === "dynamic")) return null;
  const starts = Object.hasOwn(LISTERS, name.value) ? (LISTERS[name.value]?.(args) ?? null) : null;
  if (starts === null) return null;
  const near = starts.every(({ value }) => {
    const path = resolvePath(workspace, value);
    return value.startsWith("/")
      ? isInside(workspace, path) || isTemp(path)
      : !/(?:^|\/)\.\.(?:\/|$)/.test(value);
  });
  const [only, ...more] = starts;
  if (!near) return null;
  return only?.value.startsWith("/") === true && more.length === 0 ? `${only.value}/*found*` : FOUND;
}

/** Behind what only leaves names out or puts them in order. */
function listerOf(body: Node): Simple | null {
  if (body.kind === "simple") return body;
  if (body.kind === "pipeline") {
    const [first, ...filters] = body.parts;
    return first !== undefined && filters.every(isFilter) ? listerOf(first) : null;
  }
  if (body.kind !== "list") return null;
  const [only, ...more] = body.items;
  return only !== undefined && more.length === 0 ? listerOf(only.node) : null;
}

export function isFilter(node: Node): boolean {
  const [name, ...texts] = textsOf(node);
  if (name === "grep")
    return (
      texts.every((text) => !/^-[a-zA-Z]*[onHcbf]|^--/.test(text)) &&
      texts.filter((text) => !text.startsWith("-")).length === 1
    );
  return name === "sort" || name === "uniq" || name === "head" || name === "tail"
    ? texts.every((text) => /^-[urnz\d]+$|^\d+$/.test(text) && !(name === "uniq" && text.includes("c")))
    : false;
}

export const isXargs = (node: Node): boolean => textsOf(node)[0] === "xargs";

const textsOf = (node: Node): readonly string[] =>
  node.kind === "simple"
    ? node.words.map(({ pieces }) =>
        pieces.map((piece) => (piece.kind === "text" ? piece.text : "$")).join(""),
      )
    : [];
