/**
 * The tree both readers make. What it cannot express, a reader reports as not readable.
 *
 * Spans of words and assignments are compared, spans of nodes and redirects are not. Words with an expanded
 * brace carry the span of the source word. Every body is a `List`, only a function's body is the compound
 * itself; the root is a `List`, without items when the text holds no command.
 */
import { quote } from "shell-quote";

/** Offsets into the judged text, UTF-16, end exclusive. */
export type Span = readonly [start: number, end: number];

/**
 * What makes up a word. Brace expansions are done: a word of the source may become several words here, or none (`{,}`
 * has only empty ones). Braces are expanded in the words of a command and in the list of `for` and `select`; elsewhere
 * they are text, and an error in a redirect's target.
 *
 * Pieces have one form: neighbouring texts are one text, neighbouring globs are one glob, no text is empty.
 */
export type WordPiece =
  /** Quotes and backslashes are removed. */
  | { readonly kind: "text"; readonly text: string }
  /**
   * An unquoted `*`, `?` or `[…]` in any position, also where bash takes it literally. A `[` without its `]` in the
   * word is text; a bracket that holds quotes, backslashes or expansions is an error, and so is an extended pattern:
   * `bash -c` reads none.
   */
  | { readonly kind: "glob"; readonly text: string }
  /** An unquoted `~` at the beginning of a word, alone or before `/`; after the `=` and `:` of `name=value` too. */
  | { readonly kind: "home" }
  /** `$name` or `${name}`, digits and specials too. */
  | { readonly kind: "variable"; readonly name: string; readonly quoted: boolean }
  /**
   * A command or process substitution. When backslashes were removed from a backtick's body, everything in the body has
   * the span of the whole backtick.
   */
  | {
      readonly kind: "script";
      readonly via: "$(" | "`" | "<(" | ">(";
      readonly body: Node;
      readonly quoted: boolean;
    }
  /**
   * Any other expansion. `scripts` are the command substitutions in it, at any depth and in the order of the source,
   * without those inside another one; `quoted`: whether quotes stand around it. `tilde` is `~user`, `~+` or `~-`, up to
   * the next `/`.
   */
  | {
      readonly kind: "unknown";
      readonly what: "parameter" | "arithmetic" | "locale" | "tilde";
      readonly quoted: boolean;
      readonly scripts: readonly Node[];
      /** The user of `~user`. Only the first reader sets it. */
      readonly user?: string;
      /** A value in it may be run as code: `${x@P}`, `${!x}`, arithmetic with names. Only the first reader sets it. */
      readonly evaluates?: boolean;
      /** Names of variables in it, perhaps with some other words. Only the first reader sets it. */
      readonly variables?: readonly string[];
      /** As written. Only the first reader sets it. */
      readonly text?: string;
    };

export interface Word {
  readonly span: Span;
  /** None for `''`, nor for the value of `a=`. */
  readonly pieces: readonly WordPiece[];
}

export interface Assignment {
  readonly span: Span;
  readonly name: string;
  /** Null for anything but plain `name=value`: arrays, subscripts. Their words are in `others`. */
  readonly value: Word | null;
  readonly append: boolean;
  readonly others: readonly Word[];
}

export type RedirectOperator = ">" | ">>" | "<" | "<>" | "<&" | ">&" | ">|" | "&>" | "&>>" | "<<<" | "<<";

export interface Redirect {
  readonly span: Span;
  readonly operator: RedirectOperator;
  /** As written; null for the operator's default. `{name}` gives the name. */
  readonly descriptor: number | string | null;
  /** For `<<` (and `<<-`) the body, tabs removed, as one word, from its first line to the delimiter's. */
  readonly target: Word;
}

export interface Simple {
  readonly kind: "simple";
  readonly span: Span;
  readonly assignments: readonly Assignment[];
  readonly words: readonly Word[];
  readonly redirects: readonly Redirect[];
}

/**
 * Two parts or more. `|&` is `|` with `2>&1` as the last redirect of the part before it; that redirect has the spans of
 * its command. `time`, also `time -p`, and `!` before a pipeline leave no trace; without a command after them they are
 * errors.
 */
export interface Pipeline {
  readonly kind: "pipeline";
  readonly span: Span;
  readonly parts: readonly Node[];
}

export interface List {
  readonly kind: "list";
  readonly span: Span;
  /** What follows each item; the last one's is ";" or "&". A newline counts as ";". */
  readonly items: readonly { readonly node: Node; readonly then: "&&" | "||" | ";" | "&" }[];
}

export interface Compound {
  readonly kind: "compound";
  readonly what:
    | "group"
    /** The command after `!`. */
    | "not"
    | "subshell"
    | "if"
    | "while"
    | "until"
    | "for"
    | "select"
    | "case"
    | "function"
    | "coproc"
    | "test"
    | "arithmetic";
  readonly span: Span;
  /** The variable of `for` and `select`, the name of `function`. */
  readonly name: string | null;
  /**
   * The list of `for` (null: the script's own arguments), subject then patterns of `case`, operands of `[[ ]]`
   * in the order of the source.
   */
  readonly words: readonly Word[] | null;
  /**
   * Lists; the body of `function`, `coproc` and `not` is the command itself. In the order of the source: conditions and
   * branches of `if`, condition and body of `while`, arms of `case` (a list without items for an empty one), the
   * command substitutions of an arithmetic; those of `for ((…))` stand before its body.
   */
  readonly bodies: readonly Node[];
  readonly redirects: readonly Redirect[];
  /** In `[[ ]]`: operators such as `-eq` and `-v` take names as numbers or variables. Only the first reader sets it. */
  readonly evaluates?: boolean;
}

export type Node = Simple | Pipeline | List | Compound;

/** Result of a reader. With errors, `tree` is partial and only good for finding dangers. */
export interface ShellReading {
  readonly tree: List;
  /** A message that starts with "unsupported" is about a limit of the reader, any other about the syntax. */
  readonly errors: readonly { readonly message: string; readonly span: Span }[];
}

/** A shell text of exactly these words. */
export function shellText(words: readonly string[]): string {
  return quote(words);
}
