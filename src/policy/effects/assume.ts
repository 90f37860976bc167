/** Values that are assumed where only containment is asked for. */
import { isInside, lastName } from "../../core/file-names.ts";
import { resolvePath } from "../paths/normal-path.ts";
import { isBoxed } from "../paths/path-place.ts";
import type { Arg, Use } from "../programs/program-model.ts";
import type { Assignment, Compound, List, Node, WordPiece, Simple, Word } from "../shell/shell-syntax.ts";
import { BOX_LISTS } from "./environment.ts";
import {
  FILTERS,
  PRINTS_NAMES,
  PRINTS_NUMBERS,
  SET_ANY_VARIABLE,
  SET_VARIABLES,
} from "./printed.generated.ts";
import type { Assumed, Scope } from "./scope.ts";

type Words = (words: readonly Word[]) => readonly Arg[];

const NUMBER: Assumed = { kind: "literal", value: "7" };

/**
 * Values that are certain enough to say that a command stays in the box, but not to decide by: the output of `pwd`,
 * `mktemp` or `git rev-parse --show-toplevel`, numbers, and file names that a pattern or a search finds in the workspace.
 */
export class Assumptions {
  readonly #workspace: string;
  readonly #numbers: ReturnType<typeof numbersIn>;

  constructor(tree: List, workspace: string) {
    this.#workspace = workspace;
    this.#numbers = numbersIn(tree);
  }

  of(piece: WordPiece, scope: Scope, words: Words): Assumed | null {
    switch (piece.kind) {
      case "variable":
        return this.#variable(piece.name, scope);
      case "script":
        return piece.via === "<(" || piece.via === ">("
          ? null
          : printedOutput(piece.body, { scope, words, workspace: this.#workspace, quoted: piece.quoted });
      case "unknown":
        if (piece.what === "arithmetic") return this.isNumber(piece.text) ? NUMBER : null;
        return piece.what === "parameter" && piece.scripts.length === 0
          ? this.#parameter(piece.text ?? "", scope)
          : null;
      default:
        return null;
    }
  }

  /** The arithmetic text uses numbers only. */
  isNumber(text: string | undefined): boolean {
    return text !== undefined && this.#numbers.calculates(text);
  }

  /** The names that a command puts into a pipe in front of `xargs`. */
  namesFrom(part: Node, fed: Use["input"], words: Words): Use["input"] | null {
    if (typeof fed !== "string" && fed.found === true && isFilter(part)) return fed;
    const name = namesOf(part, words, this.#workspace);
    return name === null ? null : { text: `${name}\n`, span: part.span, found: true };
  }

  #variable(name: string, scope: Scope): Assumed | null {
    const known = scope.variables.get(name);
    if (known !== undefined) {
      const { kind, value } = known;
      const plain = !/\s/.test(value) && value !== "";
      return kind !== "dynamic" && plain ? { kind, value } : null;
    }
    if (/^[?!#$]$/.test(name) || this.#numbers.has(name)) return NUMBER;
    if (name === "TMPDIR") return { kind: "literal", value: "/tmp" };
    return BOX_LISTS.has(name) ? { kind: "literal", value: "/usr/lib" } : null;
  }

  /** `${x%…}` and `${x#…}` give a part of a name; `${x:-text}` gives the name or the text. */
  #parameter(text: string, scope: Scope): Assumed | null {
    const [, name = "", operator, rest = ""] =
      /^\$\{(\w+)(##?|%%?|:?[-+])([\w./*@,:$-]*)\}$/.exec(text) ?? [];
    const known = operator === undefined ? null : this.#variable(name, scope);
    if (operator === undefined || known === null) return null;
    if (/^:?-$/.test(operator)) return this.#defaultValue(name, known, rest);
    if (/^:?\+$/.test(operator))
      return BOX_LISTS.has(name) && rest === `:$${name}` ? { kind: "literal", value: ":/usr/lib" } : null;
    return rest.includes("$") ? null : withoutPart(known, operator, rest);
  }

  #defaultValue(name: string, known: Assumed | null, rest: string): Assumed | null {
    const usual = (name === "TMPDIR" && rest === "/tmp") || (BOX_LISTS.has(name) && rest === "");
    return usual ? known : null;
  }
}

function withoutPart({ kind, value }: Assumed, operator: string, pattern: string): Assumed | null {
  const slash = value.lastIndexOf("/");
  if (operator === "##") return pattern === "*/" ? withName(kind, value.slice(slash + 1)) : null;
  if (operator === "#") return null;
  if (pattern === "/*") return operator === "%" && slash > 0 ? { kind, value: value.slice(0, slash) } : null;
  // Only the end of its last name is removed, so the result stays in the same folder.
  if (!/^[.\w*-]+$/.test(pattern) || pattern.includes("/")) return null;
  const literal = !pattern.includes("*") && value.endsWith(pattern);
  return withName(kind, literal ? value.slice(0, -pattern.length) : value);
}

const withName = (kind: Arg["kind"], value: string): Assumed | null =>
  value === "" || /(?:^|\/)\.{0,2}$/.test(value) ? null : { kind, value };

interface PrintContext {
  readonly scope: Scope;
  readonly words: Words;
  readonly workspace: string;
  readonly quoted: boolean;
}

/** The output of a command substitution, where it is certain whatever the files contain. */
function printedOutput(body: Node, at: PrintContext): Assumed | null {
  if (printsNumber(wordsOf(lastOf(body)))) return PRINTED_NUMBER;
  const last = lastOf(body);
  const whole = simpleOf(body);
  const [name = "", ...texts] = wordsOf(whole ?? last);
  if (whole !== null && Object.hasOwn(SINGLE_COMMANDS, name))
    return SINGLE_COMMANDS[name as keyof typeof SINGLE_COMMANDS](texts, whole, at);
  const text = whole === null ? null : hereDocumentText(whole, at);
  if (text !== null) return literal(text);
  if (at.quoted) return null;
  const found = namesOf(body, at.words, at.workspace);
  return found === null ? null : { kind: "glob", value: found };
}

const PRINTED_NUMBER: Assumed = { kind: "literal", value: "7" };
const literal = (value: string): Assumed => ({ kind: "literal", value });

type Prints = (texts: readonly string[], node: Simple, at: PrintContext) => Assumed | null;

const SINGLE_COMMANDS: Readonly<
  Record<"pwd" | "git" | "mktemp" | "dirname" | "basename" | "date" | "nproc", Prints>
> = {
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
    printedPath(node, at, (value) =>
      value.includes("/") ? value.replace(/(?<=.)\/[^/]*$|[^/]*$/, "") : ".",
    ),
  basename: (texts, node, at) =>
    printedPath(node, at, (value) => {
      const name = lastName(value);
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
function hereDocumentText(
  { words, redirects: [redirect, ...more] }: Simple,
  { words: read, quoted }: PrintContext,
): string | null {
  if (words.length !== 1 || redirect?.operator !== "<<" || more.length > 0 || !quoted) return null;
  const [cat, text] = read([...words, redirect.target]);
  return cat?.value === "cat" && text?.kind === "literal" ? text.value.replace(/\n+$/, "") : null;
}

function printedPath(node: Simple, { words }: PrintContext, part: (value: string) => string): Assumed | null {
  const [, arg] = words(node.words);
  if (arg === undefined || arg.kind === "dynamic" || arg.value.startsWith("-")) return null;
  const value = part(arg.value);
  return value === "" || value === ".." || value.endsWith("/..") ? null : { kind: arg.kind, value };
}

/** The last command of a substitution: its output is the substitution's. */
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

/** Words of a command as texts, with `$` in place of every piece that is not plain text. */
const wordsOf = (node: Simple | null): readonly string[] => (node?.words ?? []).map(textOf);

interface Numbers {
  /** The variable is always set to a number in this text. */
  has(name: string): boolean;
  /** The arithmetic uses only such variables, so no subscript in it can run a command. */
  calculates(text: string): boolean;
}

const NAME = /[A-Za-z_]\w*/g;
const PLAIN = /^[\w\s$+\-*/%<>=!&|?:(),;^~]*$/;

/** Finds the variables that only ever hold numbers, by all assignments in the text. */
function numbersIn(tree: Node): Numbers {
  const isNumberByName = new Map<string, boolean>();
  let any = false;
  const note = (name: string, isNumber: boolean): void => {
    isNumberByName.set(name, isNumber && isNumberByName.get(name) !== false);
  };
  const visit = (part: unknown): void => {
    if (typeof part !== "object" || part === null) return;
    any ||= noteNumbers(part, note);
    for (const inner of Object.values(part)) if (typeof inner === "object") visit(inner);
  };
  visit(tree);
  const has = (name: string): boolean => !any && isNumberByName.get(name) === true;
  // A lower-case name that the text never sets is empty: names in the environment are in capitals.
  const isTame = (name: string): boolean => !any && (isNumberByName.get(name) ?? /^[a-z]\w*$/.test(name));
  return {
    has,
    calculates: (text) => {
      const inner = text.replace(/^\$?\(\(|\)\)$/g, "");
      return PLAIN.test(inner) && !/\$(?![A-Za-z_])/.test(inner) && (inner.match(NAME) ?? []).every(isTame);
    },
  };
}

/** Returns whether any variable may have been set. */
function noteNumbers(part: object, note: NoteNumber): boolean {
  if ("append" in part) noteAssignment(part as Assignment, note);
  if ("what" in part && (part.what === "for" || part.what === "select")) noteLoop(part as Compound, note);
  return "kind" in part && part.kind === "simple" && noteCommand((part as Simple).words, note);
}

type NoteNumber = (name: string, isNumber: boolean) => void;

const noteAssignment = ({ name, value, others }: Assignment, note: NoteNumber): void =>
  note(name, others.length === 0 && value !== null && isNumeric(value));

function noteLoop({ name, words }: Compound, note: NoteNumber): void {
  if (name !== null) note(name, words !== null && words.every(isNumeric));
}

function noteCommand(words: readonly Word[], note: NoteNumber): boolean {
  const [name = "", ...rest] = words.map(textOf);
  if (SETS.has(name))
    for (const word of rest) {
      if (word.includes("$") && !word.includes("=")) return true;
      note(word.replace(/\+?=.*$/s, ""), false);
    }
  return SETS_ANY.has(name);
}

const isNumeric = ({ pieces: [piece, ...more] }: Word): boolean =>
  more.length === 0 && piece !== undefined && isNumberPiece(piece);

function isNumberPiece(piece: WordPiece): boolean {
  switch (piece.kind) {
    case "text":
      return /^-?\d+$/.test(piece.text);
    case "variable":
      return /^[?!#$]$/.test(piece.name);
    case "script":
      return printsNumber(wordsOf(lastOf(piece.body)));
    case "unknown":
      return piece.what === "arithmetic";
    default:
      return false;
  }
}

/** Placeholder for file names that a search finds. */
const FOUND = "./*found*";

/**
 * A pattern for the file names that a command prints; null where it prints anything else, or names outside of the
 * box.
 */
function namesOf(body: Node, words: Words, workspace: string): string | null {
  const node = listerOf(body);
  const [name, ...args] = node === null ? [] : words(node.words);
  if (name?.kind !== "literal" || !args.every((arg) => isNear(arg, workspace))) return null;
  const starts = placesOfNames(name.value, args);
  if (starts === null) return null;
  const [only, ...more] = starts;
  return only?.value.startsWith("/") === true && more.length === 0 ? `${only.value}/*found*` : FOUND;
}

/** The word, read as a path, does not lead outside of the box. */
function isNear({ kind, value }: Arg, workspace: string): boolean {
  if (kind === "dynamic" || /(?:^|[/=])\.\.(?:\/|$)|[=]~/.test(value)) return false;
  const [path] = /(?:(?<==)|^)\/.*$/.exec(value) ?? [];
  return path === undefined || isBoxed(resolvePath(workspace, path), workspace);
}

/** A file name that starts with a dash could be taken for an option; `./` in front makes it a path. */
export function namedByVariable(arg: Arg, { folders }: Scope, workspace: string): Arg {
  const near = folders.every((folder) => folder !== null && isBoxed(folder, workspace));
  return near && arg.kind === "glob" && /^[*?[]/.test(arg.value) ? { ...arg, value: `./${arg.value}` } : arg;
}

/** The command that lists names, behind filters that only drop or sort lines. */
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

export const isFilter = (node: Node): boolean => filtersLines(textsOf(node));

export const isXargs = (node: Node): boolean =>
  node.kind === "simple" && node.words[0] !== undefined && textOf(node.words[0]) === "xargs";

const textsOf = (node: Node): readonly string[] => (node.kind === "simple" ? node.words.map(textOf) : []);

function textOf({ pieces }: Word): string {
  const [only] = pieces;
  if (pieces.length === 1 && only?.kind === "text") return only.text;
  return pieces.map((piece) => (piece.kind === "text" ? piece.text : "$")).join("");
}

/* What the tables of `printed.yaml` say of a command, by its words. */

/** Commands that set the variables they name. */
const SETS: ReadonlySet<string> = new Set(SET_VARIABLES);
/** After these commands any variable may have any value. */
const SETS_ANY: ReadonlySet<string> = new Set(SET_ANY_VARIABLE);

const fits = (pattern: string | undefined, text: string, otherwise: boolean): boolean =>
  pattern === undefined ? otherwise : new RegExp(pattern).test(text);

const rowOf = <Row>(table: Readonly<Record<string, Row>>, name: string): Row | undefined =>
  Object.hasOwn(table, name) ? table[name] : undefined;

/** The command prints a number, or fails and prints nothing. */
export function printsNumber([name = "", ...rest]: readonly string[]): boolean {
  const row = rowOf(PRINTS_NUMBERS, name);
  const words = rest.join(" ");
  return row !== undefined && fits(row.words, words, true) && !fits(row["but not"], words, false);
}

/**
 * The places below which the command lists file names, one per line. Null: it prints something else. Empty: the current
 * folder.
 */
export function placesOfNames(name: string, args: readonly Arg[]): readonly Arg[] | null {
  const own = name.includes(" ") ? undefined : rowOf(PRINTS_NAMES, name);
  const row = own ?? rowOf(PRINTS_NAMES, `${name} ${args[0]?.value ?? ""}`);
  if (row === undefined) return null;
  const words = own === undefined ? args.slice(1) : args;
  const has = (pattern: string): boolean => words.some(({ value }) => fits(pattern, value, false));
  if ((row.with !== undefined && !has(row.with)) || (row.without !== undefined && has(row.without)))
    return null;
  if (row.below === "folder") return [];
  const end = words.findIndex(({ value }) => fits(row["options end"], value, false));
  const operands = end === -1 ? words.filter(({ value }) => !value.startsWith("-")) : words.slice(0, end);
  return row.below === "some operands" && operands.length === 0 ? null : operands;
}

/** The command prints its input with lines sorted or left out. */
export function filtersLines([name = "", ...rest]: readonly string[]): boolean {
  const row = rowOf(FILTERS, name);
  if (row === undefined) return false;
  const operands = rest.filter((text) => !text.startsWith("-")).length;
  return (
    rest.every((text) => fits(row.every, text, true) && !fits(row.without, text, false)) &&
    (row.operands ?? operands) === operands
  );
}
