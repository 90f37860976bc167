import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { Connection } from "../../sqlite/connection.ts";
import { indexFailure, PATIENCE_MS } from "../index-failure.ts";

/** Gives back the room of what was removed. Nobody else may have it open for writing. */
export function compactEmbeddedStore(folder: string): void {
  try {
    using connection = new Connection(
      new DatabaseSync(path.join(folder, "index.db"), { timeout: PATIENCE_MS }),
    );
    connection.compact();
  } catch (thrown) {
    throw indexFailure(thrown, folder);
  }
}
