import { roleEffects } from "./argument-roles.ts";
import { type Arg, type Found, isGuess, type Role, UNKNOWN, type Use, type Reader } from "./program-model.ts";

type ValueRole = Exclude<Role, "command">;

/** Options with values; with several values, each has its role. */
const VALUES: Readonly<Record<string, readonly ValueRole[]>> = {
  "--arg": ["data", "data"],
  "--argjson": ["data", "data"],
  "--slurpfile": ["data", "read"],
  "--rawfile": ["data", "read"],
  "--indent": ["data"],
  "-L": ["loads"],
  "--library-path": ["loads"],
};

const FILTER_LETTER = /^-[a-zA-Z]*f[a-zA-Z]*$/;
const BUNDLE = /^-[crjasSCMneRhV]+$/;
const FLAGS: ReadonlySet<string> = new Set(
  `--compact-output --raw-output --raw-output0 --join-output --ascii-output --slurp --sort-keys --color-output
  --monochrome-output --null-input --exit-status --raw-input --tab --unbuffered --stream --stream-errors --seq --help
  --version --build-configuration`.split(/\s+/),
);
const FILTER_FILES: ReadonlySet<string> = new Set(["-f", "--from-file"]);

const ENVIRONMENT: ReadonlySet<string> = new Set(["env", "$ENV", "strenv", "envsubst"]);
const LOADING = /^(?:import|include|modulemeta|get_search_list|load\w*|strload|system|eval)$/;

/** What a filter accesses beyond its input. */
function filterEffects(filter: Arg, use: Use): readonly Found[] {
  if (filter.kind === "dynamic") return [use.doubt("word.dynamic", filter)];
  const names = filter.kind === "literal" ? filterNames(filter.value) : null;
  if (names === null || names.some((name) => LOADING.test(name)))
    return [use.doubt("language.unknown", filter)];
  return names.some((name) => ENVIRONMENT.has(name))
    ? [{ kind: "read", path: "/proc/self/environ", span: filter.span }]
    : [];
}

function jqEffects(use: Use): readonly Found[] {
  return new JqReader(use).read();
}

class JqReader {
  private readonly found: Found[] = [];
  private readonly use: Use;
  private at = 0;
  private filterSeen = false;
  private filesFollow = true;
  private optionsEnded = false;

  constructor(use: Use) {
    this.use = use;
  }

  read(): readonly Found[] {
    const { args } = this.use;
    // Any of these words may be the filter's file, so all of them are read.
    this.filterSeen = args.some(({ value }) => FILTER_FILES.has(value) || FILTER_LETTER.test(value));
    while (this.at < args.length) {
      const arg = args[this.at++] as Arg;
      if (arg.value === "--") this.optionsEnded = true;
      else if (!this.optionsEnded && arg.value.startsWith("-") && arg.value.length > 1) this.option(arg);
      else this.operand(arg);
    }
    return this.found;
  }

  private operand(arg: Arg): void {
    const open = arg.value.charAt(0);
    const isAny = arg.kind === "dynamic" && (open === UNKNOWN || isGuess(arg));
    if (arg.loose === true || isAny) this.found.push(this.use.doubt("word.dynamic", arg));
    else if (arg.kind === "glob" && (open === "*" || open === "?" || open === "["))
      this.found.push(this.use.doubt("word.leading-glob", arg));
    if (!this.filterSeen) {
      this.filterSeen = true;
      this.found.push(...filterEffects(arg, this.use));
    } else if (this.filesFollow) this.take("read", arg);
  }

  private take(role: ValueRole, arg: Arg): void {
    this.found.push(...roleEffects(role, arg, this.use, { forced: false, recursive: false }));
  }

  private option(arg: Arg): void {
    const { value, kind } = arg;
    const roles = VALUES[value];
    if (kind !== "literal") this.found.push(this.use.doubt("word.dynamic", arg));
    else if (roles !== undefined) this.valued(roles, arg);
    else if (value === "--args" || value === "--jsonargs") this.filesFollow = false;
    else if (FILTER_FILES.has(value) || FILTER_LETTER.test(value)) this.take("loads", arg);
    else if (value.startsWith("-L")) this.take("loads", arg);
    else if (!FLAGS.has(value) && !BUNDLE.test(value)) this.found.push(this.use.doubt("option.unknown", arg));
  }

  private valued(roles: readonly ValueRole[], option: Arg): void {
    for (const role of roles) {
      const value = this.use.args[this.at++];
      if (value === undefined)
        this.found.push(this.use.doubt("option.unknown", option, `${option.value} without a value`));
      // An unquoted unknown value could become several words.
      else if (value.loose === true || value.kind === "glob")
        this.found.push(this.use.doubt("word.dynamic", value));
      if (value !== undefined) this.take(role, value);
    }
  }
}

class FilterReader {
  readonly names: string[] = [];
  private at = 0;
  private depth = 0;
  private readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  /** Reads up to the bracket that closes an interpolation, or to the end. */
  code(closing: "" | ")"): boolean {
    let open = 0;
    while (this.at < this.text.length) {
      const char = this.text.charAt(this.at);
      if (char === ")" && closing !== "" && open === 0) return true;
      if (char === "(") open += 1;
      if (char === ")") open -= 1;
      if (!this.token(char)) return false;
    }
    return closing === "";
  }

  private token(char: string): boolean {
    if (char === '"') return this.string();
    if (char === "#") return this.comment();
    if (isLetter(char) || (char === "$" && isLetter(this.text.charAt(this.at + 1)))) {
      this.name();
      return true;
    }
    this.at += 1;
    return (char >= " " && char <= "~" && char !== "\\" && char !== "`") || char === "\n" || char === "\t";
  }

  /** Versions differ in whether a backslash continues a comment. */
  private comment(): boolean {
    const newline = this.text.indexOf("\n", this.at);
    const end = newline === -1 ? this.text.length : newline;
    const comment = this.text.slice(this.at, end);
    this.at = end;
    return !comment.includes("\\");
  }

  private string(): boolean {
    this.at += 1;
    while (this.at < this.text.length) {
      const char = this.text.charAt(this.at);
      this.at += 1;
      if (char === '"') return true;
      if (char !== "\\") continue;
      const escaped = this.text.charAt(this.at);
      this.at += 1;
      if (escaped === "(" && !this.interpolation()) return false;
    }
    return false;
  }

  private interpolation(): boolean {
    if (this.depth >= MAX_DEPTH) return false;
    this.depth += 1;
    const closed = this.code(")");
    this.depth -= 1;
    this.at += 1;
    return closed;
  }

  private name(): void {
    const from = this.at;
    this.at += 1;
    while (this.at < this.text.length && this.isName(this.text.charAt(this.at))) this.at += 1;
    const field = this.text.charAt(from - 1) === "." && this.text.charAt(from - 2) !== ".";
    if (!field && !this.isKey(from)) this.names.push(this.text.slice(from, this.at));
  }

  private isName(char: string): boolean {
    return isLetter(char) || isDigit(char);
  }

  /** A key of an object: `name: value`, after the opening brace or a comma. */
  private isKey(from: number): boolean {
    let next = this.at;
    while (this.text.charAt(next) === " ") next += 1;
    if (this.text.charAt(next) !== ":" || this.text.charAt(next + 1) === ":") return false;
    let before = from - 1;
    while (before >= 0 && " \n\t".includes(this.text.charAt(before))) before -= 1;
    return before >= 0 && "{,".includes(this.text.charAt(before));
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

const VERBS: ReadonlySet<string> = new Set(["e", "eval", "ea", "eval-all"]);
const IN_PLACE: ReadonlySet<string> = new Set(["-i", "--inplace", "--in-place"]);

/** A name that no file is likely to have. */
const EXPRESSION = /^(?!\/|~|\.\.)[^]*[|()[\]{}"'=*]/;

/**
 * Two programs are called yq; only what is harmless in both is accepted. The first operand may be a file or an
 * expression.
 */
function yqEffects(use: Use): readonly Found[] {
  const operands = VERBS.has(use.operands[0]?.value ?? "") ? use.operands.slice(1) : use.operands;
  const given = use.options.flatMap(({ name, value }) =>
    name === "--expression" && value !== null ? [value] : [],
  );
  const [first, ...files] = operands;
  const unclear = first !== undefined && (first.kind !== "literal" || !EXPRESSION.test(first.value));
  const role = use.options.some(({ name }) => IN_PLACE.has(name)) ? "write" : "read";
  const read = unclear ? operands : files;
  return [
    ...read.flatMap((arg) => roleEffects(role, arg, use, { forced: false, recursive: false })),
    ...[...given, ...operands.slice(0, 1)].flatMap((arg) => filterEffects(arg, use)),
  ];
}

/** The readers of this file, by the names that rows use. */
export const JQ_READERS: Readonly<Record<string, Reader>> = {
  jq: jqEffects,
  yq: yqEffects,
};
