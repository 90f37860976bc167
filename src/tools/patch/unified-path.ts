import { textOfBytes } from "../../core/byte-text.ts";

const LETTERS: Readonly<Record<string, number>> = {
  a: 7,
  b: 8,
  t: 9,
  n: 10,
  v: 11,
  f: 12,
  r: 13,
};

/** The name of a file as a diff writes it: quoted like a string of C, or with a time behind a tab. */
export const pathIn = (text: string): string =>
  text.startsWith('"') ? unquoted(text) : (text.split("\t", 1)[0] ?? "").replace(/\r$/, "").trimEnd();

export const NOTHING = "/dev/null";

/** Both names without the a/ and b/ that diffs put in front: where only one has its letter, it is a folder's name. */
export function pathPair(old: string, young: string): { readonly old: string; readonly young: string } {
  const lettered = (old === NOTHING || old.startsWith("a/")) && (young === NOTHING || young.startsWith("b/"));
  return lettered ? { old: bare(old), young: bare(young) } : { old, young };
}

const bare = (path: string): string => (path === NOTHING ? path : path.slice(2));

function unquoted(text: string): string {
  const inner = /^"((?:[^"\\]|\\.)*)"/.exec(text)?.[1] ?? text;
  const bytes = Array.from(inner.matchAll(/\\([0-7]{3})|\\(.)|([^\\]+)/g), ([, octal, letter, plain = ""]) =>
    octal === undefined
      ? letter === undefined
        ? [...Buffer.from(plain, "utf8")]
        : [LETTERS[letter] ?? letter.charCodeAt(0)]
      : [Number.parseInt(octal, 8) % 256],
  );
  return textOfBytes(Buffer.from(bytes.flat()));
}
