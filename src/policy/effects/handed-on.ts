/** What `xargs`, or a loop over `read`, does with the names that the command before it lists: the same as `find … -exec` does. */
import type { Arg } from "../programs/program-model.ts";
import type { Node, Simple, Span } from "../shell/shell-syntax.ts";
import { literalOf } from "./scope.ts";

/**
 * A command that does to the listed files what `LISTER | xargs COMMAND` does: `find STARTS … -exec COMMAND {} +`, or
 * `COMMAND ./*` for `ls`. Null where the lister is another one.
 */
export function commandOnListed(
  lister: readonly Arg[],
  [xargs, ...rest]: readonly Arg[],
): readonly Arg[] | null {
  const [name, ...args] = lister;
  const command = commandOf(rest);
  if (xargs === undefined || name?.kind !== "literal" || command === null) return null;
  const word = literalAt(xargs.span);
  // With operands `ls` prints names that do not say where they are.
  if (name.value === "ls")
    return args.every(isPlainList) ? withNames(command, { ...word("./*"), kind: "glob" }) : null;
  const listed = listedBy(name, args);
  if (listed === null) return null;
  const marked = command.mark;
  const words =
    marked === null
      ? [...command.words, word("{}"), word("+")]
      : [...command.words.map((each) => withMark(each, marked)), word(";")];
  return [word("find"), ...listed, word("-exec"), ...words];
}

const literalAt =
  (span: Span) =>
  (value: string): Arg => ({ kind: "literal", value, span });

/** Tests of find do not change what is handed on; its actions do. */
const ACTS = /^-(?:exec|execdir|ok|okdir|delete|printf|ls|fprint|fprint0|fprintf|fls|files0-from)$/;

/** The arguments of a `find` that finds what the command lists, or more. */
function listedBy(name: Arg, args: readonly Arg[]): readonly Arg[] | null {
  if (name.value === "find") return args.some(({ value }) => ACTS.test(value)) ? null : args;
  const word = literalAt(name.span);
  const [sub, ...more] = args;
  if (name.value !== "git" || sub?.value !== "ls-files") return null;
  const starts = more.filter(({ value }) => !/^(?:-z|-c|--cached|--)$/.test(value));
  const plain = starts.every(({ kind, value }) => kind === "literal" && !/^[-:]|[*?[]/.test(value));
  return plain ? (starts.length === 0 ? [word(".")] : starts) : null;
}

const isPlainList = ({ kind, value }: Arg): boolean =>
  (kind === "literal" && /^-[1aAbrtUv]+$/.test(value)) || value === ".";

const VALUED = /^(?:-[dEILnPs]|--(?:delimiter|max-args|max-procs|max-chars|max-lines|replace))$/;
const INPUT_FILE = /^(?:-a|--arg-file)/;

interface Command {
  readonly words: readonly Arg[];
  /** The placeholder of `-I`. */
  readonly mark: string | null;
}

/** The command of xargs, without xargs' own options. */
function commandOf(args: readonly Arg[]): Command | null {
  let mark: string | null = null;
  for (let at = 0; at < args.length; at += 1) {
    const { kind, value } = args[at] as Arg;
    if (kind !== "literal" || INPUT_FILE.test(value)) return null;
    if (!value.startsWith("-")) return { words: args.slice(at), mark };
    if (value === "--") return at + 1 < args.length ? { words: args.slice(at + 1), mark } : null;
    const replaces = /^(?:-I|--replace=)(.+)$/.exec(value)?.[1];
    if (replaces !== undefined) mark = replaces;
    else if (value === "-i" || value === "--replace") mark = "{}";
    else if (VALUED.test(value)) {
      at += 1;
      if (value === "-I") mark = args[at]?.value ?? "{}";
    }
  }
  return null;
}

const withNames = ({ words, mark }: Command, names: Arg): readonly Arg[] =>
  mark === null
    ? [...words, names]
    : words.map((word) =>
        word.value === mark ? names : { ...word, value: word.value.replaceAll(mark, () => names.value) },
      );

const withMark = (arg: Arg, mark: string): Arg =>
  arg.value.includes(mark) ? { ...arg, value: arg.value.replaceAll(mark, "{}") } : arg;

/** The only variable that a plain `read` sets. */
export function readName(node: Node): string | null {
  const [only, ...more] = node.kind === "list" ? node.items.map((item) => item.node) : [node];
  if (only?.kind !== "simple" || more.length > 0) return null;
  const [command, ...words] = only.words.map((word) => literalOf(word)?.value ?? "");
  const names = words.filter((word) => !word.startsWith("-") && word !== "");
  return command === "read" && names.length === 1 ? (names[0] ?? null) : null;
}

/** The simple commands of a loop's body, at any depth outside of functions. */
export function simplesIn(node: Node): readonly Simple[] {
  switch (node.kind) {
    case "simple":
      return [node];
    case "list":
      return node.items.flatMap((item) => simplesIn(item.node));
    case "pipeline":
      return node.parts.flatMap(simplesIn);
    case "compound":
      return node.what === "function" ? [] : node.bodies.flatMap(simplesIn);
  }
}
