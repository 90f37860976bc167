import type { Note, Notes, NoteText } from "../core/session.ts";
import type { Database } from "./database.ts";

interface Row {
  readonly number: number;
  readonly title: string;
  readonly body: string;
  readonly tags: string;
  readonly written: number;
}

const COLUMNS = "number, title, body, tags, written";

/** Every change is one statement, so a run that writes notes and a person who edits them do not interfere. */
export function storedNotes(db: Database, workspace: string, now: () => number): Notes {
  return {
    write: ({ title, body, tags }) => {
      const row = db.get(
        `INSERT INTO notes (workspace, title, body, tags, written) VALUES (?, ?, ?, ?, ?) RETURNING ${COLUMNS}`,
        workspace,
        title,
        body,
        JSON.stringify(tags),
        now(),
      );
      return noteOf(row as Row);
    },
    find: (query, limit) =>
      (
        db.all(
          `SELECT ${COLUMNS} FROM notes WHERE workspace = ? ORDER BY written DESC, number DESC`,
          workspace,
        ) as readonly Row[]
      )
        .map(noteOf)
        .filter((note) => isAbout(note, query))
        .slice(0, Math.max(0, limit)),
    get: (number) => {
      const row = db.get(
        `SELECT ${COLUMNS} FROM notes WHERE workspace = ? AND number = ?`,
        workspace,
        number,
      ) as Row | undefined;
      return row === undefined ? undefined : noteOf(row);
    },
    replace: (before, { title, body, tags }) =>
      db.run(
        `UPDATE notes SET title = ?, body = ?, tags = ?, written = ?
         WHERE workspace = ? AND number = ? AND title = ? AND body = ? AND tags = ?`,
        title,
        body,
        JSON.stringify(tags),
        now(),
        workspace,
        before.number,
        before.title,
        before.body,
        JSON.stringify(before.tags),
      ) === 1,
    remove: (number) =>
      db.run("DELETE FROM notes WHERE workspace = ? AND number = ?", workspace, number) === 1,
  };
}

const noteOf = (row: Row): Note => ({ ...row, tags: JSON.parse(row.tags) as readonly string[] });

/** Ignores case, in any script. */
const isAbout = ({ title, body, tags }: NoteText, query: string): boolean =>
  [title, body, ...tags].some((text) => text.toLowerCase().includes(query.toLowerCase()));
