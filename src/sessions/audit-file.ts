import { closeSync, constants, fstatSync, openSync, readFileSync, rmSync, writeSync } from "node:fs";
import path from "node:path";
import { hash } from "node:crypto";
import * as z from "zod";
import type { Audit, AuditEntry, AuditVerdict } from "../core/session.ts";
import { errorCode, EXIT, HarnessError, reasonOf } from "../core/errors.ts";
import { maskSecrets } from "../core/secrets.ts";
import { parsedJson } from "../core/raw-data.ts";
import { makeFolder } from "../platform/folders.ts";
import type { Database } from "./sessions-db.ts";

/**
 * The audit of a session: a chain of lines, written and verified. A line is the JSON text `{…,"prev":P,"hash":H}`: P is
 * the hash of the previous line, H the SHA-256 of this line's own bytes without `,"hash":H`. So no byte can change, not
 * even in ways that JSON would read the same.
 */

export const auditFile = (stateDir: string, session: string): string =>
  path.join(stateDir, "audit", `${session}.jsonl`);

/**
 * One session's file. It is opened for each write and only ever grows. The database's write lock is held meanwhile, so
 * processes take turns, and the file's head is stored in the same transaction. A kill therefore leaves at most the
 * lines of one write that the database does not know; several kills in a row leave those of one write each. Nothing
 * waits for the disk: a power cut may lose the last seconds of the file or the database, which then shows as a break.
 */
export class AuditFile implements Audit {
  readonly #file: string;
  readonly #session: string;
  readonly #db: Database;
  readonly #now: () => number;

  constructor(file: string, session: string, db: Database, now: () => number) {
    this.#file = file;
    this.#session = session;
    this.#db = db;
    this.#now = now;
  }

  readonly write = (entries: readonly AuditEntry[]): void => {
    if (entries.length === 0) return;
    this.#db.atomically(() => {
      const head = headOf(this.#db, this.#session);
      keepHead(this.#db, this.#session, this.#append(head, entries));
    });
  };

  readonly verify = (): AuditVerdict => {
    // Nobody can write between the two reads.
    const [head, bytes] = this.#db.atomically(() => [
      headOf(this.#db, this.#session),
      this.#reportingFailure(() => this.#read()),
    ]);
    return { file: this.#file, ...verified(bytes, this.#session, head) };
  };

  #read(): Buffer {
    try {
      return readFileSync(this.#file);
    } catch (thrown) {
      if (errorCode(thrown) === "ENOENT") return Buffer.alloc(0);
      throw thrown;
    }
  }

  #append(head: Head, entries: readonly AuditEntry[]): Head {
    return this.#reportingFailure(() => {
      const fd = openAppending(this.#file);
      try {
        const { size } = fstatSync(fd);
        const known = size === head.bytes && size > 0;
        const joint = known ? continuationOf(head) : checkedContinuation(this.#read(), head);
        const { text, ...grown } = this.#linesAfter(joint, entries);
        const bytes = Buffer.from(text);
        for (let at = 0; at < bytes.length;) at += writeSync(fd, bytes, at);
        return { ...grown, bytes: size + bytes.length };
      } finally {
        closeSync(fd);
      }
    });
  }

  #linesAfter(
    joint: Continuation,
    entries: readonly AuditEntry[],
  ): Omit<Head, "bytes"> & { readonly text: string } {
    const stamp = { ts: new Date(this.#now()).toISOString(), session: this.#session };
    let { lines, hash } = joint;
    let text = joint.close;
    for (const { kind, ...rest } of [...joint.entries, ...entries]) {
      const closing = kind === "closed" ? { lines, head: hash } : {};
      const link = linkOf({ kind, ...stamp, ...maskedEntry(rest), ...closing, ...stamp }, hash);
      text += `${link.text}\n`;
      lines += 1;
      hash = link.hash;
    }
    return { lines, hash, text };
  }

  #reportingFailure<T>(work: () => T): T {
    try {
      return work();
    } catch (thrown) {
      const full = errorCode(thrown) === "ENOSPC" || errorCode(thrown) === "EDQUOT";
      const why = full ? "no space is left on the disk" : "it cannot be used";
      throw new HarnessError(
        EXIT.failed,
        `audit in ${this.#file}: ${why} (${reasonOf(thrown)}); nothing runs without being recorded`,
        full ? `df -h ${path.dirname(this.#file)}` : `ls -ld ${path.dirname(this.#file)}`,
        thrown,
      );
    }
  }
}

const APPENDING = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NOFOLLOW;

function openAppending(file: string): number {
  try {
    return openSync(file, APPENDING, 0o600);
  } catch (thrown) {
    if (errorCode(thrown) !== "ENOENT") throw thrown;
    makeFolder(path.dirname(file));
    return openSync(file, APPENDING, 0o600);
  }
}

export function dropAudit(stateDir: string, session: string): void {
  rmSync(auditFile(stateDir, session), { force: true });
}

/** Readers of the file accept lines of up to a million characters. */
const MAX_TEXT_LENGTH = 200_000;

/** Masks likely secrets in every text, at any depth; a text that is too long is cut and identified by its hash. */
function maskedEntry(entry: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(entry).map(([key, value]) => [key, masked(value)]));
}

function masked(value: unknown): unknown {
  if (typeof value === "string") return cut(maskSecrets(value));
  if (Array.isArray(value)) return value.map(masked);
  if (typeof value !== "object" || value === null) return value;
  return maskedEntry({ ...value });
}

function cut(text: string): string {
  if (text.length <= MAX_TEXT_LENGTH) return text;
  const head = text.slice(0, MAX_TEXT_LENGTH).toWellFormed();
  return `${head}… [${text.length - MAX_TEXT_LENGTH} more characters; sha256 of all: ${sha256(text)}]`;
}

/** Where writing continues, and what has to be recorded first. */
interface Continuation {
  readonly lines: number;
  readonly hash: string;
  /** Ends a torn line. */
  readonly close: "\n" | "";
  readonly entries: readonly AuditEntry[];
}

/** For a file whose length matches the database. */
const continuationOf = ({ lines, hash }: Head): Continuation => ({ lines, hash, close: "", entries: [] });

const HEADER: AuditEntry = { kind: "header", format: 1 };

/**
 * For a file whose length differs from what the database knows: it is new, its last writer was killed, or somebody
 * altered it. The content stays. The next line is preceded by one that records what was expected and what was found;
 * `verify` then decides whether this was a kill or something worse.
 */
function checkedContinuation(bytes: Buffer, expected: Head): Continuation {
  const { lines, torn } = linesOf(bytes);
  const header = lines.length === 0 ? [HEADER] : [];
  if (lines.length === 0 && expected.lines === 0) return { lines: 0, hash: NONE, close: "", entries: header };
  const whole = lines.findLastIndex((line) => hashIn(line) !== undefined);
  const last = lines[whole];
  const recovered: AuditEntry = {
    kind: "recovered",
    expected: { lines: expected.lines, hash: expected.hash },
    found: { lines: lines.length, bytes: bytes.length },
    torn: hashOfTorn(lines.slice(whole + 1)),
  };
  return {
    lines: lines.length,
    hash: (last === undefined ? undefined : hashIn(last)) ?? NONE,
    close: torn ? "\n" : "",
    entries: [...header, recovered],
  };
}

const lineForm = z.looseObject({ kind: z.string(), ts: z.string(), session: z.string(), prev: z.string() });
const recoveredForm = z.object({
  expected: z.object({ lines: z.number(), hash: z.string() }),
  torn: z.string().nullable(),
});
const closedForm = z.object({ lines: z.number(), head: z.string() });

type Line = z.infer<typeof lineForm>;
type Expected = z.infer<typeof recoveredForm>["expected"];

interface CheckedLine {
  /** The line's number in the file, from 1. */
  readonly number: number;
  readonly hash: string;
  readonly ts: string;
  /** For a line written after a kill: what the database knew at that time. */
  readonly expected: Expected | undefined;
}

/** A break of the chain; ends the walk. */
class Broken extends Error {
  readonly line: number;

  constructor(line: number, why: string) {
    super(why);
    this.line = line;
  }
}

/** Checks all lines, and whether the last one is the one that the database knows. */
export function verified(bytes: Buffer, session: string, head: Head): Omit<AuditVerdict, "file"> {
  const { lines } = linesOf(bytes);
  const walk = new Walk(session);
  try {
    for (const line of lines) walk.take(line);
    walk.end(head);
    return { ok: true, lines: lines.length, broken: null, notes: walk.notes };
  } catch (thrown) {
    if (!(thrown instanceof Broken)) throw thrown;
    const broken = { line: thrown.line, why: thrown.message };
    return { ok: false, lines: lines.length, broken, notes: walk.notes };
  }
}

class Walk {
  readonly notes: string[] = [];
  readonly #session: string;
  readonly #checked: CheckedLine[] = [];
  #number = 0;
  /** Torn lines in a row: one for each writer that was killed before completing a line. */
  #torn: readonly Buffer[] = [];
  #open: number | undefined;

  constructor(session: string) {
    this.#session = session;
  }

  take(bytes: Buffer): void {
    this.#number += 1;
    const hash = hashIn(bytes);
    const isTorn = this.#torn.length > 0;
    if (hash === undefined) {
      // No kill leaves an empty line: a line feed only ends a line.
      if (bytes.length === 0) throw this.#foreignLine(this.#number);
      if (isTorn && !beginsAsRecovered(bytes)) throw this.#foreignLine(this.#number - 1);
      this.#torn = [...this.#torn, bytes];
      return;
    }
    const line = this.#read(bytes);
    if (isTorn && line.kind !== "recovered") throw this.#foreignLine(this.#number - 1);
    if (line.prev !== (this.#checked.at(-1)?.hash ?? NONE))
      throw new Broken(this.#number, "the line before it is not the one that it was written after");
    const expected = this.#checkLine(line);
    this.#checked.push({ number: this.#number, hash, ts: line.ts, expected });
  }

  /** Compares the end of the file with what the database knows. */
  end(head: Head): void {
    const unknown = this.#linesBehind(head.lines, head.hash);
    if (unknown > 0)
      this.notes.push(
        `its last lines (${unknown}) are unknown to the database: the run was killed, or could not store what they belong to`,
      );
    if (this.#torn.length > 0) this.notes.push("its last line is incomplete: the run was killed");
    else if (this.#open !== undefined)
      this.notes.push(
        `the run that starts at line ${this.#open} has no end: it was killed, or is still running`,
      );
  }

  #read(bytes: Buffer): Line {
    const { data } = lineForm.safeParse(parsedJson(bytes.toString("utf8")));
    if (data === undefined) throw this.#foreignLine(this.#number);
    if (data.session !== this.#session)
      throw new Broken(this.#number, `it belongs to another session: ${data.session}`);
    return data;
  }

  #checkLine(line: Line): Expected | undefined {
    if ((line.kind === "header") !== (this.#number === 1))
      throw new Broken(this.#number, "the header has to be the first line, and the only header");
    if (line.kind === "closed") this.#close(line);
    if (line.kind === "run.started") this.#begin();
    return line.kind === "recovered" ? this.#recover(line) : undefined;
  }

  #begin(): void {
    if (this.#open !== undefined) this.notes.push(`the run that starts at line ${this.#open} was killed`);
    this.#open = this.#number;
  }

  #close(line: Line): void {
    const { data } = closedForm.safeParse(line);
    if (data?.lines !== this.#number - 1 || data.head !== this.#checked.at(-1)?.hash)
      throw new Broken(this.#number, "it closes a run whose lines are not the ones before it");
    this.#open = undefined;
  }

  /** The line that was expected has to exist, and after it only lines of writes that were cut short. */
  #recover(line: Line): Expected {
    const { data } = recoveredForm.safeParse(line);
    if (data === undefined) throw this.#foreignLine(this.#number);
    if (data.torn !== hashOfTorn(this.#torn)) throw this.#foreignLine(this.#number - 1);
    this.#torn = [];
    this.notes.push(`line ${this.#number} continues after a kill or a failed write`);
    this.#linesBehind(data.expected.lines, data.expected.hash);
    return data.expected;
  }

  /**
   * Returns the number of lines after the given one. They all have to belong to one write that a kill kept from the
   * database, or to several writes killed in a row; then each of those but the first begins with a line that continues
   * from the same place.
   */
  #linesBehind(lines: number, hash: string): number {
    const at = this.#checked.findLastIndex(({ number }) => number === lines);
    const last = this.#checked.at(-1)?.number ?? 0;
    const missing = lines - last === 1 ? "1 line is" : `${lines - last} lines are`;
    if (lines > last) throw new Broken(last + 1, `${missing} missing from here on`);
    if (lines > 0 && this.#checked[at]?.hash !== hash)
      throw new Broken(lines, "it is not the line that the database recorded");
    const unknown = this.#checked.slice(at + 1);
    const isAdded = unknown.some(
      ({ ts, expected }, nth) =>
        nth > 0 && ts !== unknown[nth - 1]?.ts && (expected?.lines !== lines || expected.hash !== hash),
    );
    if (isAdded)
      throw new Broken(
        lines + 1,
        "the lines from here on are unknown to the database: they were added, or power was lost",
      );
    return unknown.length;
  }

  #foreignLine(line: number): Broken {
    return new Broken(line, "it was changed after it was written");
  }
}

export const NONE = "0".repeat(64);

export const sha256 = (bytes: string | Uint8Array): string => hash("sha256", bytes);

interface Link {
  readonly text: string;
  readonly hash: string;
}

function linkOf(values: Readonly<Record<string, unknown>>, prev: string): Link {
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
function beginsAsRecovered(line: Buffer): boolean {
  const begin = line.toString("latin1", 0, RECOVERED.length);
  return begin.length < RECOVERED.length ? RECOVERED.startsWith(begin) : begin === RECOVERED;
}

const RECOVERED = '{"kind":"recovered",';

/** The hash of the torn lines' bytes; null if there are none. */
const hashOfTorn = (lines: readonly Buffer[]): string | null =>
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

function headOf(db: Database, session: string): Head {
  const row = db.get(
    "SELECT lines, bytes, hash FROM sessions LEFT JOIN audits ON session = id WHERE id = ?",
    session,
  ) as { readonly [Key in keyof Head]: Head[Key] | null } | undefined;
  if (row === undefined)
    throw new HarnessError(EXIT.failed, `the session ${session} was removed`, "harness sessions list");
  const { lines, bytes, hash } = row;
  return lines === null || bytes === null || hash === null ? NO_LINES : { lines, bytes, hash };
}

function keepHead(db: Database, session: string, { lines, bytes, hash }: Head): void {
  db.run(
    `INSERT INTO audits (session, lines, bytes, hash) VALUES (?1, ?2, ?3, ?4)
     ON CONFLICT (session) DO UPDATE SET lines = ?2, bytes = ?3, hash = ?4`,
    session,
    lines,
    bytes,
    hash,
  );
}
