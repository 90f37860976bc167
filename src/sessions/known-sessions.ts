import { existsSync } from "node:fs";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";

export interface KnownSession {
  readonly id: string;
  readonly title: string;
  readonly model: string;
}

const PATIENCE_MS = 100;

/**
 * Sessions for somebody who is typing: the folder's first, then the others, each last changed first. It only reads:
 * nothing is made, mended, brought up to date or waited for, and where there is no answer at once there are none.
 */
export function knownSessions(stateDir: string, workspace: string, limit: number): readonly KnownSession[] {
  const file = path.join(stateDir, "sessions.db");
  if (!existsSync(file)) return [];
  let sqlite: DatabaseSync | undefined;
  try {
    sqlite = new DatabaseSync(file, { readOnly: true, timeout: PATIENCE_MS });
    const rows = sqlite
      .prepare(
        "SELECT id, title, model FROM sessions ORDER BY workspace = ? DESC, changed DESC, id DESC LIMIT ?",
      )
      .all(workspace, limit);
    return rows.map(({ id, title, model }) => ({
      id: String(id),
      title: String(title),
      model: String(model),
    }));
  } catch {
    return [];
  } finally {
    sqlite?.close();
  }
}
