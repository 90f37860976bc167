import type { Models } from "../programs/program-models.ts";
import type { Arg, Found, Use } from "../programs/program-model.ts";
import type { List, Node, Span, Word } from "../shell/shell-syntax.ts";
import type { Assumptions } from "./assume.ts";
import type { Doubt, Effect } from "./effect.ts";
import type { Scope } from "./scope.ts";

/** Facts about the environment of the text. */
export interface World {
  readonly models: Models;
  readonly home: string;
  readonly workspace: string;
  /** Whether a program of the packages lies in `node_modules` of this folder or of one above it in the workspace. */
  installed(name: string, folder: string): boolean;
  /** Source of assumed values for the containment walk; null in the deciding walk. */
  readonly assumptions: Assumptions | null;
  /** Reads a shell text that stands inside the judged one. */
  readShell(text: string): {
    readonly tree: List;
    readonly doubts: readonly { readonly doubt: Doubt; readonly what: string; readonly span: Span }[];
  };
}

/** One command that the text runs. */
export interface Called {
  readonly words: readonly Arg[];
  readonly span: Span;
  /** Spans of its redirects and variable assignments: effects there are the shell's, not the program's. */
  readonly aside: readonly Span[];
}

/** State of one walk over one text, as seen by the functions that judge its parts. */
export interface Walk {
  readonly world: World;
  /** Appended to while walking; an inner walk may replace what it has added. */
  readonly effects: Effect[];
  readonly calls: Called[];
  /** Something was met that assumptions could resolve. */
  assumable: boolean;
  /** The bound is reached: nothing is judged more than once. */
  readonly crowded: boolean;
  add(found: Found, by: string, span: Span): void;
  doubt(doubt: Doubt, what: string, span: Span, inside?: boolean): void;
  noteFolders(folders: Scope["folders"]): void;
  readonly nested: boolean;
  /** Attributes the effects that follow to this command, until `endCommand` is called with the number that this returns. */
  beginCommand(called: Called): number;
  endCommand(outer: number): void;
  node(node: Node, scope: Scope, input: Use["input"]): Scope;
  inSubshell(body: Node, scope: Scope, input?: Use["input"]): "unknown" | "network";
  deeper(span: Span, work: () => unknown): void;
  args(words: readonly Word[], scope: Scope): readonly Arg[];
}
