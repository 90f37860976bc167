/** Words of a Dockerfile: quotes, variables, folders. */

/** Something that cannot be read; the message names the line. */
export class Fault extends Error {}

/** The variables and arguments known where a word stands. */
export interface Scope {
  readonly env: Readonly<Record<string, string>>;
  readonly args: Readonly<Record<string, string>>;
}

export const unquoted = (text: string): string =>
  text.replace(/"((?:[^"\\]|\\[^])*)"|'([^']*)'|\\([^])/g, (_, double, single, one) =>
    double === undefined ? String(single ?? one ?? "") : String(double).replace(/\\(["\\])/g, "$1"),
  );

export function wordsOf(rest: string, line: number): readonly string[] {
  try {
    const words: unknown = JSON.parse(rest);
    if (Array.isArray(words) && words.length > 0 && words.every((word) => typeof word === "string"))
      return words;
  } catch {
    // Reported below.
  }
  throw new Fault(`line ${line}: not a list of words: ${rest.slice(0, 100)}`);
}

/** The values in images that set nothing else. */
const USUAL: Readonly<Record<string, string>> = {
  PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
  HOME: "/root",
};

/** `$NAME`, `${NAME}`, `${NAME:-else}` and `${NAME:+then}`. */
export const filled = (text: string, scope: Scope): string =>
  text.replace(
    /\$(?:(\w+)|\{(\w+)(?::([-+])([^}]*))?\})/g,
    (_, bare: string | undefined, name = "", how = "", other = "") => {
      const value = valueOf(bare ?? String(name), scope);
      if (how === "") return value;
      return (value === "") === (how === "-") ? String(other) : how === "-" ? value : "";
    },
  );

const valueOf = (name: string, { env, args }: Scope): string => env[name] ?? args[name] ?? USUAL[name] ?? "";

export function joined(folder: string, next: string): string {
  const parts = next.startsWith("/") ? [] : folder.split("/").filter((each) => each !== "");
  for (const each of next.split("/")) {
    if (each === "" || each === ".") continue;
    if (each === "..") parts.pop();
    else parts.push(each);
  }
  return `/${parts.join("/")}`;
}

export const quoted = (word: string): string =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;
