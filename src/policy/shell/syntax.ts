/** The tree both readers make. What it cannot express, a reader reports as not readable. */

/** Offsets into the judged text, UTF-16, end exclusive. */
export type Span = readonly [start: number, end: number];

/** What makes up a word. Brace expansions are done: a word of the source may stand here as several words. */
export type Piece =
  /** Quotes and backslashes are done. Neighbouring texts are one piece; no text is empty. */
  | { readonly kind: "text"; readonly text: string }
  /** `*`, `?`, `[…]` or an extended pattern, unquoted. */
  | { readonly kind: "glob"; readonly text: string }
  /** An unquoted `~` at the beginning of a word, alone or before `/`. */
  | { readonly kind: "home" }
  /** `$name` or `${name}`, digits and specials too. */
  | { readonly kind: "variable"; readonly name: string; readonly quoted: boolean }
  /** A command or process substitution. */
  | {
      readonly kind: "script";
      readonly via: "$(" | "`" | "<(" | ">(";
      readonly body: Node;
      readonly quoted: boolean;
    }
  /** Any other expansion; the scripts inside it are kept, as they run. */
  | {
      readonly kind: "unknown";
      readonly what: "parameter" | "arithmetic" | "locale" | "tilde";
      readonly quoted: boolean;
      readonly scripts: readonly Node[];
      /** A value in it may itself be run: `${x@P}`, `${!x}`, arithmetic with names. Only the first reader tells. */
      readonly evaluates?: boolean;
    };

export interface Word {
  readonly span: Span;
  /** None for `''`. */
  readonly pieces: readonly Piece[];
}

export interface Assignment {
  readonly span: Span;
  readonly name: string;
  /** Null for what is no plain `name=value`: arrays, subscripts. Their words are in `others`. */
  readonly value: Word | null;
  readonly append: boolean;
  readonly others: readonly Word[];
}

export type RedirectOperator = ">" | ">>" | "<" | "<>" | "<&" | ">&" | ">|" | "&>" | "&>>" | "<<<" | "<<";

export interface Redirect {
  readonly span: Span;
  readonly operator: RedirectOperator;
  /** As written; null where the operator's own default holds. `{name}` gives the name. */
  readonly descriptor: number | string | null;
  /** For `<<` (and `<<-`) the body, tabs removed, as one word: quoted text when its delimiter was quoted. */
  readonly target: Word;
}

export interface Simple {
  readonly kind: "simple";
  readonly span: Span;
  readonly assignments: readonly Assignment[];
  readonly words: readonly Word[];
  readonly redirects: readonly Redirect[];
}

/** `|&` is `|` with `2>&1` as the last redirect of what stands before it; that redirect's spans are those of its command. `!` and `time` leave no trace. */
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
  /** The list of `for` (null: the script's own arguments), subject then patterns of `case`, words of `[[ ]]`. */
  readonly words: readonly Word[] | null;
  /** Lists; the body of `function` and `coproc` is the command itself. In the order of the source: conditions and branches of `if`, condition and body of `while`, arms of `case`, what an arithmetic runs. */
  readonly bodies: readonly Node[];
  readonly redirects: readonly Redirect[];
}

export type Node = Simple | Pipeline | List | Compound;

/** A reader's answer. On errors `tree` is what was recovered, and good only for finding dangers. */
export interface Reading {
  readonly tree: List;
  readonly errors: readonly { readonly message: string; readonly span: Span }[];
}
