import { foldPath } from "../../core/file-names.ts";
import type { Place } from "../effects/effect.ts";
import { secretAt } from "../paths/secret-paths.ts";
import type { Arg, Found, Use, Reader } from "./program-model.ts";

const FILE = new Set("-a -b -c -d -e -f -g -h -k -p -r -s -u -w -x -G -L -N -O -S".split(" "));
const TEXT = new Set(["-n", "-z", "-t", "-o"]);
const FILES = new Set(["-nt", "-ot", "-ef"]);
const TEXTS = new Set(["=", "==", "!=", "<", ">"]);
const NUMBERS = new Set(["-eq", "-ne", "-lt", "-le", "-gt", "-ge"]);
const NAMES = new Set(["-v", "-R"]);

const NAME = /^\w+$/;
const NUMBER = /^[+-]?\d+$/;

/**
 * `test` and `[`. Their grammar depends on the number of words, so every word that could be an operator is taken for one. A
 * variable's name or a number may contain a subscript, which some shells evaluate.
 */
function testEffects(use: Use): readonly Found[] {
  const closes = use.args.at(-1);
  if (use.program !== "[") return use.args.flatMap((_, at) => wordEffects(use, use.args, at));
  if (closes?.kind !== "literal" || closes.value !== "]")
    return [use.doubt("operand.unknown", closes ?? { kind: "literal", value: "[", span: use.span })];
  const words = use.args.slice(0, -1);
  return words.flatMap((_, at) => wordEffects(use, words, at));
}

function wordEffects(use: Use, words: readonly Arg[], at: number): readonly Found[] {
  const word = words[at] as Arg;
  if (word.kind === "literal") return operatorEffects(use, word, [words[at - 1], words[at + 1]]);
  const open = word.value.charAt(0);
  if (word.kind === "glob") return "*?[".includes(open) ? [use.doubt("word.leading-glob", word)] : [];
  return word.loose !== true && isSurelyOperand(words, at) ? [] : [use.doubt("word.dynamic", word)];
}

type Neighbours = readonly [before: Arg | undefined, behind: Arg | undefined];

function operatorEffects(use: Use, { value }: Arg, [before, behind]: Neighbours): readonly Found[] {
  const known = [before, behind].filter((arg) => arg !== undefined);
  if (NAMES.has(value))
    return behind === undefined || isLiteral(behind, NAME) ? [] : [use.doubt("shell.expansion", behind)];
  if (NUMBERS.has(value))
    return known.filter((arg) => !isLiteral(arg, NUMBER)).map((arg) => use.doubt("shell.expansion", arg));
  if (FILES.has(value)) return known.flatMap((arg) => testedFile(use, arg));
  return FILE.has(value) && behind !== undefined ? testedFile(use, behind) : [];
}

const isLiteral = ({ kind, value }: Arg, form: RegExp): boolean => kind === "literal" && form.test(value);

const CONNECTIVES = new Set(["!", "(", ")", "-a", "-o"]);

function testedFile(use: Use, arg: Arg): readonly Found[] {
  const { kind, value, span } = arg;
  if (kind === "literal" && (CONNECTIVES.has(value) || FILE.has(value) || TEXT.has(value))) return [];
  return [{ kind: "read", path: folderOf(use.place(arg), use.folder), span }];
}

/**
 * A test of a file below the current folder that may hold a secret tells no more than the list of its folder, and
 * counts as a read of the folder.
 */
const folderOf = (path: Place, folder: Place): Place =>
  path !== null && folder !== null && path.startsWith(`${folder}/`) && secretAt(foldPath(path)) !== null
    ? path.slice(0, path.lastIndexOf("/"))
    : path;

/** A position where a word can only be an operand, whatever its value. */
function isSurelyOperand(words: readonly Arg[], at: number): boolean {
  const before = words[at - 1];
  const behind = words[at + 1];
  if (words.length === 1) return true;
  const follows = before?.kind === "literal" && (isUnary(before.value) || TEXTS.has(before.value));
  return follows || (behind?.kind === "literal" && TEXTS.has(behind.value));
}

const isUnary = (value: string): boolean => FILE.has(value) || TEXT.has(value);

const COUNTS = /(?:^|[^%])(?:%%)*%[-+ #'*.\dhjlLqtz]*n/;

/** Any operand that is no format sets the clock. */
function setsDate(use: Use): readonly Found[] {
  return use.operands
    .filter(({ kind, value }) => kind === "literal" && !value.startsWith("+"))
    .map(({ span }) => ({ kind: "system", what: use.program, span }));
}

/** `-v name` and `%n` set shell variables, and a name may contain a subscript, which is evaluated. */
function printfEffects(use: Use): readonly Found[] {
  const at = use.args[0]?.value === "--" ? 1 : 0;
  const format = use.args[at];
  if (format === undefined) return [];
  if (at === 0 && format.value.startsWith("-") && format.value !== "-")
    return [use.doubt("shell.expansion", format)];
  if (format.kind !== "literal" && (format.loose === true || use.args.length > at + 1))
    return [use.doubt("word.dynamic", format)];
  return COUNTS.test(format.value) ? [use.doubt("shell.expansion", format)] : [];
}

/** bat may start a pager, and its first word may be a command that changes bat's own files. */
function batEffects(use: Use): readonly Found[] {
  const [first] = use.operands;
  const paging = use.options.filter(
    ({ name, value }) => name === "--paging" && value?.value !== "never" && value?.value !== "auto",
  );
  return [
    ...paging.map(({ value }) =>
      use.doubt("option.unknown", value ?? first ?? { ...NOWHERE, span: use.span }),
    ),
    ...(first?.value === "cache" ? [use.doubt("operand.unknown", first)] : []),
  ];
}

/** less runs `+command` at its start. */
const plusCommands = (use: Use): readonly Found[] =>
  use.operands.filter(({ value }) => value.startsWith("+")).map((arg) => use.doubt("operand.unknown", arg));
/** Only names of pages: a path would be formatted with macros of its own. */
const pagePaths = (use: Use): readonly Found[] =>
  use.operands.filter(({ value }) => value.includes("/")).map((arg) => use.doubt("operand.unknown", arg));

const NOWHERE = { kind: "literal", value: "--paging" } as const;
/** The readers of this file, by the names that rows use. */
export const TEXT_READERS: Readonly<Record<string, Reader>> = {
  bat: batEffects,
  strings: (use) =>
    use.operands
      .filter(({ value }) => value.startsWith("@"))
      .map((arg) => use.doubt("option.loads-code", arg)),
  printf: printfEffects,
  test: testEffects,
  date: setsDate,
  less: plusCommands,
  man: pagePaths,
};
