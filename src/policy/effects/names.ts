import type { Arg } from "../models/model.ts";
import { resolvePath } from "../paths/normal.ts";
import type { Node, Simple } from "../shell/syntax.ts";
import type { Words } from "./assume.ts";
import type { Scope } from "./scope.ts";
import { isBoxed } from "./tools.ts";

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
  grep: (args) => (has(args, /^-[a-zA-Z]*[lL][a-zA-Z]*$|^--files-with/) ? operands(args) : null),
  rg: (args) => (has(args, /^-[a-zA-Z]*l[a-zA-Z]*$|^--files-with/) ? operands(args) : null),
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
  const [name, ...args] = node === null ? [] : words(node.words);
  if (name?.kind !== "literal" || !args.every((arg) => isNear(arg, workspace))) return null;
  const starts = Object.hasOwn(LISTERS, name.value) ? (LISTERS[name.value]?.(args) ?? null) : null;
  if (starts === null) return null;
  const [only, ...more] = starts;
  return only?.value.startsWith("/") === true && more.length === 0 ? `${only.value}/*found*` : FOUND;
}

/** Whatever the word means to the program, it is no path that leads out. */
function isNear({ kind, value }: Arg, workspace: string): boolean {
  if (kind === "dynamic" || /(?:^|[/=])\.\.(?:\/|$)|[=]~/.test(value)) return false;
  const [path] = /(?:(?<==)|^)\/.*$/.exec(value) ?? [];
  return path === undefined || isBoxed(resolvePath(workspace, path), workspace);
}

/** A name of the workspace may begin with a dash: as an option too it says nothing that the project does not. */
export function named(arg: Arg, { folders }: Scope, workspace: string): Arg {
  const near = folders.every((folder) => folder !== null && isBoxed(folder, workspace));
  return near && arg.kind === "glob" && /^[*?[]/.test(arg.value) ? { ...arg, value: `./${arg.value}` } : arg;
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
