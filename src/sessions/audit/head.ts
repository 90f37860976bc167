import { EXIT, HarnessError } from "../../core/errors.ts";
import type { Database } from "../db/database.ts";
import { NONE } from "./chain.ts";

/** How far a session's file goes, kept in the database, so that a file cut at its end or another one is told apart. */
export interface Head {
  readonly lines: number;
  readonly bytes: number;
  readonly hash: string;
}

const NO_LINES: Head = { lines: 0, bytes: 0, hash: NONE };

export function headOf(db: Database, session: string): Head {
  const row = db.get(
    "SELECT lines, bytes, hash FROM sessions LEFT JOIN audits ON session = id WHERE id = ?",
    session,
  ) as { readonly [Key in keyof Head]: Head[Key] | null } | undefined;
  if (row === undefined)
    throw new HarnessError(EXIT.failed, `the session ${session} was removed`, "harness sessions list");
  const { lines, bytes, hash } = row;
  return lines === null || bytes === null || hash === null ? NO_LINES : { lines, bytes, hash };
}

export function keepHead(db: Database, session: string, { lines, bytes, hash }: Head): void {
  db.run(
    `INSERT INTO audits (session, lines, bytes, hash) VALUES (?1, ?2, ?3, ?4)
     ON CONFLICT (session) DO UPDATE SET lines = ?2, bytes = ?3, hash = ?4`,
    session,
    lines,
    bytes,
    hash,
  );
}
