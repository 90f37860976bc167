import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { indexFailure, PATIENCE_MS } from "../index-failure.ts";

/** Gives back the room of what was removed. Nobody else may have it open for writing. */
export function compactEmbeddedStore(folder: string): void {
  try {
    const sqlite = new DatabaseSync(path.join(folder, "index.db"), { timeout: PATIENCE_MS });
    try {
      sqlite.exec("VACUUM; PRAGMA wal_checkpoint(TRUNCATE)");
    } finally {
      sqlite.close();
    }
  } catch (thrown) {
    throw indexFailure(thrown, folder);
  }
}
