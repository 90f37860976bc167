import { closeSync, constants, fstatSync, openSync, readFileSync, rmSync, writeSync } from "node:fs";
import path from "node:path";
import type { Audit, AuditEntry, AuditVerdict } from "../core/audit.ts";
import { errorCode, EXIT, HarnessError, reasonOf } from "../core/errors.ts";
import { maskSecrets } from "../core/text/secrets.ts";
import type { Database } from "./database.ts";
import {
  hashIn,
  hashOfTorn,
  type Head,
  headOf,
  keepHead,
  linesOf,
  linkOf,
  NONE,
  sha256,
} from "./audit-chain.ts";
import { verified } from "./audit-verify.ts";
import { makeFolder } from "../platform/folders.ts";

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
