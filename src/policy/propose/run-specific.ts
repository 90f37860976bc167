/**
 * Parts of names that belong to one run: hashes, dates, temporary names. A part counts as one by its form alone, so
 * parts that a person may have chosen (`v2024`, `sha256`, `part-1`) do not count.
 */

interface Piece {
  /** The part as it stands in the name. */
  readonly text: string;
  /** The character class of each position; undefined for a part that belongs to no run. */
  readonly classes?: readonly string[];
}

const HEX = "[0-9a-f]";
const DIGIT = "[0-9]";
const ANY = "[0-9A-Za-z]";

const BEFORE = "(?<![0-9A-Za-z])";
const BEHIND = "(?![0-9A-Za-z])";
const DATE = String.raw`(?:19|20)\d\d-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])`;
const COMPACT = String.raw`(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])`;

/** In the order in which they are tried. */
const FORMS = [
  String.raw`(?<uuid>${BEFORE}[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}${BEHIND})`,
  String.raw`(?<date>${BEFORE}${DATE}(?:[T_ -]\d\d[:.-]?\d\d(?:[:.-]?\d\d)?(?:\.\d{3})?Z?)?${BEHIND})`,
  String.raw`(?<stamp>${BEFORE}(?:${COMPACT}(?:[T_-]?\d{4}(?:\d\d)?Z?)?|1\d{9}(?:\d{3})?)${BEHIND})`,
  String.raw`(?<hex>${BEFORE}(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,64}${BEHIND})`,
].join("|");
/** Forms in temporary folders only: random names, such as those of `mktemp`, and process numbers. */
const TEMPORARY = [
  String.raw`(?<number>(?<=[._-])\d{3,}${BEHIND})`,
  String.raw`(?<random>(?<=[/._-])(?:(?=[0-9A-Za-z]*[A-Z])(?=[0-9A-Za-z]*[a-z])|(?=[0-9A-Za-z]*\d)(?=[0-9A-Za-z]*[A-Za-z]))[0-9A-Za-z]{6,}${BEHIND})`,
].join("|");

/** The name of a folder for temporary files, as the beginning of a word or of an option's value. */
const IN_TEMPORARY = /(?:^|=)\/(?:var\/)?tmp\//;

/** A text, split into its parts. Two texts are of one shape when their keys are equal. */
export interface Shape {
  readonly key: string;
  readonly pieces: readonly Piece[];
}

export function shapeOf(text: string): Shape {
  const forms = new RegExp(IN_TEMPORARY.test(text) ? `${FORMS}|${TEMPORARY}` : FORMS, "g");
  const pieces: Piece[] = [];
  const keys: string[] = [];
  let at = 0;
  for (const match of text.matchAll(forms)) {
    const [token] = match;
    const kind = Object.entries(match.groups ?? {}).find(([, value]) => value !== undefined)?.[0] ?? "";
    const classes = classesOf(kind, token);
    pieces.push({ text: text.slice(at, match.index) }, { text: token, classes });
    keys.push(text.slice(at, match.index), `${kind} ${classes.length}`);
    at = match.index + token.length;
  }
  pieces.push({ text: text.slice(at) });
  keys.push(text.slice(at));
  return { key: JSON.stringify(keys), pieces };
}

const classesOf = (kind: string, token: string): readonly string[] =>
  Array.from(token, (character) => {
    if (!/[0-9A-Za-z]/.test(character) || (kind === "date" && !/\d/.test(character))) return character;
    if (kind === "uuid" || kind === "hex") return HEX;
    return kind === "random" ? ANY : /\d/.test(character) ? DIGIT : character;
  });

/**
 * Joins texts of one shape. `write` gives the text for parts in which they differ; parts that are equal in all stay.
 */
export function joined(
  shapes: readonly Shape[],
  write: (piece: Required<Piece>) => string,
): { readonly text: string; readonly differs: boolean } {
  const [first, ...others] = shapes;
  let differs = false;
  const text = (first?.pieces ?? []).map(({ text: own, classes }, at) => {
    if (classes === undefined || others.every(({ pieces }) => pieces[at]?.text === own)) return own;
    differs = true;
    return write({ text: own, classes });
  });
  return { text: text.join(""), differs };
}

/** A glob for exactly this form: a long one ends in a star. */
export const asGlob = ({ classes }: Required<Piece>): string =>
  classes.length <= MAX_CLASSES ? classes.join("") : `${classes.slice(0, MAX_CLASSES).join("")}*`;

const MAX_CLASSES = 36;
