import { isInside } from "../core/file-names.ts";
import { fits, type NamePattern, readPattern } from "./paths/path-glob.ts";

/** A glob over whole paths: `*` stays inside one name, `**` stands for any number of names, zero included. */
export interface PathPattern {
  readonly from: "workspace" | "home" | "root";
  readonly names: readonly (NamePattern | undefined)[];
  /** Number of names before the first special character. */
  readonly fixed: number;
}

interface Around {
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
