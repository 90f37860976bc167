import type { Doubt } from "../effects/effect.ts";
import { difference } from "./agree.ts";
import { type Flaw, flawsOf } from "./gate.ts";
import { readOwn } from "./own/read.ts";
import type { List, Span } from "./syntax.ts";
import { readUnbash } from "./unbash/read.ts";

/** Why a text is not simply what its tree says. */
export interface TextDoubt {
  readonly id: Flaw["id"] | "text.syntax" | "text.disagree";
  readonly what: string;
  readonly span: Span;
}

export interface ShellText {
  /** What is good enough to look for dangers in; an allow needs that there is no doubt. */
  readonly tree: List;
  readonly doubts: readonly TextDoubt[];
}

export function readShell(text: string): ShellText {
  const flaws = flawsOf(text);
  const { tree, errors } = readUnbash(text);
  const empty: readonly TextDoubt[] =
    tree.items.length === 0 && flaws.length === 0 && errors.length === 0
      ? [{ id: "text.empty", what: "", span: [0, text.length] }]
      : [];
  const syntax = errors.map(({ message, span }): TextDoubt => ({ id: "text.syntax", what: message, span }));
  return {
    tree,
    doubts: [...flaws, ...empty, ...syntax, ...(syntax.length > 0 ? [] : secondOpinion(text, tree))],
  };
}

/** What the other reader says against a tree. */
function secondOpinion(text: string, tree: List): readonly TextDoubt[] {
  const other = readOwn(text);
  const [error] = other.errors;
  if (error !== undefined) return [{ id: "text.disagree", what: error.message, span: error.span }];
  const found = difference(tree, other.tree);
  return found === null ? [] : [{ id: "text.disagree", ...found }];
}

/** The same for a text inside another one, as its effects. */
export function readInner(text: string): { readonly tree: List; readonly doubts: readonly InnerDoubt[] } {
  const { tree, doubts } = readShell(text);
  return {
    tree,
    doubts: doubts.map(({ id, what, span }) => ({
      doubt: "shell.unreadable",
      what: what === "" ? id : `${id}, ${what}`,
      span,
    })),
  };
}

interface InnerDoubt {
  readonly doubt: Doubt;
  readonly what: string;
  readonly span: Span;
}
