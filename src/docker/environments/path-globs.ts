/**
 * Patterns of a .dockerignore and of COPY, as Docker reads them. A repository wrote them: matching counts its steps,
 * and never uses a regular expression, which could take for ever.
 */

type Token =
  | { readonly kind: "char"; readonly char: string }
  | { readonly kind: "class"; readonly holds: (char: string) => boolean }
  /** `?`, `*` within one name, `**` across names, and `**` with the slash after it: folders, or none. */
  | { readonly kind: "one" | "name" | "any" | "folders" };

export class TooManySteps extends Error {}

/** The steps of all matching for one reading of a repository. */
export class Steps {
  #left = 100_000_000;

  take(count: number): void {
    this.#left -= count;
    if (this.#left < 0) throw new TooManySteps("its patterns take too long to match");
  }
}

const MAX_PATTERN = 500;

export interface Glob {
  readonly matches: (path: string, steps: Steps) => boolean;
}

export const isPattern = (text: string): boolean => /[*?[\\]/.test(text);

/** `deep`: two stars cross folders, as in a .dockerignore. Undefined for an invalid pattern. */
export function globOf(pattern: string, deep: boolean): Glob | undefined {
  if (pattern.length > MAX_PATTERN) return undefined;
  const tokens = tokensOf(pattern, deep);
  if (tokens === undefined) return undefined;
  return {
    matches: (path, steps) => {
      let at = new Set([0]);
      for (const token of tokens) {
        steps.take(path.length + 1);
        at = advance(token, path, at);
        if (at.size === 0) return false;
      }
      return at.has(path.length);
    },
  };
}

function tokensOf(pattern: string, deep: boolean): readonly Token[] | undefined {
  const tokens: Token[] = [];
  for (let at = 0; at < pattern.length;) {
    const char = pattern[at] ?? "";
    const next =
      char === "*"
        ? stars(pattern, at, deep)
        : char === "[" || char === "\\"
          ? quotedOf(pattern, at)
          : plain(char, at);
    if (next === undefined) return undefined;
    tokens.push(next.token);
    at = next.end;
  }
  return tokens;
}

interface Next {
  readonly token: Token;
  readonly end: number;
}

const plain = (char: string, at: number): Next => ({
  token: char === "?" ? { kind: "one" } : { kind: "char", char },
  end: at + 1,
});

function stars(pattern: string, at: number, deep: boolean): Next {
  const [all = "*"] = /^\*+/.exec(pattern.slice(at)) ?? [];
  const end = at + all.length;
  if (!deep || all.length === 1) return { token: { kind: "name" }, end };
  return pattern[end] === "/"
    ? { token: { kind: "folders" }, end: end + 1 }
    : { token: { kind: "any" }, end };
}

function quotedOf(pattern: string, at: number): Next | undefined {
  if (pattern[at] === "\\") {
    const char = pattern[at + 1];
    return char === undefined ? undefined : { token: { kind: "char", char }, end: at + 2 };
  }
  const end = pattern.indexOf("]", at + 2);
  if (end === -1) return undefined;
  return { token: { kind: "class", holds: classOf(pattern.slice(at + 1, end)) }, end: end + 1 };
}

function classOf(text: string): (char: string) => boolean {
  const not = text.startsWith("^") || text.startsWith("!");
  const body = not ? text.slice(1) : text;
  const ranges: (readonly [string, string])[] = [];
  for (let at = 0; at < body.length; at += 1) {
    const from = body[at] ?? "";
    const isRange = body[at + 1] === "-" && at + 2 < body.length;
    ranges.push([from, isRange ? (body[at + 2] ?? "") : from]);
    if (isRange) at += 2;
  }
  return (char) => char !== "/" && ranges.some(([from, to]) => char >= from && char <= to) !== not;
}

function advance(token: Token, path: string, from: ReadonlySet<number>): Set<number> {
  if (token.kind === "any" || token.kind === "folders" || token.kind === "name")
    return spread(token.kind, path, from);
  const to = new Set<number>();
  for (const at of from) {
    const char = path[at];
    if (char !== undefined && matchesChar(token, char)) to.add(at + 1);
  }
  return to;
}

/** All places where a row of any length can end that begins at one of these. */
function spread(kind: "any" | "folders" | "name", path: string, from: ReadonlySet<number>): Set<number> {
  const to = new Set<number>();
  let open = false;
  for (let at = Math.min(...from); at <= path.length; at += 1) {
    const isBehindSlash = path[at - 1] === "/";
    if (kind === "name" && isBehindSlash) open = false;
    const begins = from.has(at);
    if (begins || (open && (kind !== "folders" || isBehindSlash))) to.add(at);
    open ||= begins;
  }
  return to;
}

const matchesChar = (token: Token, char: string): boolean =>
  token.kind === "char" ? token.char === char : token.kind === "class" ? token.holds(char) : char !== "/";

const MAX_LINES = 500;

/** What a .dockerignore leaves out: the last line that matches the path or a folder above it counts. */
export function ignoredBy(text: string): (path: string, steps: Steps) => boolean {
  const lines = text
    .replace(/^\uFEFF/, "")
    .split(/\r?\n/)
    .filter((line) => !line.startsWith("#") && line.trim() !== "");
  if (lines.length > MAX_LINES) throw new TooManySteps(`its .dockerignore has more than ${MAX_LINES} lines`);
  const rules = lines.flatMap((line) => {
    const not = line.trim().startsWith("!");
    const pattern = cleaned(not ? line.trim().slice(1).trim() : line.trim());
    const glob = globOf(pattern, true);
    return glob === undefined || pattern === "" ? [] : [{ glob, not }];
  });
  return (path, steps) => {
    const ways = path.split("/").map((_, index, names) => names.slice(0, index + 1).join("/"));
    let ignored = false;
    for (const { glob, not } of rules)
      if (ignored === not && ways.some((way) => glob.matches(way, steps))) ignored = !not;
    return ignored;
  };
}

/** Without empty names, `.` and `..`. */
function cleaned(pattern: string): string {
  const names: string[] = [];
  for (const name of pattern.split("/")) {
    if (name === "" || name === ".") continue;
    if (name === "..") names.pop();
    else names.push(name);
  }
  return names.join("/");
}
