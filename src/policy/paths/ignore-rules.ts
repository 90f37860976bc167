import { fits, type NamePattern, readPattern } from "./path-pattern.ts";

/**
 * `.harnessignore`, in the syntax of gitignore. Own code instead of the package `ignore`: the package turns each row
 * into a regular expression whose time grows with the path's length to the power of the number of `**` in the row (a
 * row with five took 250 ms for a path of 120 characters), and it throws on paths that are not relative. The rules come
 * from an untrusted repository, so the time here is rules times path at worst, and nothing throws.
 */
export interface IgnoreRules {
  readonly rules: readonly IgnoreRule[];
  /** The text exceeds the bound on length: everything is hidden, since its rules are unknown. */
  readonly tooLong: boolean;
  /** Lists of folders above the workspace, by the folders' absolute paths: files that they hide stay hidden. */
  readonly above?: readonly { readonly folder: string; readonly rules: IgnoreRules }[];
}

interface IgnoreRule {
  readonly shows: boolean;
  readonly foldersOnly: boolean;
  /** Names between slashes, undefined for `**`. A pattern without a slash has one name and matches at any depth. */
  readonly names: readonly (NamePattern | undefined)[];
  readonly anyDepth: boolean;
}

/** Characters of a rule file that are read. */
export const MAX_RULES_LENGTH = 64 * 1024;

/** As in git, a NUL ends the line. */
const NUL_AND_REST = /\0.*$/s;

export function readIgnore(text: string): IgnoreRules {
  if (text.length > MAX_RULES_LENGTH) return { rules: [], tooLong: true };
  const lines = text.replace(/^\ufeff/, "").split(/\r?\n/);
  const rules = lines.map((line) => readRule(line.replace(NUL_AND_REST, "")));
  return { rules: rules.filter((rule) => rule !== undefined), tooLong: false };
}

function readRule(line: string): IgnoreRule | undefined {
  if (line.startsWith("#")) return undefined;
  const shows = line.startsWith("!");
  const whole = withoutBlanks(shows ? line.slice(1) : line);
  const foldersOnly = whole.endsWith("/");
  const pattern = foldersOnly ? whole.slice(0, -1) : whole;
  if (pattern === "") return undefined;
  const names = readPattern(pattern.startsWith("/") ? pattern.slice(1) : pattern);
  return names && { shows, foldersOnly, names, anyDepth: !pattern.includes("/") };
}

/** Trailing blanks do not count, except one behind a backslash. */
function withoutBlanks(line: string): string {
  let end = line.length;
  while (end > 0 && line[end - 1] === " ") end -= 1;
  let backslashes = 0;
  while (line[end - 1 - backslashes] === "\\") backslashes += 1;
  return line.slice(0, backslashes % 2 === 1 ? end + 1 : end);
}

/**
 * Whether a path below the workspace is hidden, by itself or with a folder above it: nothing in a hidden folder can be
 * shown again. Rules hide in any letter case and show only in their own. Without `isFolder` the stricter answer counts.
 */
export function isIgnored(
  { rules, tooLong }: IgnoreRules,
  relativePath: string,
  isFolder?: boolean,
): boolean {
  const names = relativePath.split("/").filter((name) => name !== "" && name !== ".");
  if (names.length === 0) return false;
  if (tooLong) return true;
  const hidden = names.map(() => false);
  hideBy(rules, { names, isFolder, anyCase: true, hidden });
  return hidden.includes(true);
}

/** A path split into names, with a mark for each that is hidden so far. */
interface Hiding {
  readonly names: readonly string[];
  readonly isFolder: boolean | undefined;
  /** Rules hide in any letter case; they show again only in their own. */
  readonly anyCase: boolean;
  readonly hidden: boolean[];
}

/** Marks the names that these rules hide, and unmarks those that they show again. */
function hideBy(rules: IgnoreRules["rules"], { names, isFolder, anyCase, hidden }: Hiding): void {
  const last = names.length - 1;
  for (const rule of rules) {
    const matched = matches(rule, names, anyCase && !rule.shows);
    if (rule.foldersOnly && !(rule.shows ? isFolder === true : isFolder !== false)) matched[last] = false;
    for (let depth = 0; depth <= last; depth += 1) if (matched[depth] === true) hidden[depth] = !rule.shows;
  }
}

/** For each name of the path: whether the rule matches the path up to it. */
function matches({ names, anyDepth }: IgnoreRule, path: readonly string[], anyCase: boolean): boolean[] {
  const [only] = names;
  if (anyDepth) return path.map((name) => only === undefined || fits(only, name, anyCase));
  // Marks positions in the rule from which matching may go on; the last one says that the path so far matches.
  let places = skipDoubleStars(names, Uint8Array.of(1, ...names.map(() => 0)));
  return path.map((name) => {
    const next = new Uint8Array(names.length + 1);
    for (
      let place = places.indexOf(1);
      place !== -1 && place < names.length;
      place = places.indexOf(1, place + 1)
    )
      step(names, place, { name, anyCase, next });
    places = skipDoubleStars(names, next);
    return places[names.length] === 1;
  });
}

interface Step {
  readonly name: string;
  readonly anyCase: boolean;
  readonly next: Uint8Array;
}

function step(names: IgnoreRule["names"], place: number, { name, anyCase, next }: Step): void {
  const pattern = names[place];
  if (pattern === undefined) next[place] = 1;
  if (pattern === undefined ? place === names.length - 1 : fits(pattern, name, anyCase)) next[place + 1] = 1;
}

/** `**` in front of another name may stand for none; at the end it stands for at least one. */
function skipDoubleStars(names: IgnoreRule["names"], places: Uint8Array): Uint8Array {
  for (let place = 0; place < names.length - 1; place += 1)
    if (places[place] === 1 && names[place] === undefined) places[place + 1] = 1;
  return places;
}

/** A file of ignore rules and the folder that it is in; the empty text is the workspace itself. */
export interface IgnoreList {
  readonly folder: string;
  readonly text: string;
  /**
   * For a list that hides files from the model: letter case is ignored, and a list beyond the bound on length hides its
   * whole folder. Any other list is applied as git does on a case-sensitive system, and beyond the bound only its first
   * lines.
   */
  readonly strict: boolean;
}

/**
 * Lists of a workspace from the top down: a lower list takes precedence over a higher one. Each list is read once, however
 * many lie below it: an untrusted repository may have thousands.
 */
export class NestedIgnore {
  /** The lists above, from the top down. */
  readonly #above: readonly NestedIgnore[];
  /** The beginning of all paths that the list applies to, and its number of names. */
  readonly #start: string;
  readonly #depth: number;
  readonly #rules: IgnoreRules["rules"];
  readonly #strict: boolean;
  readonly #hidesAll: boolean;

  private constructor(above: readonly NestedIgnore[], { folder, text, strict }: IgnoreList) {
    const isLong = text.length > MAX_RULES_LENGTH;
    this.#above = above;
    this.#start = folder === "" ? "" : `${folder}/`;
    this.#depth = namesOf(folder).length;
    this.#strict = strict;
    this.#hidesAll = isLong && strict;
    this.#rules = this.#hidesAll ? [] : readIgnore(isLong ? wholeLines(text) : text).rules;
  }

  /** The list that leaves nothing out. */
  static none(): NestedIgnore {
    return new NestedIgnore([], { folder: "", text: "", strict: false });
  }

  /** Adds the list of a folder further down. */
  below(list: IgnoreList): NestedIgnore {
    return new NestedIgnore([...this.#above, this], list);
  }

  leavesOut(path: string, isFolder: boolean): boolean {
    const names = namesOf(path);
    const hidden = names.map(() => false);
    for (const list of [...this.#above, this])
      if (path.startsWith(list.#start)) list.#mark({ names, isFolder, hidden });
    return hidden.includes(true);
  }

  #mark({ names, isFolder, hidden }: Marked): void {
    if (this.#hidesAll) hidden.fill(true, this.#depth);
    if (this.#rules.length === 0) return;
    const inside = hidden.slice(this.#depth);
    const below = names.slice(this.#depth);
    hideBy(this.#rules, { names: below, isFolder, anyCase: this.#strict, hidden: inside });
    hidden.splice(this.#depth, inside.length, ...inside);
  }
}

interface Marked {
  readonly names: readonly string[];
  readonly isFolder: boolean;
  readonly hidden: boolean[];
}

const namesOf = (path: string): readonly string[] => path.split("/").filter((name) => name !== "");

const wholeLines = (text: string): string =>
  text.slice(0, Math.max(text.lastIndexOf("\n", MAX_RULES_LENGTH - 1), 0));
