/** Programs that search files, and those that run a command on what is found: fd, xargs, parallel. */
import { hasOption, roleEffects } from "./argument-roles.ts";
import {
  type Arg,
  type FoundEffect,
  type OptionTable,
  type UseReader,
  UNKNOWN,
  type Use,
} from "./program-model.ts";
import { type Manner, readArguments } from "./read-arguments.ts";

/** With patterns from a file, no operand is a pattern. Recursive searches without a folder start in the current one. */
function grepEffects(use: Use, recursive: boolean): readonly FoundEffect[] {
  const { options, operands } = use;
  const fromFile = hasOption(use, "-f", "--file");
  const first = fromFile ? operands.slice(0, 1) : [];
  const here = recursive && operands.length === (fromFile || hasOption(use, "-e", "--regexp") ? 0 : 1);
  // A further word of an unquoted value is a file.
  const spills = [...operands, ...options.flatMap(({ value }) => value ?? [])].some(
    ({ loose }) => loose === true,
  );
  return [
    ...(spills ? [{ kind: "read", path: null } as const] : []),
    ...first.flatMap((arg) => roleEffects("read", arg, use)),
    ...(here ? [{ kind: "read", path: use.folder } as const] : []),
  ];
}

/** Patterns that narrow a search (`-g`, own types) count as paths that are read, relative to the current folder. */
const narrowingPatterns = (use: Use, names: ReadonlySet<string>): readonly FoundEffect[] =>
  use.options.flatMap(({ name, value }) => {
    if (value === null || !names.has(name) || value.value.startsWith("!")) return [];
    const pattern = value.value.replace(/^(?:\w+:)?\/*/, "");
    return [{ kind: "read", path: use.place({ ...value, value: pattern }), span: value.span }];
  });

/** Options with which no operand is a pattern. */
const WITHOUT_PATTERN: ReadonlySet<string> = new Set(["--files", "-f", "--file", "-g"]);

/** Searches the current folder by default. Where options make the pattern a path, it is read. */
function searches(patternless: ReadonlySet<string>): (use: Use) => readonly FoundEffect[] {
  return (use) => {
    const { options, operands } = use;
    const first = options.some(({ name }) => patternless.has(name)) ? operands.slice(0, 1) : [];
    const hasPattern = first.length > 0 || hasOption(use, "-e", "--regexp");
    return [
      ...first.flatMap((arg) => roleEffects("read", arg, use)),
      ...(operands.length <= (hasPattern ? 0 : 1) ? [{ kind: "read", path: use.folder } as const] : []),
    ];
  };
}

const RG_CHOOSING: ReadonlySet<string> = new Set(["-g", "--glob", "--iglob", "--type-add"]);
const rgSearches = searches(new Set(["--files", "-f", "--file"]));

/** With `--files` only names are printed. */
const rgEffects = (use: Use): readonly FoundEffect[] =>
  hasOption(use, "--files") ? rgSearches(use) : [...rgSearches(use), ...narrowingPatterns(use, RG_CHOOSING)];

/**
 * Without `-f` or `-o`, ctags writes its index into the current folder; `-` and `-x` print the index, if they come
 * before the files.
 */
function ctagsEffects(use: Use): readonly FoundEffect[] {
  const { options, operands, span } = use;
  const [first] = operands;
  const start = first?.span[0] ?? Number.MAX_SAFE_INTEGER;
  if (options.some((option) => CTAGS_PRINTS.has(option.name) && option.span[0] < start)) return [];
  return [{ kind: "write", path: use.place({ kind: "literal", value: "tags", span }) }];
}

const CTAGS_PRINTS: ReadonlySet<string> = new Set(["-f", "-o", "-x"]);

/** `sg` is the search only with a known verb; the system's `sg` runs commands with another group's rights. */
function groupEffects(use: Use): readonly FoundEffect[] {
  const text = use.args.findIndex(({ value }) => value === "-c");
  const shell = text === -1 ? undefined : use.args[text + 1];
  return [
    { kind: "unknown", doubt: "command.escapes", what: use.program },
    ...(shell === undefined ? [] : use.shell(shell)),
  ];
}

const AST_GREP_OTHER_VERBS = new Set("scan test new lsp completions help".split(" "));

/** Interactive, unless a filter is given. */
function fzfEffects(use: Use): readonly FoundEffect[] {
  return hasOption(use, "-f", "--filter")
    ? []
    : [{ kind: "unknown", doubt: "operand.unknown", what: "input from a terminal" }];
}

const FD_MANNER: Manner = { strict: false, singleDash: false, abbreviates: false };
const FD_RUNS: ReadonlySet<string> = new Set(["-x", "-X", "--exec", "--exec-batch"]);
const FD_MARKS: readonly string[] = ["{}", "{/}", "{//}", "{.}", "{/.}"];

/** Options and operands, then perhaps `-x` with a command up to `;` or the end. */
function fdEffects(use: Use, table: OptionTable): readonly FoundEffect[] {
  const at = use.args.findIndex(({ value, kind }) => kind === "literal" && FD_RUNS.has(value));
  if (at === -1) return fdSearch(use.args, use, table).found;
  const rest = use.args.slice(at + 1);
  const end = rest.findIndex(({ value }) => value === ";");
  const command = end === -1 ? rest : rest.slice(0, end);
  const { found, starts, names } = fdSearch(
    [...use.args.slice(0, at), ...(end === -1 ? [] : rest.slice(end + 1))],
    use,
    table,
  );
  const finds = starts.flatMap((start) => names.map((name) => globBelow(start, name)));
  const [most, doubts] = mostOf(finds, use);
  return [...found, ...doubts, ...fdCommand(command, most, use)];
}

interface FdSearch {
  readonly found: readonly FoundEffect[];
  readonly starts: readonly Arg[];
  /** Patterns for the names that fd may find. */
  readonly names: readonly string[];
}

function fdSearch(args: readonly Arg[], use: Use, table: OptionTable): FdSearch {
  const { options, operands, misread } = readArguments(args, table, FD_MANNER);
  const base = options.findLast(({ spec }) => spec.role === "in")?.value ?? null;
  const searched = options.flatMap(({ name, value }) =>
    name === "--search-path" && value !== null ? [value] : [],
  );
  const folders = searched.length > 0 ? operands : operands.slice(1);
  const here: Arg = { kind: "literal", value: ".", span: use.span };
  const relative = folders.length + searched.length > 0 ? [...folders, ...searched] : [here];
  const starts = base === null ? relative : relative.map((start) => inFolder(base, start));
  const extensions = options.flatMap(({ name, value }) =>
    FD_EXTENSION.has(name) ? [`*/*.${value?.value ?? ""}`] : [],
  );
  return {
    starts,
    names: extensions.length > 0 ? extensions : [fdNames(searched.length > 0 ? undefined : operands[0])],
    found: [
      ...misread.map(({ doubt, arg, what }) => use.doubt(doubt, arg, what)),
      ...options.flatMap(({ spec: { role }, value }) =>
        value === null || role === "command" ? [] : roleEffects(role, value, use),
      ),
      ...starts.flatMap((start) => roleEffects("read", start, use)),
    ],
  };
}

const FD_EXTENSION: ReadonlySet<string> = new Set(["-e", "--extension"]);

/** A pattern for the names that fd finds: any name, some unknown names, or one name. */
function fdNames(pattern: Arg | undefined): string {
  if (pattern === undefined || !/[A-Za-z0-9]/.test(pattern.value)) return "*";
  const name = pattern.value.replaceAll(/[\^$\\]/g, "").toLowerCase();
  return /^[\w.-]+$/.test(name) ? `*/${name}` : "*/*found*";
}

function inFolder(base: Arg, start: Arg): Arg {
  if (start.value.startsWith("/")) return start;
  const kind = start.kind === "literal" ? base.kind : start.kind;
  return { kind, value: `${base.value}/${start.value}`, span: start.span };
}

const globBelow = ({ kind, value, span }: Arg, name: string): Arg => ({
  kind: kind === "dynamic" ? kind : "glob",
  value: `${value.replace(/\/+$/, "")}/${name}`,
  span,
});

/** Found names replace a placeholder, or are appended. */
function fdCommand(command: readonly Arg[], found: readonly Arg[], use: Use): readonly FoundEffect[] {
  const marked = command.some(({ value }) => FD_MARKS.some((mark) => value.includes(mark)));
  const doubts = command
    .filter((word) => word.kind !== "literal")
    .map((word) => use.doubt(word.kind === "glob" ? "word.leading-glob" : "word.dynamic", word));
  if (command.length === 0) return [{ kind: "unknown", doubt: "operand.unknown", what: "an empty command" }];
  return [
    ...doubts,
    ...use.command(fillPlaceholders(marked ? command : [...command, FD_MARK], FD_MARKS, found)),
  ];
}

const FD_MARK: Arg = { kind: "literal", value: "{}", span: [0, 0] };

const MAX_FINDS = 64;
const XARGS_MARKS: ReadonlySet<string> = new Set(["-I", "-i", "--replace"]);
const XARGS_INPUT_FILES: ReadonlySet<string> = new Set(["-a", "--arg-file"]);
const XARGS_SPLITS: ReadonlySet<string> = new Set(["-0", "--null", "-d", "--delimiter"]);
/** With these options, input is split, and a part may be read differently from the whole. */
const XARGS_PARTS: ReadonlySet<string> = new Set([
  "-n",
  "--max-args",
  "-L",
  "-l",
  "--max-lines",
  "-s",
  "--max-chars",
]);
const MAX_KNOWN_WORDS = 64;

/** The command that xargs runs, with the words of stdin appended or in place of a placeholder. */
function xargsEffects(use: Use): readonly FoundEffect[] {
  const { operands, options } = use;
  if (operands.length === 0) return [];
  const mark = options.findLast(({ name }) => XARGS_MARKS.has(name));
  const inputWords = stdinWords(use);
  const known = inputWords.every(({ kind }) => kind === "literal");
  const apart = known && inputWords.length > 1 && options.some(({ name }) => XARGS_PARTS.has(name));
  const runs = [inputWords, ...(apart ? [[unknownWord(use)]] : [])].map((words) =>
    mark === undefined
      ? [...operands, ...words]
      : fillPlaceholders(operands, [mark.value?.value ?? "{}"], words),
  );
  const input = options.some(({ name }) => XARGS_INPUT_FILES.has(name)) ? use.input : "nothing";
  const unclear = mark?.value?.kind === "dynamic" ? [use.doubt("word.dynamic", mark.value)] : [];
  return [...unclear, ...runs.flatMap((words) => use.command(words, { input }))];
}

/** Stands for any number of any words. */
function unknownWord({ input, span }: Use): Arg {
  return {
    kind: "dynamic",
    value: UNKNOWN,
    loose: true,
    span,
    feed: input === "network" ? input : "unknown",
  };
}

/** Words from stdin: those of a literal text, or one that stands for any number of any words. */
function stdinWords(use: Use): readonly Arg[] {
  const { input, options } = use;
  if (typeof input !== "string" && input.found === true)
    return [{ kind: "glob", value: input.text.trim(), span: input.span }];
  const special = options.some(
    (option) => XARGS_INPUT_FILES.has(option.name) || XARGS_SPLITS.has(option.name),
  );
  if (special || typeof input === "string" || /[\\'"%]/.test(input.text)) return [unknownWord(use)];
  const byLine = options.some((option) => XARGS_MARKS.has(option.name));
  const known = input.text
    .split(byLine ? "\n" : /\s+/)
    .map((value) => value.trim())
    .filter((value) => value !== "");
  if (known.length === 0 || known.length > MAX_KNOWN_WORDS) return [unknownWord(use)];
  return known.map((value): Arg => ({ kind: "literal", value, span: input.span }));
}

const PARALLEL_SOURCES: ReadonlySet<string> = new Set([":::", ":::+", "::::", "::::+"]);

/** Always asks: it has many options and runs texts with a shell. Its command is still searched for dangers. */
function parallelEffects(use: Use): readonly FoundEffect[] {
  const from = use.args.findIndex(({ value }) => !value.startsWith("-") && !/^\d+%?$/.test(value));
  const rest = from === -1 ? [] : use.args.slice(from);
  const end = rest.findIndex(({ value }) => PARALLEL_SOURCES.has(value));
  const command = end === -1 ? rest : rest.slice(0, end);
  const sourceWords =
    end === -1 ? [] : rest.slice(end + 1).filter(({ value }) => !PARALLEL_SOURCES.has(value));
  const asks: FoundEffect = { kind: "unknown", doubt: "command.escapes", what: use.program, span: use.span };
  const [first] = sourceWords;
  const unknown: Arg = { kind: "dynamic", value: UNKNOWN, span: use.span };
  const inputs =
    command.length === 0 && first !== undefined ? sourceWords.flatMap((text) => use.shell(text)) : [];
  const ran =
    command.length === 0
      ? []
      : use.command([...fillPlaceholders(command, ["{}"], [unknown]), ...sourceWords, unknown]);
  return [asks, ...inputs, ...ran];
}

/**
 * A command with found names in place of its placeholders. One command stands for all that will run: a word that is a
 * placeholder becomes all found names; a word that contains one becomes unknown where there are several names.
 */
export function fillPlaceholders(
  words: readonly Arg[],
  marks: readonly string[],
  found: readonly Arg[],
): readonly Arg[] {
  const [only] = found;
  const single = only !== undefined && found.length === 1 ? only : unknownOf(found);
  return words.flatMap((word) => {
    if (word.kind === "literal" && marks.includes(word.value)) return found;
    const mark = marks.find((each) => word.value.includes(each));
    return mark === undefined ? [word] : [replaced(word, mark, single)];
  });
}

function unknownOf(found: readonly Arg[]): Arg {
  const feed = found.find((arg) => arg.feed === "network")?.feed ?? "unknown";
  return { kind: "dynamic", value: UNKNOWN, span: [0, 0], feed };
}

function replaced(word: Arg, mark: string, by: Arg): Arg {
  const kind = word.kind === "dynamic" ? word.kind : by.kind;
  const feed = by.feed === undefined ? {} : { feed: by.feed };
  return { ...word, ...feed, kind, value: word.value.replaceAll(mark, () => by.value) };
}

/** Bounds the found names that are judged one by one; any more give a doubt. */
export function mostOf(
  found: readonly Arg[],
  { span }: Use,
): readonly [readonly Arg[], readonly FoundEffect[]] {
  if (found.length <= MAX_FINDS) return [found, []];
  const what = `more than ${MAX_FINDS} places to search`;
  return [found.slice(0, MAX_FINDS), [{ kind: "unknown", doubt: "shell.limit", what, span }]];
}

/** The readers of this file, by the names that rows use. */
export const SEARCH_READERS: Readonly<Record<string, UseReader>> = {
  grep: (use) => grepEffects(use, hasOption(use, "-r", "-R", "--recursive", "--dereference-recursive")),
  rgrep: (use) => grepEffects(use, true),
  zgrep: (use) => grepEffects(use, false),
  rg: rgEffects,
  ag: searches(WITHOUT_PATTERN),
  ctags: ctagsEffects,
  "ast-grep": ({ operands: [verb] }) =>
    verb !== undefined && AST_GREP_OTHER_VERBS.has(verb.value)
      ? [{ kind: "unknown", doubt: "operand.unknown", what: verb.value, span: verb.span }]
      : [],
  sg: groupEffects,
  fzf: fzfEffects,
  fd: fdEffects,
  xargs: xargsEffects,
  parallel: parallelEffects,
};
