import type { Database } from "../db/database.ts";
import type { ContentFiles } from "./files.ts";

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
