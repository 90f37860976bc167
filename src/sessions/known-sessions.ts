import { existsSync } from "node:fs";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";

/** A glance at the session database, for command completion. */

export interface KnownSession {
  readonly id: string;
  readonly title: string;
  readonly model: string;
}

interface KnownNote {
  readonly number: number;
  readonly title: string;
}

const GLANCE_MS = 100;

/**
 * Sessions for command completion: those of the folder first, then the others, each newest first. Only reads: creates,
 * repairs, migrates and waits for nothing, and returns no sessions if there is no immediate answer.
 */
export function knownSessions(stateDir: string, workspace: string, limit: number): readonly KnownSession[] {
  const sql =
    "SELECT id, title, model FROM sessions ORDER BY workspace = ? DESC, changed DESC, id DESC LIMIT ?";
  return knownRows(stateDir, sql, workspace, limit).map(({ id, title, model }) => ({
    id: String(id),
    title: String(title),
    model: String(model),
  }));
}

/** The folder's notes, under the same terms, newest first. */
export function knownNotes(stateDir: string, workspace: string, limit: number): readonly KnownNote[] {
  const sql = "SELECT number, title FROM notes WHERE workspace = ? ORDER BY number DESC LIMIT ?";
  return knownRows(stateDir, sql, workspace, limit).map(({ number, title }) => ({
    number: Number(number),
    title: String(title),
  }));
}

function knownRows(
  stateDir: string,
  sql: string,
  workspace: string,
  limit: number,
): readonly Readonly<Record<string, unknown>>[] {
  const file = path.join(stateDir, "sessions.db");
  if (!existsSync(file)) return [];
  let sqlite: DatabaseSync | undefined;
  try {
    sqlite = new DatabaseSync(file, { readOnly: true, timeout: GLANCE_MS });
    return sqlite.prepare(sql).all(workspace, limit);
  } catch {
    return [];
  } finally {
    sqlite?.close();
  }
}
