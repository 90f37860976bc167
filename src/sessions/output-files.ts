import { createHash } from "node:crypto";
import { readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import path from "node:path";
import { replaceFileSync } from "../platform/safe-files.ts";
import type { Database } from "./database.ts";
import { makeFolder } from "../platform/folders.ts";

/** Files named by the SHA-256 of their content, `<aa>/<sha256>`. They may be read by their owner only. */
export class ContentFiles {
  readonly folder: string;

  constructor(folder: string) {
    this.folder = folder;
  }

  /** Written aside and renamed: a file under its name is whole, whenever the writer was killed. */
  put(content: Buffer): string {
    const hash = hashOf(content);
    const file = this.#fileOf(hash);
    if (this.get(hash, content.length) !== undefined) return hash;
    makeFolder(path.dirname(file));
    replaceFileSync(file, content, { lasts: "never" });
    return hash;
  }

  /** undefined when it is not there, or is not what it was: a power cut may leave such a file. */
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
   * Removes what killed writers left; nobody may be in `put` meanwhile. A whole file is left even when nothing names it:
   * it may belong to a database that was set aside.
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

/** Of all sessions' outputs together. */
export const QUOTA_BYTES = 2 * 1024 ** 3;

/** What is left when something had to go, so that not every further output takes another one away. */
const LEFT = 0.9;

/**
 * Takes outputs away until the rest fits, those first whose session was changed the longest ago. What the session in
 * use has kept stays, even when it is too much alone. Within a transaction.
 */
export function keepWithin(db: Database, files: ContentFiles, quota: number, inUse: string): void {
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
    if (bytes <= quota * LEFT) return;
    files.drop(file.hash);
    db.run("DELETE FROM output_files WHERE hash = ?", file.hash);
    bytes -= file.bytes;
  }
}

/** Removes the files that no session names any more, and what killed writers left. */
export function collect(db: Database, files: ContentFiles): void {
  db.atomically(() => {
    const gone = db.all(
      "DELETE FROM output_files WHERE hash NOT IN (SELECT hash FROM outputs) RETURNING hash",
    ) as readonly { hash: string }[];
    for (const { hash } of gone) files.drop(hash);
    files.sweep();
  });
}
