/** Coreutils and their kin: programs that copy, move, split, test, print and page files. */
import { foldPath } from "../../core/file-names.ts";
import type { Place } from "../effects/effect.ts";
import { secretAt } from "../paths/path-place.ts";
import { fixedEffect, hasOption } from "./argument-roles.ts";
import type { Arg, FoundEffect, UseReader, Use } from "./program-model.ts";

const MODE_LETTERS = "rwxXstugoa";

/** The first operand is a mode, unless an option is one or names a file with that mode. */
function chmodEffects(use: Use): readonly FoundEffect[] {
  const modeGiven = use.options.some(
    ({ name }) => name === "--reference" || MODE_LETTERS.includes(name.slice(1)),
  );
  return changedRights(
    use,
    modeGiven ? use.operands : use.operands.slice(1),
    hasOption(use, "-R", "--recursive"),
  );
}

const CHATTR_MODE = /^[+=]/;

const chattrEffects = (use: Use): readonly FoundEffect[] =>
  changedRights(
    use,
    use.operands.filter(({ value }) => !CHATTR_MODE.test(value)),
    hasOption(use, "-R"),
  );

const changedRights = (use: Use, files: readonly Arg[], recursive: boolean): readonly FoundEffect[] =>
  files.map((file) => ({ kind: "permissions", path: use.place(file), recursive, span: file.span }));

interface CopyTarget {
  readonly sources: readonly Arg[];
  /** The current folder where no target is named. */
  readonly target: Arg;
  /** The target is certainly a folder: files are written into it under their own names. */
  readonly isFolder: boolean;
}

const CURRENT_FOLDER = { kind: "literal", value: "." } as const;
const FOLDER = /(?:^|\/)\.{0,2}\/?$/;

/** Sources and target; the target may be an option's value. */
function copyTarget(use: Use): CopyTarget {
  const { operands } = use;
  const named = use.options.findLast(({ name }) => name === "-t" || name === "--target-directory")?.value;
  if (named) return { sources: operands, target: named, isFolder: true };
  const last = operands.at(-1);
  if (last === undefined || operands.length === 1)
    return { sources: operands, target: { ...CURRENT_FOLDER, span: use.span }, isFolder: true };
  const sources = operands.slice(0, -1);
  return {
    sources,
    target: last,
    isFolder: sources.length > 1 || sources[0]?.kind !== "literal" || FOLDER.test(last.value),
  };
}

/** The target and what may be written into it: names that the host obeys mostly start with a dot. */
function writtenTargets(use: Use): readonly FoundEffect[] {
  const { sources, target, isFolder } = copyTarget(use);
  const inside = sources
    .filter(({ value }) => isFolder || nameOf(value).startsWith("."))
    .map((source) => nameInFolder(target, nameOf(source.value), source));
  return [target, ...inside].map((arg) => ({ kind: "write", path: use.place(arg), span: arg.span }));
}

const nameOf = (path: string): string => {
  const end = path.endsWith("/") ? path.length - 1 : path.length;
  return path.slice(path.lastIndexOf("/", end - 1) + 1, end);
};

/** A name in a folder; its kind is the vaguer of the two. */
function nameInFolder(folder: Arg, name: string, source: Arg): Arg {
  const kind =
    folder.kind === "literal"
      ? source.kind
      : folder.kind === "glob" && source.kind === "dynamic"
        ? "dynamic"
        : folder.kind;
  return { kind, value: `${folder.value}/${name}`, span: source.span };
}

const reads = (use: Use, { sources }: CopyTarget): readonly FoundEffect[] =>
  sources.map((source) => ({ kind: "read", path: use.place(source), span: source.span }));

function copyEffects(use: Use): readonly FoundEffect[] {
  if (hasOption(use, "-s", "--symbolic-link", "-l", "--link")) return linkEffects(use);
  return readAndWritten(use);
}

const readAndWritten = (use: Use): readonly FoundEffect[] => [
  ...reads(use, copyTarget(use)),
  ...writtenTargets(use),
];

/** Whether the path is or holds the current folder or the home: a move of it moves everything. */
const holdsWorkingFolders = (path: Place, { folder, home }: Use): boolean =>
  path !== null && [folder, home].some((inner) => inner !== null && `${inner}/`.startsWith(`${path}/`));

/** A moved file is deleted at its old path and readable at its new one. */
function moveEffects(use: Use): readonly FoundEffect[] {
  const forced = hasOption(use, "-f", "--force");
  const all = copyTarget(use);
  const left = all.sources.map((source): FoundEffect => ({
    kind: "delete",
    path: use.place(source),
    recursive: holdsWorkingFolders(use.place(source), use),
    forced,
    span: source.span,
  }));
  return [...reads(use, all), ...left, ...writtenTargets(use)];
}

/** A link makes its target accessible under another name, also for writing. */
function linkEffects(use: Use): readonly FoundEffect[] {
  const { sources, target, isFolder } = copyTarget(use);
  const symbolic =
    hasOption(use, "-s", "--symbolic", "--symbolic-link") && !hasOption(use, "-r", "--relative");
  const opened = sources.flatMap((source) => {
    if (!symbolic || source.value.startsWith("/")) return [source];
    // A symbolic link is relative to the folder that it is in, and whether the target is that folder is unknown here.
    const beside = nameInFolder({ ...target, value: `${target.value}/..` }, source.value, source);
    return isFolder
      ? [nameInFolder(target, source.value, source)]
      : [beside, nameInFolder(target, source.value, source)];
  });
  const effects = opened.flatMap((arg): readonly FoundEffect[] =>
    (["read", "write"] as const).map((kind) => ({ kind, path: use.place(arg), span: arg.span })),
  );
  return [...effects, ...writtenTargets(use)];
}

function installEffects(use: Use): readonly FoundEffect[] {
  if (!hasOption(use, "-d", "--directory")) return readAndWritten(use);
  return use.operands.map((folder) => ({ kind: "write", path: use.place(folder), span: folder.span }));
}

/** Patched files lie below the current folder: patch accepts no other names from the diff. */
function patchEffects(use: Use): readonly FoundEffect[] {
  const [file] = use.operands;
  const doubts = use.operands.slice(2).map((arg) => use.doubt("operand.unknown", arg));
  if (hasOption(use, "--dry-run"))
    return file === undefined
      ? doubts
      : [...doubts, { kind: "read", path: use.place(file), span: file.span }];
  if (file !== undefined) return [...doubts, { kind: "write", path: use.place(file), span: file.span }];
  return hasOption(use, "-o", "--output") ? doubts : [...doubts, { kind: "write", path: use.folder }];
}

const DD_HARMLESS = new Set("bs ibs obs cbs count skip seek iseek oseek conv iflag oflag status".split(" "));

/** Any number of files whose names start like this. */
function partFiles(use: Use, prefix: Arg | null | undefined, standard: string): readonly FoundEffect[] {
  const { kind, value, span } = prefix ?? { kind: "literal", value: standard, span: use.span };
  const pattern: Arg = { kind: kind === "dynamic" ? kind : "glob", value: `${value}*`, span };
  return [{ kind: "write", path: use.place(pattern), span }];
}

/** Operands of the form `name=value`. */
function ddEffects(use: Use): readonly FoundEffect[] {
  return use.args.flatMap((arg) => {
    const equals = arg.value.indexOf("=");
    const name = arg.value.slice(0, Math.max(equals, 0));
    const value: Arg = { ...arg, value: arg.value.slice(equals + 1) };
    if (name === "if")
      return [{ kind: "read", path: use.place(value), span: arg.span } satisfies FoundEffect];
    if (name === "of")
      return [{ kind: "write", path: use.place(value), span: arg.span } satisfies FoundEffect];
    if (arg.loose === true) return [use.doubt("word.dynamic", arg)];
    return DD_HARMLESS.has(name) ? [] : [use.doubt("option.unknown", arg)];
  });
}

const TREE_BUNDLE = /^-[^-]/;
const TREE_INNER_VALUE = /^-[^-]*?[LPIoHT](?!\d*$)./;

/** In a bundle of `tree`, a letter takes the next word, never the rest of its own: `-Lo 2 out` writes `out`. */
const treeBundles = (use: Use): readonly FoundEffect[] =>
  use.args
    .filter(({ value }) => TREE_BUNDLE.test(value) && TREE_INNER_VALUE.test(value))
    .map((arg) => use.doubt("option.unknown", arg));

const FILE_TESTS = new Set("-a -b -c -d -e -f -g -h -k -p -r -s -u -w -x -G -L -N -O -S".split(" "));
const TEXT_TESTS = new Set(["-n", "-z", "-t", "-o"]);
const FILE_COMPARISONS = new Set(["-nt", "-ot", "-ef"]);
const TEXT_COMPARISONS = new Set(["=", "==", "!=", "<", ">"]);
const NUMBER_COMPARISONS = new Set(["-eq", "-ne", "-lt", "-le", "-gt", "-ge"]);
const NAME_TESTS = new Set(["-v", "-R"]);

const NAME = /^\w+$/;
const NUMBER = /^[+-]?\d+$/;

/**
 * `test` and `[`. Their grammar depends on the number of words, so every word that could be an operator is taken for one. A
 * variable's name or a number may contain a subscript, which some shells evaluate.
 */
function testEffects(use: Use): readonly FoundEffect[] {
  const closes = use.args.at(-1);
  if (use.program !== "[") return use.args.flatMap((_, at) => testedWord(use, use.args, at));
  if (closes?.kind !== "literal" || closes.value !== "]")
    return [use.doubt("operand.unknown", closes ?? { kind: "literal", value: "[", span: use.span })];
  const words = use.args.slice(0, -1);
  return words.flatMap((_, at) => testedWord(use, words, at));
}

function testedWord(use: Use, words: readonly Arg[], at: number): readonly FoundEffect[] {
  const word = words[at] as Arg;
  if (word.kind === "literal") return testOperator(use, word, [words[at - 1], words[at + 1]]);
  const open = word.value.charAt(0);
  if (word.kind === "glob") return "*?[".includes(open) ? [use.doubt("word.leading-glob", word)] : [];
  return word.loose !== true && isSurelyOperand(words, at) ? [] : [use.doubt("word.dynamic", word)];
}

type Neighbours = readonly [before: Arg | undefined, behind: Arg | undefined];

function testOperator(use: Use, { value }: Arg, [before, behind]: Neighbours): readonly FoundEffect[] {
  const known = [before, behind].filter((arg) => arg !== undefined);
  if (NAME_TESTS.has(value))
    return behind === undefined || isLiteral(behind, NAME) ? [] : [use.doubt("shell.expansion", behind)];
  if (NUMBER_COMPARISONS.has(value))
    return known.filter((arg) => !isLiteral(arg, NUMBER)).map((arg) => use.doubt("shell.expansion", arg));
  if (FILE_COMPARISONS.has(value)) return known.flatMap((arg) => testedFile(use, arg));
  return FILE_TESTS.has(value) && behind !== undefined ? testedFile(use, behind) : [];
}

const isLiteral = ({ kind, value }: Arg, form: RegExp): boolean => kind === "literal" && form.test(value);

const CONNECTIVES = new Set(["!", "(", ")", "-a", "-o"]);

function testedFile(use: Use, arg: Arg): readonly FoundEffect[] {
  const { kind, value, span } = arg;
  if (kind === "literal" && (CONNECTIVES.has(value) || FILE_TESTS.has(value) || TEXT_TESTS.has(value)))
    return [];
  return [{ kind: "read", path: orItsFolder(use.place(arg), use.folder), span }];
}

/**
 * A test of a file below the current folder that may hold a secret tells no more than the list of its folder, and
 * counts as a read of the folder.
 */
const orItsFolder = (path: Place, folder: Place): Place =>
  path !== null && folder !== null && path.startsWith(`${folder}/`) && secretAt(foldPath(path)) !== null
    ? path.slice(0, path.lastIndexOf("/"))
    : path;

/** A position where a word can only be an operand, whatever its value. */
function isSurelyOperand(words: readonly Arg[], at: number): boolean {
  const before = words[at - 1];
  const behind = words[at + 1];
  if (words.length === 1) return true;
  const follows = before?.kind === "literal" && (isUnary(before.value) || TEXT_COMPARISONS.has(before.value));
  return follows || (behind?.kind === "literal" && TEXT_COMPARISONS.has(behind.value));
}

const isUnary = (value: string): boolean => FILE_TESTS.has(value) || TEXT_TESTS.has(value);

const PRINTF_COUNTS = /(?:^|[^%])(?:%%)*%[-+ #'*.\dhjlLqtz]*n/;

/** Any operand that is no format sets the clock. */
function setsDate(use: Use): readonly FoundEffect[] {
  return use.operands
    .filter(({ kind, value }) => kind === "literal" && !value.startsWith("+"))
    .map(({ span }) => ({ kind: "system", what: use.program, span }));
}

/** `-v name` and `%n` set shell variables, and a name may contain a subscript, which is evaluated. */
function printfEffects(use: Use): readonly FoundEffect[] {
  const at = use.args[0]?.value === "--" ? 1 : 0;
  const format = use.args[at];
  if (format === undefined) return [];
  if (at === 0 && format.value.startsWith("-") && format.value !== "-")
    return [use.doubt("shell.expansion", format)];
  if (format.kind !== "literal" && (format.loose === true || use.args.length > at + 1))
    return [use.doubt("word.dynamic", format)];
  return PRINTF_COUNTS.test(format.value) ? [use.doubt("shell.expansion", format)] : [];
}

/** bat may start a pager, and its first word may be a command that changes bat's own files. */
function batEffects(use: Use): readonly FoundEffect[] {
  const [first] = use.operands;
  const paging = use.options.filter(
    ({ name, value }) => name === "--paging" && value?.value !== "never" && value?.value !== "auto",
  );
  return [
    ...paging.map(({ value }) =>
      use.doubt("option.unknown", value ?? first ?? { ...PAGING_OPTION, span: use.span }),
    ),
    ...(first?.value === "cache" ? [use.doubt("operand.unknown", first)] : []),
  ];
}

/** less runs `+command` at its start. */
const plusCommands = (use: Use): readonly FoundEffect[] =>
  use.operands.filter(({ value }) => value.startsWith("+")).map((arg) => use.doubt("operand.unknown", arg));

/** Only names of pages: a path would be formatted with macros of its own. */
const pagePaths = (use: Use): readonly FoundEffect[] =>
  use.operands.filter(({ value }) => value.includes("/")).map((arg) => use.doubt("operand.unknown", arg));

const PAGING_OPTION = { kind: "literal", value: "--paging" } as const;

/** The readers of this file, by the names that rows use. */
export const COREUTILS_READERS: Readonly<Record<string, UseReader>> = {
  cp: copyEffects,
  mv: moveEffects,
  ln: linkEffects,
  install: installEffects,
  patch: patchEffects,
  mktemp: ({ operands }) => (operands.length > 0 ? [] : [{ kind: "write", path: "/tmp/tmp.*" }]),
  mknod: (use) => (use.operands.length > 2 ? [fixedEffect("system", use.folder, use.program)] : []),
  chmod: chmodEffects,
  chattr: chattrEffects,
  tree: treeBundles,
  split: (use) => partFiles(use, use.operands[1], "x"),
  csplit: (use) =>
    partFiles(use, use.options.findLast(({ name }) => name === "-f" || name === "--prefix")?.value, "xx"),
  dd: ddEffects,
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
