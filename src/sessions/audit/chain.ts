import { hash } from "node:crypto";

/**
 * A line is the JSON text `{…,"prev":P,"hash":H}`: P is the hash of the line before, H the SHA-256 of this line's own
 * bytes with `,"hash":H` left out. So no byte of it can be another one, whatever JSON would make of it.
 */

export const NONE = "0".repeat(64);

export const sha256 = (bytes: string | Uint8Array): string => hash("sha256", bytes);

export interface Link {
  readonly text: string;
  readonly hash: string;
}

export function linked(values: Readonly<Record<string, unknown>>, prev: string): Link {
  const body = JSON.stringify({ ...values, prev });
  const own = sha256(body);
  return { text: `${body.slice(0, -1)},"hash":"${own}"}`, hash: own };
}

const MARK = ',"hash":"';
const TAIL = MARK.length + 64 + 2;

/** The hash that a line ends with, where it is that of its bytes. */
export function hashIn(line: Buffer): string | undefined {
  const at = line.length - TAIL;
  if (at < 1) return undefined;
  const tail = line.toString("latin1", at);
  if (!tail.startsWith(MARK) || !tail.endsWith('"}')) return undefined;
  const said = tail.slice(MARK.length, -2);
  return sha256(Buffer.concat([line.subarray(0, at), CLOSE])) === said ? said : undefined;
}

const CLOSE = Buffer.from("}");

/** The lines of a file; the last one is torn where no line feed ends it. */
export function linesOf(bytes: Buffer): { readonly lines: readonly Buffer[]; readonly torn: boolean } {
  const lines: Buffer[] = [];
  let from = 0;
  for (let at = bytes.indexOf(0x0a); at !== -1; at = bytes.indexOf(0x0a, from)) {
    lines.push(bytes.subarray(from, at));
    from = at + 1;
  }
  const torn = from < bytes.length;
  if (torn) lines.push(bytes.subarray(from));
  return { lines, torn };
}
