import { isInside, resolvePath } from "../paths/normal-path.ts";
import type { Arg, Use } from "../programs/program-model.ts";
import type { Assignment, Compound, List, Node, Piece, Simple, Word } from "../shell/shell-syntax.ts";
import type { Scope } from "./scope.ts";
import { isBoxed } from "./tools.ts";

/** What a piece of a word stands for: this, or something that leads to the same places. */
export type Assumed = Pick<Arg, "kind" | "value">;
type Words = (words: readonly Word[]) => readonly Arg[];

const NUMBER: Assumed = { kind: "literal", value: "7" };

/**
 * What is certain enough to say that a command stays in the box, and not certain enough to decide by: what `pwd`, `mktemp`
 * or `git rev-parse --show-toplevel` print, numbers, names of files that a pattern or a search finds in the workspace.
 */
export class Assumptions {
  private readonly workspace: string;
  private readonly numbers: ReturnType<typeof numbersIn>;

  constructor(tree: List, workspace: string) {
    this.workspace = workspace;
    this.numbers = numbersIn(tree);
  }

  of(piece: Piece, scope: Scope, words: Words): Assumed | null {
    switch (piece.kind) {
      case "variable":
        return this.variable(piece.name, scope);
      case "script":
        return piece.via === "<(" || piece.via === ">("
          ? null
          : printed(piece.body, { scope, words, workspace: this.workspace, quoted: piece.quoted });
      case "unknown":
        if (piece.what === "arithmetic") return this.isNumber(piece.text) ? NUMBER : null;
        return piece.what === "parameter" && piece.scripts.length === 0
          ? this.parameter(piece.text ?? "", scope)
          : null;
      default:
        return null;
    }
  }

  /** Calculates with nothing but numbers. */
  isNumber(text: string | undefined): boolean {
    return text !== undefined && this.numbers.calculates(text);
  }

  /** What goes into a pipe in front of `xargs`. */
  namesFrom(part: Node, fed: Use["input"], words: Words): Use["input"] | null {
    if (typeof fed !== "string" && fed.found === true && isFilter(part)) return fed;
    const name = namesOf(part, words, this.workspace);
    return name === null ? null : { text: `${name}\n`, span: part.span, found: true };
  }

  private variable(name: string, scope: Scope): Assumed | null {
    const known = scope.variables.get(name);
    if (known !== undefined) {
      const { kind, value } = known;
      const plain = !/\s/.test(value) && value !== "";
      return kind !== "dynamic" && plain ? { kind, value } : null;
    }
    if (/^[?!#$]$/.test(name) || this.numbers.has(name)) return NUMBER;
    if (name === "TMPDIR") return { kind: "literal", value: "/tmp" };
    return SYSTEM_LISTS.has(name) ? { kind: "literal", value: "/usr/lib" } : null;
  }

  /** `${x%…}`, `${x#…}`: a part of a name. `${x:-text}`: this or that. */
  private parameter(text: string, scope: Scope): Assumed | null {
    const [, name = "", operator, rest = ""] =
      /^\$\{(\w+)(##?|%%?|:?[-+])([\w./*@,:$-]*)\}$/.exec(text) ?? [];
    const known = operator === undefined ? null : this.variable(name, scope);
    if (operator === undefined || known === null) return null;
    if (/^:?-$/.test(operator)) return this.either(name, known, rest);
    if (/^:?\+$/.test(operator))
      return SYSTEM_LISTS.has(name) && rest === `:$${name}` ? { kind: "literal", value: ":/usr/lib" } : null;
    return rest.includes("$") ? null : trimmed(known, operator, rest);
  }

  private either(name: string, known: Assumed | null, rest: string): Assumed | null {
    const usual = (name === "TMPDIR" && rest === "/tmp") || (SYSTEM_LISTS.has(name) && rest === "");
    return usual ? known : null;
  }
}

/** The box starts with its own folders in them. */
const SYSTEM_LISTS = new Set([
  "PATH",
  "PYTHONPATH",
  "NODE_PATH",
  "LD_LIBRARY_PATH",
  "PKG_CONFIG_PATH",
  "CPATH",
  "LIBRARY_PATH",
  "PERL5LIB",
  "RUBYLIB",
  "CLASSPATH",
  "MANPATH",
]);

function trimmed({ kind, value }: Assumed, operator: string, pattern: string): Assumed | null {
  const slash = value.lastIndexOf("/");
  if (operator === "##") return pattern === "*/" ? named(kind, value.slice(slash + 1)) : null;
  if (operator === "#") return null;
  if (pattern === "/*") return operator === "%" && slash > 0 ? { kind, value: value.slice(0, slash) } : null;
  // The end of its last name goes, so that it stays in its folder.
  if (!/^[.\w*-]+$/.test(pattern) || pattern.includes("/")) return null;
  const literal = !pattern.includes("*") && value.endsWith(pattern);
  return named(kind, literal ? value.slice(0, -pattern.length) : value);
}

const named = (kind: Arg["kind"], value: string): Assumed | null =>
  value === "" || /(?:^|\/)\.{0,2}$/.test(value) ? null : { kind, value };

interface At {
  readonly scope: Scope;
  readonly words: Words;
  readonly workspace: string;
  readonly quoted: boolean;
}

/** What a substitution puts into the text, where that is certain whatever the files hold. */
function printed(body: Node, at: At): Assumed | null {
  if (printsNumber(body)) return PRINTED_NUMBER;
  const last = lastOf(body);
  const whole = simpleOf(body);
  const [name = "", ...texts] = wordsOf(whole ?? last);
  if (whole !== null && name in ALONE) return ALONE[name as keyof typeof ALONE](texts, whole, at);
  const text = whole === null ? null : catted(whole, at);
  if (text !== null) return literal(text);
  if (at.quoted) return null;
  const found = namesOf(body, at.words, at.workspace);
  return found === null ? null : { kind: "glob", value: found };
}

const PRINTED_NUMBER: Assumed = { kind: "literal", value: "7" };
const literal = (value: string): Assumed => ({ kind: "literal", value });

type Prints = (texts: readonly string[], node: Simple, at: At) => Assumed | null;

const ALONE: Readonly<Record<"pwd" | "git" | "mktemp" | "dirname" | "basename" | "date" | "nproc", Prints>> =
  {
    pwd: (texts, _, { scope: { folders } }) => {
      const [folder, ...others] = folders;
      return texts.every((text) => text === "-P" || text === "-L") &&
        typeof folder === "string" &&
        others.length === 0
        ? literal(folder)
        : null;
    },
    git: (texts, _, { scope: { folders }, workspace }) => {
      const inside = folders.every((folder) => folder !== null && isInside(workspace, folder));
      const words = texts.join(" ");
      if (words === "rev-parse --show-toplevel") return inside ? literal(workspace) : null;
      return /^rev-parse (?:--short )?HEAD$/.test(words) ? literal("0a1b2c3") : null;
    },
    mktemp: (texts) => {
      const operands = texts.filter((text) => !/^-[dqut]+$/.test(text));
      const [template, ...more] = operands;
      if (template === undefined) return literal("/tmp/tmp.XXXXXXXXXX");
      if (more.length > 0 || template.startsWith("-") || template.includes("$")) return null;
      if (template.startsWith("/")) return literal(template);
      return texts.some((text) => /^-[dqu]*t/.test(text)) && !template.includes("/")
        ? literal(`/tmp/${template}`)
        : null;
    },
    dirname: (_, node, at) =>
      namedByPrinting(node, at, (value) =>
        value.includes("/") ? value.replace(/(?<=.)\/[^/]*$|[^/]*$/, "") : ".",
      ),
    basename: (texts, node, at) =>
      namedByPrinting(node, at, (value) => {
        const name = value.slice(value.lastIndexOf("/") + 1);
        const [, suffix = ""] = texts;
        return suffix !== "" && name.endsWith(suffix) ? name.slice(0, -suffix.length) : name;
      }),
    date: ([format, ...more]) =>
      format !== undefined && more.length === 0 && /^\+(?:%[YmdHMSsNjuVyeIpBba]|[\w.:-])+$/.test(format)
        ? literal(format.slice(1).replaceAll(/%\w/g, "7"))
        : null,
    nproc: () => PRINTED_NUMBER,
  };

/** `cat <<'EOF'`: the text itself. */
function catted(
  { words, redirects: [redirect, ...more] }: Simple,
  { words: read, quoted }: At,
): string | null {
  if (words.length !== 1 || redirect?.operator !== "<<" || more.length > 0 || !quoted) return null;
  const [cat, text] = read([...words, redirect.target]);
  return cat?.value === "cat" && text?.kind === "literal" ? text.value.replace(/\n+$/, "") : null;
}

function namedByPrinting(node: Simple, { words }: At, part: (value: string) => string): Assumed | null {
  const [, arg] = words(node.words);
  if (arg === undefined || arg.kind === "dynamic" || arg.value.startsWith("-")) return null;
  const value = part(arg.value);
  return value === "" || value === ".." || value.endsWith("/..") ? null : { kind: arg.kind, value };
}

/** It prints a number, or fails and prints nothing. */
function printsNumber(body: Node): boolean {
  const [name, ...texts] = wordsOf(lastOf(body));
  const words = texts.join(" ");
  switch (name) {
    case "nproc":
      return true;
    case "date":
      return words === "+%s" || words === "+%s%N";
    case "wc":
      return /^-[lwcm]$/.test(words);
    case "id":
      return words === "-u" || words === "-g";
    case "grep":
      return /^-[a-zA-Z]*c/.test(words) && !/(?:^| )-[a-zA-Z]*[rRH]/.test(words);
    case "stat":
      return /^(?:-c|-f) ?%[szYX] /.test(words);
    default:
      return false;
  }
}

/** The last command of a substitution: what it prints is what is put there. */
function lastOf(body: Node): Simple | null {
  if (body.kind === "simple") return body;
  if (body.kind === "pipeline") {
    const last = body.parts.at(-1);
    return last === undefined ? null : lastOf(last);
  }
  if (body.kind !== "list") return null;
  const [only, ...more] = body.items;
  return only !== undefined && more.length === 0 ? lastOf(only.node) : null;
}

function simpleOf(body: Node): Simple | null {
  if (body.kind === "simple") return body;
  if (body.kind !== "list") return null;
  const [only, ...more] = body.items;
  return only !== undefined && more.length === 0 ? simpleOf(only.node) : null;
}

/** The words of a command; `$` in one that is not a plain text. */
const wordsOf = (node: Simple | null): readonly string[] =>
  (node?.words ?? []).map(({ pieces }) =>
    pieces.map((piece) => (piece.kind === "text" ? piece.text : "$")).join(""),
  );

interface Numbers {
  /** A variable that holds nothing but a number, wherever it is read. */
  has(name: string): boolean;
  /** Arithmetic over such variables alone: nothing in it can hold a subscript to run. */
  calculates(text: string): boolean;
}

/** Commands that set the variables they name, to what nobody knows. */
const SETS = new Set(
  "read mapfile readarray declare typeset local getopts let printf export readonly unset select".split(" "),
);
/** After these any variable may hold anything. */
const SETS_ANY = new Set(["eval", "source", "."]);

const NAME = /[A-Za-z_]\w*/g;
const PLAIN = /^[\w\s$+\-*/%<>=!&|?:(),;^~]*$/;

/** Which variables of a text are numbers, by all that the text ever puts into them. */
function numbersIn(tree: Node): Numbers {
  const told = new Map<string, boolean>();
  let any = false;
  const tell = (name: string, isNumber: boolean): void => {
    told.set(name, isNumber && told.get(name) !== false);
  };
  const look = (part: unknown): void => {
    if (typeof part !== "object" || part === null) return;
    any ||= toldBy(part, tell);
    for (const inner of Object.values(part)) if (typeof inner === "object") look(inner);
  };
  look(tree);
  const has = (name: string): boolean => !any && told.get(name) === true;
  // A small name that the text never sets is empty: the environment's names are large.
  const isTame = (name: string): boolean => !any && (told.get(name) ?? /^[a-z]\w*$/.test(name));
  return {
    has,
    calculates: (text) => {
      const inner = text.replace(/^\$?\(\(|\)\)$/g, "");
      return PLAIN.test(inner) && !/\$(?![A-Za-z_])/.test(inner) && (inner.match(NAME) ?? []).every(isTame);
    },
  };
}

/** Answers whether anything may be set. */
function toldBy(part: object, tell: Tell): boolean {
  if ("append" in part) assigned(part as Assignment, tell);
  if ("what" in part && (part.what === "for" || part.what === "select")) looped(part as Compound, tell);
  return "kind" in part && part.kind === "simple" && commanded((part as Simple).words, tell);
}

type Tell = (name: string, isNumber: boolean) => void;

const assigned = ({ name, value, others }: Assignment, tell: Tell): void =>
  tell(name, others.length === 0 && value !== null && isNumeric(value));

function looped({ name, words }: Compound, tell: Tell): void {
  if (name !== null) tell(name, words !== null && words.every(isNumeric));
}

function commanded(words: readonly Word[], tell: Tell): boolean {
  const [name = "", ...rest] = words.map(({ pieces }) =>
    pieces.map((piece) => (piece.kind === "text" ? piece.text : "$")).join(""),
  );
  if (SETS.has(name))
    for (const word of rest) {
      if (word.includes("$") && !word.includes("=")) return true;
      tell(word.replace(/\+?=.*$/s, ""), false);
    }
  return SETS_ANY.has(name);
}

const isNumeric = ({ pieces: [piece, ...more] }: Word): boolean =>
  more.length === 0 && piece !== undefined && isNumberPiece(piece);

function isNumberPiece(piece: Piece): boolean {
  switch (piece.kind) {
    case "text":
      return /^-?\d+$/.test(piece.text);
    case "variable":
      return /^[?!#$]$/.test(piece.name);
    case "script":
      return printsNumber(piece.body);
    case "unknown":
      return piece.what === "arithmetic";
    default:
      return false;
  }
}

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
function namesOf(body: Node, words: Words, workspace: string): string | null {
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
export function namedByVariable(arg: Arg, { folders }: Scope, workspace: string): Arg {
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
