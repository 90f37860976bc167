import type { Span } from "./syntax.ts";

export interface Flaw {
  readonly id: "text.empty" | "text.control" | "text.invisible" | "text.invalid" | "text.limit";
  readonly what: string;
  readonly span: Span;
}

/** Longer ones are looked through for dangers, and never allowed. */
const MOST_CHARACTERS = 10_000;

const PLAIN = /^[\t\n -~]*$/;
const CONTROL = /[\0-\x08\x0B-\x1F\x7F-\x9F]/u;
/** Format, bidi and tag characters, all spaces but the plain one, fillers that print as nothing, private and unassigned ones. */
const INVISIBLE = /[\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cn}\u115F\u1160\u3164\uFFA0\u2800\uFFFC]|\u034F|(?! )\p{Zs}/u;
/** Letters of other scripts that pass for what the shell obeys: full-width operators, other dashes where an option begins. */
const LOOKALIKE =
  /[\uFF02\uFF04\uFF06-\uFF09\uFF0D\uFF0F\uFF1B\uFF1C\uFF1E\uFF3C\uFF40\uFF5B-\uFF5E\u037E\u2044\u2215\u29F8]|(?<=^|[\s;&|(])[\u2010-\u2015\u2212\uFE58\uFE63]/u;
const INVALID = /[\uD800-\uDFFF\uFFFD]/u;

/** What no reading may be trusted with, whatever it says. */
export function flawsOf(text: string): readonly Flaw[] {
  const flaws: Flaw[] = [];
  if (!/[^\s]/.test(text)) flaws.push({ id: "text.empty", what: "", span: [0, text.length] });
  if (text.length > MOST_CHARACTERS)
    flaws.push({ id: "text.limit", what: `${text.length} characters`, span: [MOST_CHARACTERS, text.length] });
  if (PLAIN.test(text)) return flaws;
  for (const [id, pattern] of KINDS) {
    const match = pattern.exec(text);
    if (match !== null)
      flaws.push({ id, what: nameOf(match[0]), span: [match.index, match.index + match[0].length] });
  }
  return flaws;
}

const KINDS = [
  ["text.control", CONTROL],
  ["text.invisible", INVISIBLE],
  ["text.invisible", LOOKALIKE],
  ["text.invalid", INVALID],
] as const;

const nameOf = (character: string): string =>
  `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`;
