import path from "node:path";
import { readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { createHash } from "node:crypto";
import { EXIT, HarnessError } from "../core/errors.ts";
import type { OutputPage, Outputs } from "../core/session.ts";
import { makeFolder } from "../platform/folders.ts";
import { replaceFileSync } from "../platform/safe-files.ts";
import type { Database } from "./database.ts";

/** The outputs of one session: `o1`, `o2`, … */
export class StoredOutputs implements Outputs {
  readonly #session: string;
  readonly #db: Database;
  readonly #files: ContentFiles;
  readonly #quota: number;

  constructor(session: string, db: Database, files: ContentFiles, quota: number) {
    this.#session = session;
    this.#db = db;
    this.#files = files;
    this.#quota = quota;
  }

  /** Writes the file within the transaction, so that no collection removes it before a row names it. */
  keep(text: string): string {
    const content = Buffer.from(text);
    return this.#db.atomically(() => {
      if (this.#db.get("SELECT 1 FROM sessions WHERE id = ?", this.#session) === undefined)
        throw new HarnessError(
          EXIT.failed,
          `the session ${this.#session} was removed`,
          "harness sessions list",
        );
      const hash = this.#files.put(content);
      const number = this.#last() + 1;
      this.#db.insert("outputs", { session: this.#session, number, hash });
      this.#db.insert("output_files", { hash, bytes: content.length }, "OR IGNORE");
      keepWithin(this.#db, this.#files, this.#quota, this.#session);
      return `o${number}`;
    });
  }

  page(id: string, offset: number, limit: number): OutputPage | undefined {
    const number = /^o([1-9]\d{0,8})$/.exec(id)?.[1];
    if (number === undefined) return undefined;
    const kept = this.#db.get(
      "SELECT hash, bytes FROM outputs JOIN output_files USING (hash) WHERE session = ? AND number = ?",
      this.#session,
      Number(number),
    ) as { hash: string; bytes: number } | undefined;
    const content = kept === undefined ? undefined : this.#files.get(kept.hash, kept.bytes);
    return content === undefined ? undefined : pageOf(content.toString("utf8"), offset, limit);
  }

  #last(): number {
    const sql = "SELECT max(number) AS last FROM outputs WHERE session = ?";
    return (this.#db.get(sql, this.#session) as { last: number | null } | undefined)?.last ?? 0;
  }
}

/**
 * Counts characters as JavaScript does, in UTF-16 units, but never splits a surrogate pair: a page that would begin
 * inside a pair begins before it; a page that would end inside one ends before it, or after it if it would otherwise be
 * empty.
 */
export function pageOf(text: string, offset: number, limit: number): OutputPage {
  const total = text.length;
  const asked = clamp(offset, total);
  const begin = splitsPair(text, asked) ? asked - 1 : asked;
  const wanted = Math.max(begin, clamp(asked + Math.max(0, Math.trunc(limit) || 0), total));
  const end = splitsPair(text, wanted) ? (wanted - 1 > begin ? wanted - 1 : wanted + 1) : wanted;
  const last = wanted === begin ? begin : end;
  return { text: text.slice(begin, last), offset: begin, end: last, total };
}

const clamp = (count: number, total: number): number => Math.min(total, Math.max(0, Math.trunc(count) || 0));

/** Whether a cut here would split a surrogate pair. */
const splitsPair = (text: string, at: number): boolean =>
  at > 0 && at < text.length && isHigh(text.charCodeAt(at - 1)) && isLow(text.charCodeAt(at));

const isHigh = (unit: number): boolean => unit >= 0xd800 && unit < 0xdc00;
const isLow = (unit: number): boolean => unit >= 0xdc00 && unit < 0xe000;

/** Files named by the SHA-256 of their content, `<aa>/<sha256>`, readable only by their owner. */
export class ContentFiles {
  readonly folder: string;

  constructor(folder: string) {
    this.folder = folder;
  }

  /** Written under another name and renamed: a file under its own name is complete, whenever the writer is killed. */
  put(content: Buffer): string {
    const hash = hashOf(content);
    const file = this.#fileOf(hash);
    if (this.get(hash, content.length) !== undefined) return hash;
    makeFolder(path.dirname(file));
    replaceFileSync(file, content, { lasts: "never" });
    return hash;
  }

  /** undefined if the file is missing or damaged: a power cut may leave such a file. */
  get(hash: string, bytes: number): Buffer | undefined {
    const file = this.#fileOf(hash);
    if (statSync(file, { throwIfNoEntry: false })?.size !== bytes) return undefined;
    const content = readFileSync(file);
    return hashOf(content) === hash ? content : undefined;
  }

  drop(hash: string): void {
    rmSync(this.#fileOf(hash), { force: true });
  }

  /**
   * Removes the leftovers of killed writers; nobody may be in `put` meanwhile. Complete files stay even if nothing
   * names them: they may belong to a database that was set aside.
   */
  sweep(): void {
    for (const folder of listing(this.folder))
      for (const name of listing(path.join(this.folder, folder)))
        if (name.includes(".")) rmSync(path.join(this.folder, folder, name), { force: true });
  }

  #fileOf(hash: string): string {
    return path.join(this.folder, hash.slice(0, 2), hash);
  }
}

const listing = (folder: string): readonly string[] => {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
};

const hashOf = (content: Buffer): string => createHash("sha256").update(content).digest("hex");

/** For the outputs of all sessions together. */
export const QUOTA_BYTES = 2 * 1024 ** 3;

/** The part of the quota that remains after a removal, so that not every further output has to remove another one. */
const REMAINING_SHARE = 0.9;

/**
 * Removes outputs until the rest fits, starting with the session whose last change is oldest. Outputs of the session in
 * use stay, even if they alone exceed the quota. Call it within a transaction.
 */
function keepWithin(db: Database, files: ContentFiles, quota: number, inUse: string): void {
  let bytes =
    (db.get("SELECT sum(bytes) AS bytes FROM output_files") as { bytes: number | null } | undefined)?.bytes ??
    0;
  if (bytes <= quota) return;
  const oldestFirst = db.all(
    `SELECT hash, bytes FROM output_files JOIN outputs USING (hash) JOIN sessions ON sessions.id = outputs.session
     GROUP BY hash HAVING sum(outputs.session = ?) = 0 ORDER BY max(sessions.changed), max(outputs.number)`,
    inUse,
  ) as readonly { hash: string; bytes: number }[];
  for (const file of oldestFirst) {
    if (bytes <= quota * REMAINING_SHARE) return;
    files.drop(file.hash);
    db.run("DELETE FROM output_files WHERE hash = ?", file.hash);
    bytes -= file.bytes;
  }
}

/** Removes files that no session names any more, and the leftovers of killed writers. */
export function collect(db: Database, files: ContentFiles): void {
  db.atomically(() => {
    const gone = db.all(
      "DELETE FROM output_files WHERE hash NOT IN (SELECT hash FROM outputs) RETURNING hash",
    ) as readonly { hash: string }[];
    for (const { hash } of gone) files.drop(hash);
    files.sweep();
  });
}
