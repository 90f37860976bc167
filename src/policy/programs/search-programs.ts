import { roleEffects } from "./argument-roles.ts";
import type { Found, GivenOption, Use, Reader } from "./program-model.ts";

/**
 * Without `-f` or `-o`, ctags writes its index into the current folder; `-` and `-x` print the index, if they come
 * before the files.
 */
function ctagsEffects(use: Use): readonly Found[] {
  const { options, operands, span } = use;
  const [first] = operands;
  const start = first?.span[0] ?? Number.MAX_SAFE_INTEGER;
  if (options.some((option) => PRINTS.has(option.name) && option.span[0] < start)) return [];
  return [{ kind: "write", path: use.place({ kind: "literal", value: "tags", span }) }];
}

const PRINTS: ReadonlySet<string> = new Set(["-f", "-o", "-x"]);

/** `sg` is the search only with a known verb; the system's `sg` runs commands with another group's rights. */
function groupEffects(use: Use): readonly Found[] {
  const text = use.args.findIndex(({ value }) => value === "-c");
  const shell = text === -1 ? undefined : use.args[text + 1];
  return [
    { kind: "unknown", doubt: "command.escapes", what: use.program },
    ...(shell === undefined ? [] : use.shell(shell)),
  ];
}

const OTHER_VERBS = new Set("scan test new lsp completions help".split(" "));
const has = (options: readonly GivenOption[], names: ReadonlySet<string>): boolean =>
  options.some(({ name }) => names.has(name));
const FILTERS: ReadonlySet<string> = new Set(["-f", "--filter"]);

/** Interactive, unless a filter is given. */
function fzfEffects(use: Use): readonly Found[] {
  return use.options.some(({ name }) => FILTERS.has(name))
    ? []
    : [{ kind: "unknown", doubt: "operand.unknown", what: "input from a terminal" }];
}

/** Patterns that narrow a search (`-g`, own types) count as paths that are read, relative to the current folder. */
const narrowingPatterns = (use: Use, names: ReadonlySet<string>): readonly Found[] =>
  use.options.flatMap(({ name, value }) => {
    if (value === null || !names.has(name) || value.value.startsWith("!")) return [];
    const pattern = value.value.replace(/^(?:\w+:)?\/*/, "");
    return [{ kind: "read", path: use.place({ ...value, value: pattern }), span: value.span }];
  });

const LIGHT = { forced: false, recursive: false };
/** Options with which no operand is a pattern. */
const WITHOUT_PATTERN: ReadonlySet<string> = new Set(["--files", "-f", "--file", "-g"]);
const PATTERNS: ReadonlySet<string> = new Set(["-e", "--regexp"]);

/** Searches the current folder by default. Where options make the pattern a path, it is read. */
function searches(patternless: ReadonlySet<string>): (use: Use) => readonly Found[] {
  return (use) => {
    const { options, operands } = use;
    const first = options.some(({ name }) => patternless.has(name)) ? operands.slice(0, 1) : [];
    const given = first.length > 0 || options.some(({ name }) => PATTERNS.has(name));
    return [
      ...first.flatMap((arg) => roleEffects("read", arg, use, LIGHT)),
      ...(operands.length <= (given ? 0 : 1) ? [{ kind: "read", path: use.folder } as const] : []),
    ];
  };
}

const CHOOSING: ReadonlySet<string> = new Set(["-g", "--glob", "--iglob", "--type-add"]);
const rgSearches = searches(new Set(["--files", "-f", "--file"]));

/** With `--files` only names are printed. */
const rgEffects = (use: Use): readonly Found[] =>
  use.options.some(({ name }) => name === "--files")
    ? rgSearches(use)
    : [...rgSearches(use), ...narrowingPatterns(use, CHOOSING)];
const FILES: ReadonlySet<string> = new Set(["-f", "--file"]);
const RECURSIVE: ReadonlySet<string> = new Set(["-r", "-R", "--recursive", "--dereference-recursive"]);

/** With patterns from a file, no operand is a pattern. Recursive searches without a folder start in the current one. */
function grepEffects(use: Use, recursive: boolean): readonly Found[] {
  const { options, operands } = use;
  const given = options.some(({ name }) => name === "-e" || name === "--regexp") || has(options, FILES);
  const first = has(options, FILES) ? operands.slice(0, 1) : [];
  const here = recursive && operands.length === (given ? 0 : 1);
  // A further word of an unquoted value is a file.
  const spills = [...operands, ...options.flatMap(({ value }) => value ?? [])].some(
    ({ loose }) => loose === true,
  );
  return [
    ...(spills ? [{ kind: "read", path: null } as const] : []),
    ...first.flatMap((arg) => roleEffects("read", arg, use, LIGHT)),
    ...(here ? [{ kind: "read", path: use.folder } as const] : []),
  ];
}

/** The readers of this file, by the names that rows use. */
export const SEARCH_READERS: Readonly<Record<string, Reader>> = {
  grep: (use) => grepEffects(use, has(use.options, RECURSIVE)),
  rgrep: (use) => grepEffects(use, true),
  zgrep: (use) => grepEffects(use, false),
  rg: rgEffects,
  ag: searches(WITHOUT_PATTERN),
  ctags: ctagsEffects,
  "ast-grep": ({ operands: [verb] }) =>
    verb !== undefined && OTHER_VERBS.has(verb.value)
      ? [{ kind: "unknown", doubt: "operand.unknown", what: verb.value, span: verb.span }]
      : [],
  sg: groupEffects,
  fzf: fzfEffects,
};
