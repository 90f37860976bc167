import type { Note, Notes } from "../core/session.ts";
import type { Database } from "./db/database.ts";
import { contains } from "./search.ts";

interface Row {
  readonly title: string;
  readonly body: string;
  readonly tags: string;
  readonly written: number;
}

export function storedNotes(db: Database, workspace: string, now: () => number): Notes {
  return {
    write: ({ title, body, tags }) => {
      db.insert("notes", { workspace, title, body, tags: JSON.stringify(tags), written: now() });
    },
    find: (query, limit) =>
      (
        db.all(
          "SELECT title, body, tags, written FROM notes WHERE workspace = ? ORDER BY number DESC",
          workspace,
        ) as readonly Row[]
      )
        .map((row): Note => ({ ...row, tags: JSON.parse(row.tags) as readonly string[] }))
        .filter(({ title, body, tags }) => [title, body, ...tags].some((text) => contains(text, query)))
        .slice(0, Math.max(0, limit)),
  };
}
