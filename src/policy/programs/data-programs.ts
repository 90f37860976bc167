/** Programs that query data: databases, tables, calculators, jq and yq. */
import { hasOption, networkTo, part, roleEffects, valuesOf } from "./argument-roles.ts";
import {
  type Arg,
  type FoundEffect,
  isGuess,
  type UseReader,
  type Role,
  UNKNOWN,
  type Use,
} from "./program-model.ts";
import { escapes } from "./shell-programs.ts";

const SQLITE_FLAGS =
  /^--?(?:header|noheader|column|csv|json|line|list|html|markdown|box|table|tabs|quote|ascii|batch|bail|readonly|echo|safe|stats|interactive|nofollow|deserialize|utf8)$/;
const SQLITE_VALUED = /^--?(?:separator|nullvalue|newline|maxsize|cmd)$/;
/** Commands of sqlite3 that only print, or set how it prints. */
const SQLITE_TELLING =
  /^\.(?:tables?|schema|fullschema|ind(?:ex|ices|exes)|databases|dump|mode|headers?|separator|nullvalue|width|timer|echo|bail|changes|stats|explain|eqp|show|quit|exit|print|help|dbinfo|limit|version|lint|sha3sum|timeout|parameter)(?:\s[^|`]*)?$/;

/** Commands of sqlite3 that open other files or run code. */
const SQLITE_REACHING =
  /\b(?:attach|load_extension|readfile|writefile|edit|zipfile|fsdir|fts3_tokenizer|vacuum\s+into|vacuum\s+\w+\s+into|temp_store_directory|data_store_directory|writable_schema|trusted_schema)\b/i;

/** Whether a text of SQL statements and commands (one per line) reaches nothing but the database. */
function isTameSql({ kind, value }: Pick<Arg, "kind" | "value">): boolean {
  const lines = value.split("\n").map((line) => line.trim());
  return (
    kind === "literal" &&
    !SQLITE_REACHING.test(value) &&
    lines.every((line) => !line.startsWith(".") || SQLITE_TELLING.test(line))
  );
}

interface SqliteArguments {
  readonly operands: readonly Arg[];
  readonly tame: boolean;
}

function sqliteArguments(args: readonly Arg[]): SqliteArguments {
  const operands: Arg[] = [];
  let tame = true;
  for (let at = 0; at < args.length; at += 1) {
    const arg = args[at] as Arg;
    const valued = SQLITE_VALUED.test(arg.value);
    if (!arg.value.startsWith("-")) operands.push(arg);
    else
      tame &&=
        arg.kind === "literal" && (valued ? isTameSql(args[at + 1] ?? arg) : SQLITE_FLAGS.test(arg.value));
    if (valued) at += 1;
  }
  return { operands, tame };
}

function isTameSqlInput(input: Use["input"]): boolean {
  if (typeof input === "string") return input === "nothing" || input === "project";
  return input.rough !== true && isTameSql({ kind: "literal", value: input.text });
}

function databaseFile(base: Arg | undefined, use: Use): readonly FoundEffect[] {
  if (base === undefined || (base.kind === "literal" && /^(?::memory:)?$/.test(base.value))) return [];
  return [{ kind: "write", path: base.value.startsWith("file:") ? null : use.place(base), span: base.span }];
}

/** Some commands of sqlite3 run any program, so it always asks; it counts as inside if none of them is used. */
function sqlite(use: Use): readonly FoundEffect[] {
  const { operands, tame } = sqliteArguments(use.args);
  const [base, ...statements] = operands;
  const inside = tame && (statements.length > 0 ? statements.every(isTameSql) : isTameSqlInput(use.input));
  return [{ ...escapes(use), ...(inside ? { inside } : {}) }, ...databaseFile(base, use)];
}

/** Options of Miller before its first verb that only describe the format of data; those in `VALUED` take a value. */
const MILLER_FLAGS =
  /^--(?:[ico]?(?:csv|tsv|json|jsonl|dkvp|nidx|xtab|pprint|usv|asv|markdown|md|csvlite|tsvlite|jsonvstack)|c2[tjdnxpbml]|t2[cjdnxpbml]|j2[ctdnxpbml]|l2[ctdnxpbj]|[ckmnst]2p|barred|right|no-color|no-auto-flatten|no-auto-unflatten|implicit-csv-header|headerless-csv-output|headerless-csv-input|hi|ho|allow-ragged-csv-input|records-per-batch|nr-progress-mod|ofmt)$|^-[nIC]$/;
const MILLER_VALUED = /^--(?:[io]?[fpr]s|fflatsep|ofmt|records-per-batch|nr-progress-mod)$/;
/**
 * Verbs whose words are field names, numbers and the like. `tee`, `split`, `put`, `join` and others have more
 * effects.
 */
const MILLER_VERBS =
  /^(?:cat|head|tail|tac|cut|sort|uniq|count|count-distinct|count-similar|top|label|rename|reorder|regularize|unsparsify|nothing|stats1|stats2|step|merge-fields|nest|fill-down|fill-empty|sec2gmt|group-by|group-like|having-fields|histogram|json-parse|json-stringify|flatten|unflatten|altkv|bar|decimate|sparsify|summary|template|seqgen|grep)$/;

/** Verbs follow the options, joined by `then`; the words after those of the last verb are files. */
function mlrEffects(use: Use): readonly FoundEffect[] {
  const { args } = use;
  let at = 0;
  for (; at < args.length && args[at]?.value.startsWith("-") === true; at += 1) {
    const { value } = args[at] as Arg;
    if (MILLER_VALUED.test(value)) at += 1;
    else if (!MILLER_FLAGS.test(value) || value === "-I")
      return [use.doubt("option.unknown", args[at] as Arg)];
  }
  const verbs = args.filter((_, index) => index === at || (index > at && args[index - 1]?.value === "then"));
  const doubts = verbs
    .filter(({ value, kind }) => kind !== "literal" || !MILLER_VERBS.test(value))
    .map((verb) => use.doubt("operand.unknown", verb));
  const vague = args.filter(({ kind }) => kind === "dynamic").map((arg) => use.doubt("word.dynamic", arg));
  // Field names are harmless even if taken for files, so the split between verb and files does not matter.
  const read = args.slice(at + 1).flatMap((arg) => roleEffects("read", arg, use));
  return [...doubts, ...vague, ...read];
}

const FETCHED_ADDRESS = /^(?:https?|ftp):/i;

/** An argument that is an address is fetched. */
function addressEffects(use: Use): readonly FoundEffect[] {
  return [...namedAddresses(use), ...includedSchemas(use)];
}

const SCHEMA_OPTIONS: ReadonlySet<string> = new Set(["-schema", "-relaxng", "-schematron"]);

/** A schema may include others by address. */
const includedSchemas = ({ options }: Use): readonly FoundEffect[] =>
  options.some(({ name }) => name === "-nonet")
    ? []
    : options
        .filter(({ name }) => SCHEMA_OPTIONS.has(name))
        .map(({ span }) => ({ kind: "network", hosts: [], span }));

function namedAddresses(use: Use): readonly FoundEffect[] {
  const words: readonly Arg[] = [...use.operands, ...use.options.flatMap(({ value }) => value ?? [])];
  return words.flatMap((arg): readonly FoundEffect[] => {
    const [address] = FETCHED_ADDRESS.exec(arg.value) ?? [];
    if (address === undefined) return [];
    const host = arg.value.slice(address.length).split("/")[2];
    return [{ kind: "network", hosts: host === undefined || host === "" ? [] : [host], span: arg.span }];
  });
}

/** Everything after the file is a program in JavaScript. */
function fxEffects(use: Use): readonly FoundEffect[] {
  return use.operands.slice(1).map((text): FoundEffect => ({
    kind: "code",
    from: "inline",
    path: null,
    text: text.value,
    span: text.span,
  }));
}

/** `!` runs a command unless it compares; `?` runs a line of stdin; a number can become a character. */
const RUNS_IN_DC = /!(?![<>=])|[?a]/;

/** Programs of dc from options, files or stdin. */
function dcEffects(use: Use): readonly FoundEffect[] {
  const expressions = valuesOf(use, "-e", "--expression");
  const anyExpression = hasOption(use, "-e", "--expression");
  const files = hasOption(use, "-f", "--file") || use.operands.length > 0;
  const { input } = use;
  const text: Arg | null =
    typeof input === "string" ? null : { kind: "literal", value: input.text, span: input.span };
  const programs = anyExpression || files ? expressions : [text];
  const doubts = programs.flatMap((program) => {
    if (program?.kind === "literal")
      return RUNS_IN_DC.test(program.value) ? [use.doubt("language.unknown", program)] : [];
    return program === null ? [fromInput(use)] : [use.doubt("word.dynamic", program)];
  });
  const inFiles = files ? [use.doubt("language.unknown", programArg(use))] : [];
  return [...doubts, ...inFiles];
}

const programArg = ({ program, span }: Use): Arg => ({ kind: "literal", value: program, span });

const fromInput = ({ input }: Use): FoundEffect => ({
  kind: "code",
  from: input === "network" ? "fetched" : "input",
  path: null,
});

/** A template that is filled with environment variables. */
const fillsFromEnvironment = (): readonly FoundEffect[] => [{ kind: "read", path: "/proc/self/environ" }];
const HOST_OF_CONNECTION = /(?:^|\s)host(?:addr)?\s*=\s*'?([^\s',]+)'?(?=\s|$)/;
/** Settings that name another server, or a file that does. */
const NAMES_SERVER = /\b(?:host(?:addr)?|service(?:file)?)\s*=/;
const HOSTS_OF_CONNECTION = /\bhost(?:addr)?\s*=/g;
const OWN_SERVER = ["localhost"];

/** The server that an address or a connection string names; an empty list where the text leaves it open. */
function namedServers(text: Arg): readonly FoundEffect[] {
  const { value } = text;
  if (text.kind !== "literal") return [{ kind: "network", hosts: [], span: text.span }];
  const [address = "", query = ""] = value.split("?", 2);
  if (address.includes("://") || /^[\w.-]+@/.test(address))
    return [NAMES_SERVER.test(query) ? networkTo(part(text, "")) : networkTo(part(text, address))];
  const host = HOST_OF_CONNECTION.exec(value)?.[1];
  if (host !== undefined && value.match(HOSTS_OF_CONNECTION)?.length === 1)
    return [networkTo(part(text, host))];
  return NAMES_SERVER.test(value) ? [networkTo(part(text, ""))] : [];
}

/** The host that a database client asks: from an option or an address, otherwise its own machine. */
function databaseServer(use: Use): readonly FoundEffect[] {
  if (hasOption(use, "--login-path", "--defaults-file", "--defaults-extra-file"))
    return [{ kind: "network", hosts: [] }];
  const named = hasOption(use, "-h", "--host") || (use.program.includes("cli") && hasOption(use, "-u"));
  const servers = [...use.operands, ...valuesOf(use, "-d", "--dbname", "--uri")].flatMap(namedServers);
  return named || servers.length > 0 ? servers : [{ kind: "network", hosts: OWN_SERVER }];
}

type ValueRole = Exclude<Role, "command">;

/** Options with values; with several values, each has its role. */
const JQ_VALUED: Readonly<Record<string, readonly ValueRole[]>> = {
  "--arg": ["data", "data"],
  "--argjson": ["data", "data"],
  "--slurpfile": ["data", "read"],
  "--rawfile": ["data", "read"],
  "--indent": ["data"],
  "-L": ["loads"],
  "--library-path": ["loads"],
};

const JQ_FILTER_LETTER = /^-[a-zA-Z]*f[a-zA-Z]*$/;
const JQ_BUNDLE = /^-[crjasSCMneRhV]+$/;
const JQ_FLAGS: ReadonlySet<string> = new Set(
  `--compact-output --raw-output --raw-output0 --join-output --ascii-output --slurp --sort-keys --color-output
  --monochrome-output --null-input --exit-status --raw-input --tab --unbuffered --stream --stream-errors --seq --help
  --version --build-configuration`.split(/\s+/),
);
const JQ_FILTER_FILES: ReadonlySet<string> = new Set(["-f", "--from-file"]);

const JQ_ENVIRONMENT: ReadonlySet<string> = new Set(["env", "$ENV", "strenv", "envsubst"]);
const JQ_LOADING = /^(?:import|include|modulemeta|get_search_list|load\w*|strload|system|eval)$/;

/** What a filter accesses beyond its input. */
function filterEffects(filter: Arg, use: Use): readonly FoundEffect[] {
  if (filter.kind === "dynamic") return [use.doubt("word.dynamic", filter)];
  const names = filter.kind === "literal" ? filterNames(filter.value) : null;
  if (names === null || names.some((name) => JQ_LOADING.test(name)))
    return [use.doubt("language.unknown", filter)];
  return names.some((name) => JQ_ENVIRONMENT.has(name))
    ? [{ kind: "read", path: "/proc/self/environ", span: filter.span }]
    : [];
}

function jqEffects(use: Use): readonly FoundEffect[] {
  return new JqReader(use).read();
}

class JqReader {
  readonly #found: FoundEffect[] = [];
  readonly #use: Use;
  #at = 0;
  #filterSeen = false;
  #filesFollow = true;
  #optionsEnded = false;

  constructor(use: Use) {
    this.#use = use;
  }

  read(): readonly FoundEffect[] {
    const { args } = this.#use;
    // Any of these words may be the filter's file, so all of them are read.
    this.#filterSeen = args.some(({ value }) => JQ_FILTER_FILES.has(value) || JQ_FILTER_LETTER.test(value));
    while (this.#at < args.length) {
      const arg = args[this.#at++] as Arg;
      if (arg.value === "--") this.#optionsEnded = true;
      else if (!this.#optionsEnded && arg.value.startsWith("-") && arg.value.length > 1) this.#option(arg);
      else this.#operand(arg);
    }
    return this.#found;
  }

  #operand(arg: Arg): void {
    const open = arg.value.charAt(0);
    const isAny = arg.kind === "dynamic" && (open === UNKNOWN || isGuess(arg));
    if (arg.loose === true || isAny) this.#found.push(this.#use.doubt("word.dynamic", arg));
    else if (arg.kind === "glob" && (open === "*" || open === "?" || open === "["))
      this.#found.push(this.#use.doubt("word.leading-glob", arg));
    if (!this.#filterSeen) {
      this.#filterSeen = true;
      this.#found.push(...filterEffects(arg, this.#use));
    } else if (this.#filesFollow) this.#take("read", arg);
  }

  #take(role: ValueRole, arg: Arg): void {
    this.#found.push(...roleEffects(role, arg, this.#use));
  }

  #option(arg: Arg): void {
    const { value, kind } = arg;
    const roles = JQ_VALUED[value];
    if (kind !== "literal") this.#found.push(this.#use.doubt("word.dynamic", arg));
    else if (roles !== undefined) this.#valued(roles, arg);
    else if (value === "--args" || value === "--jsonargs") this.#filesFollow = false;
    else if (JQ_FILTER_FILES.has(value) || JQ_FILTER_LETTER.test(value)) this.#take("loads", arg);
    else if (value.startsWith("-L")) this.#take("loads", arg);
    else if (!JQ_FLAGS.has(value) && !JQ_BUNDLE.test(value))
      this.#found.push(this.#use.doubt("option.unknown", arg));
  }

  #valued(roles: readonly ValueRole[], option: Arg): void {
    for (const role of roles) {
      const value = this.#use.args[this.#at++];
      if (value === undefined)
        this.#found.push(this.#use.doubt("option.unknown", option, `${option.value} without a value`));
      // An unquoted unknown value could become several words.
      else if (value.loose === true || value.kind === "glob")
        this.#found.push(this.#use.doubt("word.dynamic", value));
      if (value !== undefined) this.#take(role, value);
    }
  }
}

class FilterReader {
  readonly names: string[] = [];
  #at = 0;
  #depth = 0;
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  /** Reads up to the bracket that closes an interpolation, or to the end. */
  code(closing: "" | ")"): boolean {
    let open = 0;
    while (this.#at < this.#text.length) {
      const char = this.#text.charAt(this.#at);
      if (char === ")" && closing !== "" && open === 0) return true;
      if (char === "(") open += 1;
      if (char === ")") open -= 1;
      if (!this.#token(char)) return false;
    }
    return closing === "";
  }

  #token(char: string): boolean {
    if (char === '"') return this.#string();
    if (char === "#") return this.#comment();
    if (isLetter(char) || (char === "$" && isLetter(this.#text.charAt(this.#at + 1)))) {
      this.#name();
      return true;
    }
    this.#at += 1;
    return (char >= " " && char <= "~" && char !== "\\" && char !== "`") || char === "\n" || char === "\t";
  }

  /** Versions differ in whether a backslash continues a comment. */
  #comment(): boolean {
    const newline = this.#text.indexOf("\n", this.#at);
    const end = newline === -1 ? this.#text.length : newline;
    const comment = this.#text.slice(this.#at, end);
    this.#at = end;
    return !comment.includes("\\");
  }

  #string(): boolean {
    this.#at += 1;
    while (this.#at < this.#text.length) {
      const char = this.#text.charAt(this.#at);
      this.#at += 1;
      if (char === '"') return true;
      if (char !== "\\") continue;
      const escaped = this.#text.charAt(this.#at);
      this.#at += 1;
      if (escaped === "(" && !this.#interpolation()) return false;
    }
    return false;
  }

  #interpolation(): boolean {
    if (this.#depth >= MAX_DEPTH) return false;
    this.#depth += 1;
    const closed = this.code(")");
    this.#depth -= 1;
    this.#at += 1;
    return closed;
  }

  #name(): void {
    const from = this.#at;
    this.#at += 1;
    while (this.#at < this.#text.length && this.#isName(this.#text.charAt(this.#at))) this.#at += 1;
    const field = this.#text.charAt(from - 1) === "." && this.#text.charAt(from - 2) !== ".";
    if (!field && !this.#isKey(from)) this.names.push(this.#text.slice(from, this.#at));
  }

  #isName(char: string): boolean {
    return isLetter(char) || isDigit(char);
  }

  /** A key of an object: `name: value`, after the opening brace or a comma. */
  #isKey(from: number): boolean {
    let next = this.#at;
    while (this.#text.charAt(next) === " ") next += 1;
    if (this.#text.charAt(next) !== ":" || this.#text.charAt(next + 1) === ":") return false;
    let before = from - 1;
    while (before >= 0 && " \n\t".includes(this.#text.charAt(before))) before -= 1;
    return before >= 0 && "{,".includes(this.#text.charAt(before));
  }
}

const isLetter = (char: string): boolean =>
  (char >= "a" && char <= "z") || (char >= "A" && char <= "Z") || char === "_";

const MAX_DEPTH = 16;

const isDigit = (char: string): boolean => char >= "0" && char <= "9";

/** The names that a filter of jq or yq uses. */

/**
 * Names of functions and variables (these with their `$`), without fields of data and keys of objects. Null where the
 * filter is not understood. Linear.
 */
export function filterNames(filter: string): readonly string[] | null {
  const reader = new FilterReader(filter);
  return reader.code("") ? reader.names : null;
}

const YQ_VERBS: ReadonlySet<string> = new Set(["e", "eval", "ea", "eval-all"]);
const IN_PLACE: ReadonlySet<string> = new Set(["-i", "--inplace", "--in-place"]);

/** A name that no file is likely to have. */
const EXPRESSION = /^(?!\/|~|\.\.)[^]*[|()[\]{}"'=*]/;

/**
 * Two programs are called yq; only what is harmless in both is accepted. The first operand may be a file or an
 * expression.
 */
function yqEffects(use: Use): readonly FoundEffect[] {
  const operands = YQ_VERBS.has(use.operands[0]?.value ?? "") ? use.operands.slice(1) : use.operands;
  const filters = use.options.flatMap(({ name, value }) =>
    name === "--expression" && value !== null ? [value] : [],
  );
  const [first, ...files] = operands;
  const unclear = first !== undefined && (first.kind !== "literal" || !EXPRESSION.test(first.value));
  const role = use.options.some(({ name }) => IN_PLACE.has(name)) ? "write" : "read";
  const read = unclear ? operands : files;
  return [
    ...read.flatMap((arg) => roleEffects(role, arg, use)),
    ...[...filters, ...operands.slice(0, 1)].flatMap((arg) => filterEffects(arg, use)),
  ];
}

/** The readers of this file, by the names that rows use. */
export const DATA_READERS: Readonly<Record<string, UseReader>> = {
  "database server": databaseServer,
  dc: dcEffects,
  envsubst: fillsFromEnvironment,
  m4: (use) => (use.operands.length === 0 ? [fromInput(use)] : []),
  "fetches what has an address": addressEffects,
  fx: fxEffects,
  mlr: mlrEffects,
  sqlite: sqlite,
  jq: jqEffects,
  yq: yqEffects,
};
