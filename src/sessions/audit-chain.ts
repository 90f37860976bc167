import { hash } from "node:crypto";
import { EXIT, HarnessError } from "../core/errors.ts";
import type { Database } from "./database.ts";

/**
 * A line is the JSON text `{…,"prev":P,"hash":H}`: P is the hash of the previous line, H the SHA-256 of this line's own
 * bytes without `,"hash":H`. So no byte can change, not even in ways that JSON would read the same.
 */

export const NONE = "0".repeat(64);

export const sha256 = (bytes: string | Uint8Array): string => hash("sha256", bytes);

interface Link {
  readonly text: string;
  readonly hash: string;
}

export function linkOf(values: Readonly<Record<string, unknown>>, prev: string): Link {
  const body = JSON.stringify({ ...values, prev });
  const own = sha256(body);
  return { text: `${body.slice(0, -1)},"hash":"${own}"}`, hash: own };
}

const MARK = ',"hash":"';
const TAIL = MARK.length + 64 + 2;

/** The hash at the end of a line, if it matches the line's bytes. */
export function hashIn(line: Buffer): string | undefined {
  const at = line.length - TAIL;
  if (at < 1) return undefined;
  const tail = line.toString("latin1", at);
  if (!tail.startsWith(MARK) || !tail.endsWith('"}')) return undefined;
  const stated = tail.slice(MARK.length, -2);
  return sha256(Buffer.concat([line.subarray(0, at), CLOSE])) === stated ? stated : undefined;
}

const CLOSE = Buffer.from("}");

/** The lines of a file; the last one is torn if it does not end with a line feed. */
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

/**
 * Several torn lines in a row arise when a writer is killed, and then each later writer while recording that. All but
 * the first of them begin like the line that records it.
 */
export function beginsAsRecovered(line: Buffer): boolean {
  const begin = line.toString("latin1", 0, RECOVERED.length);
  return begin.length < RECOVERED.length ? RECOVERED.startsWith(begin) : begin === RECOVERED;
}

const RECOVERED = '{"kind":"recovered",';

/** The hash of the torn lines' bytes; null if there are none. */
export const hashOfTorn = (lines: readonly Buffer[]): string | null =>
  lines.length === 0
    ? null
    : sha256(Buffer.concat(lines.flatMap((line, at) => (at === 0 ? [line] : [LF, line]))));

const LF = Buffer.from("\n");

/** The end of a session's file as the database knows it. It reveals a file that was truncated or replaced. */
export interface Head {
  readonly lines: number;
  readonly bytes: number;
  readonly hash: string;
}

const NO_LINES: Head = { lines: 0, bytes: 0, hash: NONE };

export function headOf(db: Database, session: string): Head {
  const row = db.get(
    "SELECT lines, bytes, hash FROM sessions LEFT JOIN audits ON session = id WHERE id = ?",
    session,
  ) as { readonly [Key in keyof Head]: Head[Key] | null } | undefined;
  if (row === undefined)
    throw new HarnessError(EXIT.failed, `the session ${session} was removed`, "harness sessions list");
  const { lines, bytes, hash } = row;
  return lines === null || bytes === null || hash === null ? NO_LINES : { lines, bytes, hash };
}

export function keepHead(db: Database, session: string, { lines, bytes, hash }: Head): void {
  db.run(
    `INSERT INTO audits (session, lines, bytes, hash) VALUES (?1, ?2, ?3, ?4)
     ON CONFLICT (session) DO UPDATE SET lines = ?2, bytes = ?3, hash = ?4`,
    session,
    lines,
    bytes,
    hash,
  );
}
