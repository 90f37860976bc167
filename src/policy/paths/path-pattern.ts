/** Patterns of whole paths, and of single names as gitignore has them. */
import { isInside } from "../../core/file-names.ts";

/** A glob over whole paths: `*` stays inside one name, `**` stands for any number of names, zero included. */
export interface PathPattern {
  readonly from: "workspace" | "home" | "root";
  readonly names: readonly (NamePattern | undefined)[];
  /** Number of names before the first special character. */
  readonly fixed: number;
}

/** The folders that a pattern may start from. */
export interface Around {
  readonly workspace: string;
  readonly home: string;
}

/** Reads a pattern that is absolute, relative to the workspace, or below `~`; undefined for any other text. */
export function readPathPattern(text: string): PathPattern | undefined {
  const from = text.startsWith("/") ? "root" : /^~(?:\/|$)/.test(text) ? "home" : "workspace";
  const body = text
    .slice({ root: 1, home: 2, workspace: 0 }[from])
    .replace(/^\.\//, "")
    .replace(/\/$/, "/**");
  const names = body === "" || body === "." ? [] : readPattern(body);
  if (names === undefined || names.some((name) => name === "" || name === "." || name === ".."))
    return undefined;
  const fixed = names.findIndex((name) => typeof name !== "string");
  return { from, names, fixed: fixed === -1 ? names.length : fixed };
}

/** The pattern as it was written; a class of characters becomes a `?`. */
export function patternText({ from, names }: PathPattern): string {
  const shown = names.map((name) => {
    if (name === undefined) return "**";
    if (typeof name === "string") return name;
    return name
      .map((each) => (each === "star" ? "*" : typeof each === "number" ? String.fromCodePoint(each) : "?"))
      .join("");
  });
  return { workspace: "", home: "~/", root: "/" }[from] + shown.join("/");
}

/** The folder below which everything lies that the pattern can match. */
export function fixedPart({ from, names, fixed }: PathPattern, around: Around): string {
  const start = from === "root" ? "" : around[from] === "/" ? "" : around[from];
  return [start, ...names.slice(0, fixed)].join("/") || "/";
}

/** Whether the special part matches everything below the fixed part. */
export const takesAll = ({ names, fixed }: PathPattern): boolean =>
  names.slice(fixed).every((name) => name === undefined || isStar(name));

const isStar = (name: NamePattern): boolean =>
  typeof name !== "string" && name.every((token) => token === "star");

/** Whether every file that the path can stand for matches. The path may be a shell pattern itself. */
export function surelyFits(pattern: PathPattern, path: string, around: Around): boolean {
  const names = namesBelow(pattern, path, around);
  if (names === undefined) return false;
  const special = names.findIndex((name) => SPECIAL.test(name));
  if (special === -1) return fitsNames(pattern.names, names, false);
  // A shell pattern expands below the literal names in front of it.
  const below = pattern.names.at(-1) === undefined && pattern.fixed === pattern.names.length - 1;
  return below && special >= pattern.fixed && fitsNames(pattern.names, names.slice(0, special), false);
}

/** Whether the path may match, regardless of letter case; for a whole tree, also whether something in it may. */
export function mayFit(
  pattern: PathPattern,
  path: string,
  { whole, around }: { readonly whole: boolean; readonly around: Around },
): boolean {
  if (whole && isInside(path, fixedPart(pattern, around))) return true;
  const names = namesBelow(pattern, path, around);
  return names !== undefined && fitsNames(pattern.names, names, true);
}

const SPECIAL = /[*?[]/;

function namesBelow(
  { from }: PathPattern,
  path: string,
  { workspace, home }: Around,
): readonly string[] | undefined {
  const base = { workspace, home, root: "/" }[from];
  if (!isInside(base, path)) return undefined;
  const rest = path.slice(base === "/" ? 1 : base.length + 1);
  return rest === "" ? [] : rest.split("/");
}

/** Only the last `**` is ever tried again, which is sufficient. */
function fitsNames(pattern: PathPattern["names"], names: readonly string[], loose: boolean): boolean {
  let [at, next, retryAt, retryNext] = [0, 0, 0, -1];
  while (at < names.length) {
    if (next < pattern.length && pattern[next] === undefined) {
      next += 1;
      [retryAt, retryNext] = [at, next];
    } else if (next < pattern.length && fitsName(pattern[next] ?? "", names[at] ?? "", loose)) {
      at += 1;
      next += 1;
    } else {
      if (retryNext === -1) return false;
      retryAt += 1;
      [at, next] = [retryAt, retryNext];
    }
  }
  return pattern.slice(next).every((name) => name === undefined);
}

const fitsName = (pattern: NamePattern, name: string, loose: boolean): boolean =>
  (loose && SPECIAL.test(name)) || fits(pattern, name, loose);

/**
 * Patterns of one name, as gitignore has them: `*`, `?`, `[a-z]`, `[!a]`, `[[:alpha:]]`, `\` before a plain character.
 * Matched by own code in time of name times pattern at worst: the rules come from an untrusted repository.
 */

/** A literal character, a test of one character, or any text. */
type Token = number | ((code: number, anyCase: boolean) => boolean) | "star";

/** A literal text, or tokens. */
export type NamePattern = string | readonly Token[];

/**
 * The parts of a pattern between its slashes, `**` as undefined. Undefined for a pattern that matches nothing: an
 * open class, a trailing backslash.
 */
export function readPattern(text: string): readonly (NamePattern | undefined)[] | undefined {
  const names: (NamePattern | undefined)[] = [];
  let tokens: Token[] = [];
  let at = 0;
  const end = (): void => {
    const doubled = tokens.length === 2 && tokens.every((token) => token === "star");
    names.push(doubled ? undefined : simplified(tokens));
    tokens = [];
  };
  while (at < text.length) {
    const read = readToken(text, at);
    if (read === undefined) return undefined;
    at = read.next;
    if (read.token === SLASH) end();
    else tokens.push(read.token);
  }
  end();
  return names;
}

const SLASH = 0x2f;

function readToken(text: string, at: number): { readonly token: Token; readonly next: number } | undefined {
  const character = text[at];
  if (character === "*") return { token: "star", next: at + 1 };
  if (character === "?") return { token: () => true, next: at + 1 };
  if (character === "[") return readClass(text, at + 1);
  const from = character === "\\" ? at + 1 : at;
  const code = text.codePointAt(from);
  return code === undefined ? undefined : { token: code, next: from + width(code) };
}

/** `at` is the offset after the bracket. */
function readClass(text: string, at: number): { readonly token: Token; readonly next: number } | undefined {
  const negated = text[at] === "!" || text[at] === "^";
  const tests: ((code: number) => boolean)[] = [];
  let next = negated ? at + 1 : at;
  for (let first = true; first || text[next] !== "]"; first = false) {
    const named = NAMED.exec(text.slice(next, next + MAX_NAMED_LENGTH));
    if (named !== null) {
      const test = CLASSES[named[1] ?? ""];
      if (test === undefined) return undefined;
      tests.push((code) => test.test(String.fromCodePoint(code)));
      next += named[0].length;
      continue;
    }
    const range = readRange(text, next);
    if (range === undefined) return undefined;
    tests.push((code) => range.low <= code && code <= range.high);
    next = range.next;
  }
  const member = (code: number): boolean => tests.some((test) => test(code));
  // A negated class is case-sensitive: hiding more is the safe side.
  const token = negated
    ? (code: number): boolean => !member(code)
    : (code: number, anyCase: boolean): boolean => cases(code, anyCase).some(member);
  return { token, next: next + 1 };
}

function readRange(
  text: string,
  at: number,
): { readonly low: number; readonly high: number; readonly next: number } | undefined {
  const low = readMember(text, at);
  if (low === undefined) return undefined;
  if (text[low.next] !== "-" || text[low.next + 1] === "]")
    return { low: low.code, high: low.code, next: low.next };
  const high = readMember(text, low.next + 1);
  return high === undefined ? undefined : { low: low.code, high: high.code, next: high.next };
}

function readMember(text: string, at: number): { readonly code: number; readonly next: number } | undefined {
  const from = text[at] === "\\" ? at + 1 : at;
  const code = text.codePointAt(from);
  return code === undefined ? undefined : { code, next: from + width(code) };
}

const NAMED = /^\[:([a-z]*):\]/;
const MAX_NAMED_LENGTH = 12;

const CLASSES: Readonly<Record<string, RegExp>> = {
  alnum: /^[a-z0-9]$/i,
  alpha: /^[a-z]$/i,
  blank: /^[ \t]$/,
  cntrl: /^[\u0000-\u001f\u007f]$/,
  digit: /^[0-9]$/,
  graph: /^[!-~]$/,
  lower: /^[a-z]$/,
  print: /^[ -~]$/,
  punct: /^[!-/:-@[-`{-~]$/,
  space: /^\s$/,
  upper: /^[A-Z]$/,
  xdigit: /^[0-9a-f]$/i,
};

const width = (code: number): number => (code > 0xffff ? 2 : 1);

function simplified(tokens: readonly Token[]): NamePattern {
  const codes = tokens.filter((token) => typeof token === "number");
  if (codes.length === tokens.length) return codes.map((code) => String.fromCodePoint(code)).join("");
  return tokens.filter((token, index) => token !== "star" || tokens[index - 1] !== "star");
}

/** `anyCase`: letter case is ignored. */
export function fits(pattern: NamePattern, name: string, anyCase: boolean): boolean {
  return typeof pattern === "string"
    ? pattern === name || (anyCase && pattern.toLowerCase() === name.toLowerCase())
    : fitsTokens(pattern, name, anyCase);
}

/** Only the last `*` is ever tried again, which is sufficient and bounds the time to name times pattern. */
function fitsTokens(pattern: readonly Token[], name: string, anyCase: boolean): boolean {
  let [at, token, starAt, starToken] = [0, 0, 0, -1];
  while (at < name.length) {
    const code = name.codePointAt(at) ?? 0;
    const expected = pattern[token];
    if (expected === "star") {
      token += 1;
      [starAt, starToken] = [at, token];
    } else if (expected !== undefined && accepts(expected, code, anyCase)) {
      at += width(code);
      token += 1;
    } else {
      if (starToken === -1) return false;
      starAt += width(name.codePointAt(starAt) ?? 0);
      [at, token] = [starAt, starToken];
    }
  }
  return token === pattern.length || (token === pattern.length - 1 && pattern[token] === "star");
}

const accepts = (token: Exclude<Token, "star">, code: number, anyCase: boolean): boolean =>
  typeof token === "number" ? cases(code, anyCase).includes(token) : token(code, anyCase);

function cases(code: number, anyCase: boolean): readonly number[] {
  if (!anyCase) return [code];
  const character = String.fromCodePoint(code);
  return [
    code,
    ...[character.toLowerCase(), character.toUpperCase()].map((each) => each.codePointAt(0) ?? 0),
  ];
}
