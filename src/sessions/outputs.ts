import { EXIT, HarnessError } from "../core/errors.ts";
import type { OutputPage, Outputs } from "../core/session.ts";
import type { Database } from "./database.ts";
import { type ContentFiles, keepWithin } from "./output-files.ts";

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

  /** The file is written while nobody else writes, so that no collection takes it before it is named. */
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
 * Characters are counted as JavaScript counts, in units of UTF-16. A pair of them stays whole: a page that would begin
 * within one begins before it, and one that would end within one ends before it, or behind it when it would be empty.
 */
export function pageOf(text: string, offset: number, limit: number): OutputPage {
  const total = text.length;
  const asked = clamp(offset, total);
  const begin = parts(text, asked) ? asked - 1 : asked;
  const wanted = Math.max(begin, clamp(asked + Math.max(0, Math.trunc(limit) || 0), total));
  const end = parts(text, wanted) ? (wanted - 1 > begin ? wanted - 1 : wanted + 1) : wanted;
  const last = wanted === begin ? begin : end;
  return { text: text.slice(begin, last), offset: begin, end: last, total };
}

const clamp = (count: number, total: number): number => Math.min(total, Math.max(0, Math.trunc(count) || 0));

/** Whether a cut here would part a pair. */
const parts = (text: string, at: number): boolean =>
  at > 0 && at < text.length && isHigh(text.charCodeAt(at - 1)) && isLow(text.charCodeAt(at));

const isHigh = (unit: number): boolean => unit >= 0xd800 && unit < 0xdc00;
const isLow = (unit: number): boolean => unit >= 0xdc00 && unit < 0xe000;
