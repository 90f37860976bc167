import { lstatSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import { PATIENCE_MS, troubleOf } from "./embedded/failure.ts";

/** A database that this process changes nothing of. */
export function openedToRead(file: string): DatabaseSync {
  try {
    return looked(new DatabaseSync(file, { readOnly: true, timeout: PATIENCE_MS }));
  } catch (thrown) {
    // Where nothing may be written there is no writer either, and SQLite need not look for one. What one has left in
    // its journal would be passed over then: that is no answer.
    if (!["read-only", "unreachable"].includes(troubleOf(thrown)) || hasJournal(file)) throw thrown;
    const url = pathToFileURL(file);
    url.searchParams.set("immutable", "1");
    return looked(new DatabaseSync(url, { readOnly: true }));
  }
}

/** It is opened at the first look. */
function looked(sqlite: DatabaseSync): DatabaseSync {
  try {
    sqlite.prepare("SELECT count(*) FROM sqlite_schema").get();
    return sqlite;
  } catch (thrown) {
    sqlite.close();
    throw thrown;
  }
}

const hasJournal = (file: string): boolean =>
  (lstatSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0;
