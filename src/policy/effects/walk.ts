import type { Models } from "../programs/program-models.ts";
import type { Arg, Found, Use } from "../programs/program-model.ts";
import type { List, Node, Span, Word } from "../shell/shell-syntax.ts";
import type { Assumptions } from "./assume.ts";
import type { Doubt, Effect } from "./effect.ts";
import type { Scope } from "./scope.ts";

/** What the walk needs to know of the world around the text. */
export interface World {
  readonly models: Models;
  readonly home: string;
  readonly workspace: string;
  /** What may be taken for known where only containment is asked for; null where it decides. */
  readonly assumptions: Assumptions | null;
  /** A text that a shell runs inside the judged one. */
  readShell(text: string): {
    readonly tree: List;
    readonly doubts: readonly { readonly doubt: Doubt; readonly what: string; readonly span: Span }[];
  };
}

/** One command that the text runs, as far as its words are known. */
export interface Called {
  readonly words: readonly Arg[];
  readonly span: Span;
  /** Its redirects and variables: the shell does what they say, not the program. */
  readonly aside: readonly Span[];
}

/** One walk over one text, as the readers of its parts see it. */
export interface Walk {
  readonly world: World;
  /** Its readers add to both, and take back what they replace. */
  readonly effects: Effect[];
  readonly calls: Called[];
  /** Something was met that assumptions know more of. */
  assumable: boolean;
  /** Nothing more is looked at several times. */
  readonly crowded: boolean;
  add(found: Found, by: string, span: Span): void;
  doubt(doubt: Doubt, what: string, span: Span, inside?: boolean): void;
  went(folders: Scope["folders"]): void;
  within<T>(called: Called, work: () => T): T;
  node(node: Node, scope: Scope, input: Use["input"]): Scope;
  apart(body: Node, scope: Scope, input?: Use["input"]): "unknown" | "network";
  deeper<T>(span: Span, otherwise: T, work: () => T): T;
  args(words: readonly Word[], scope: Scope): readonly Arg[];
}
