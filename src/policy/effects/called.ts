import type { Arg } from "../models/model.ts";
import type { Simple, Span } from "../shell/syntax.ts";

/** One command that the text runs, as far as its words are known. */
export interface Called {
  readonly words: readonly Arg[];
  readonly span: Span;
  /** Its redirects and variables: the shell does what they say, not the program. */
  readonly aside: readonly Span[];
}

export function calledFrom({ span, redirects, assignments }: Simple, words: readonly Arg[]): Called {
  const aside =
    redirects.length + assignments.length === 0
      ? NOTHING
      : [...redirects, ...assignments].map((each) => each.span);
  return { words, span, aside };
}

const NOTHING: readonly Span[] = [];

/** Where it stands in a text around the one it was read from. */
export const relocated = ({ words, span, aside }: Called, place: (span: Span) => Span): Called => ({
  words: words.map((word) => ({ ...word, span: place(word.span) })),
  span: place(span),
  aside: aside.map(place),
});

/** The effect comes from a redirect or a variable of this command. */
export const isAside = ({ aside }: Called, [from, to]: Span): boolean =>
  aside.some((span) => span[0] === from && span[1] === to);
