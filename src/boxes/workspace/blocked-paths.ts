import path from "node:path";
import { isInside } from "../../core/file-names.ts";
import { outermostPaths } from "./protected-mounts.ts";
import type { Protection } from "./protection.ts";

type Protected = Pick<Protection, "readOnly" | "pinned" | "outside" | "above">;

const READ_ONLY = /read-only file system|\bEROFS\b/i;
const BUSY = /device or resource busy|resource busy or locked|\bEBUSY\b/i;

/** More than a person reads; a flood of output costs no more than this. */
const LIMITS = { text: 256 * 1024, line: 8192, words: 64, paths: 20 } as const;

/**
 * The protected paths that a command's error output says it could not write, in the order of the messages. The program
 * chose those words: this explains a failure and decides nothing. Nothing is found for a message that names no path, or
 * a path below a folder that the command had changed into if several protected paths fit.
 */
export function blockedPaths(stderr: string, cwd: string, protection: Protected): readonly string[] {
  const found = new Set<string>();
  for (const line of stderr.slice(-LIMITS.text).split("\n")) {
    if (line.length > LIMITS.line || found.size >= LIMITS.paths) continue;
    const [busy, readOnly] = [BUSY.test(line), READ_ONLY.test(line)];
    if (!busy && !readOnly) continue;
    const guarded = outermostPaths([...protection.readOnly, ...protection.outside]);
    const stops = (file: string): boolean =>
      [...guarded, ...protection.above].some((folder) => isInside(folder, file)) ||
      (busy && protection.pinned.includes(file));
    for (const file of namedIn(line, cwd, { guarded, stops })) found.add(file);
  }
  return [...found];
}

interface Guard {
  readonly guarded: readonly string[];
  readonly stops: (file: string) => boolean;
}

/** Quoted names first, all of them (a rename has two); otherwise the first unquoted name that fits. */
function namedIn(line: string, cwd: string, guard: Guard): readonly string[] {
  const place = (text: string): string | undefined => locate(text, cwd, guard);
  const quoted = quotedIn(withJoinedQuotes(line))
    .map(place)
    .filter((file) => file !== undefined);
  if (quoted.length > 0) return quoted;
  const plain = unquotedIn(withJoinedQuotes(line))
    .map(place)
    .find((file) => file !== undefined);
  return plain === undefined ? [] : [plain];
}

const QUOTES = [/'([^']*)'/g, /"([^"]*)"/g, /\u2018([^\u2019]*)\u2019/g, /`([^`']*)['`]/g];

/** GNU programs write a line break inside a name as `'a'$'\\n''b'`. */
const withJoinedQuotes = (line: string): string =>
  line.replaceAll(/'\$'((?:\\[^]|[^'\\])*)'('?)/g, (_, text: string, more: string) => {
    const plain = text.replaceAll(/\\([0-7]{3}|[^])/g, (_, code: string) =>
      code.length === 3 ? String.fromCodePoint(Number.parseInt(code, 8)) : (CONTROLS.get(code) ?? code),
    );
    return more === "" ? `${plain}'` : plain;
  });

const CONTROLS = new Map([
  ["n", "\n"],
  ["t", "\t"],
  ["r", "\r"],
]);

const quotedIn = (line: string): readonly string[] =>
  QUOTES.flatMap((quotes) => [...line.matchAll(quotes)].map(([, text = ""]) => text)).filter(
    (text) => text !== "",
  );

/** The parts before the message, cut at colons, each also without its first words: `cannot create .git/x`. */
function unquotedIn(line: string): readonly string[] {
  const at = Math.max(line.search(READ_ONLY), line.search(BUSY));
  const parts = line.slice(0, at).split(/: |:$/).toReversed();
  return parts.flatMap((part) => {
    const words = part.trim().split(" ").slice(-LIMITS.words);
    return words.flatMap((_, index) => {
      const rest = words.slice(index).join(" ");
      return [rest, rest.split(" ")[0] ?? ""];
    });
  });
}

/** The absolute path of a name, if the path is protected. */
function locate(text: string, cwd: string, { guarded, stops }: Guard): string | undefined {
  const name = text.trim();
  if (name === "" || name.includes("\0")) return undefined;
  const file = path.resolve(cwd, name);
  if (stops(file)) return file;
  return path.isAbsolute(name) ? undefined : fromOtherFolder(path.normalize(name), guarded);
}

/** A relative name from a folder that the command had changed into; it counts if it fits exactly one protected path. */
function fromOtherFolder(name: string, guarded: readonly string[]): string | undefined {
  const parts = name.split("/").filter((part) => part !== ".." && part !== "." && part !== "");
  const fits = guarded.flatMap((folder) => {
    const at = parts.indexOf(path.basename(folder));
    const above = parts.slice(0, at).join("/");
    return at < 0 || !`/${path.dirname(folder)}/`.endsWith(`/${above}${above === "" ? "" : "/"}`)
      ? []
      : [path.join(folder, ...parts.slice(at + 1))];
  });
  return fits.length === 1 ? fits[0] : undefined;
}
