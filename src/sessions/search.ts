import type { Message } from "../core/messages.ts";
import type { SessionFilter, SessionInfo } from "../core/session.ts";
import type { Database } from "./db/database.ts";
import { INFO } from "./session.ts";

/** Whatever the case, in any script. */
export const contains = (text: string, query: string): boolean =>
  text.toLowerCase().includes(query.toLowerCase());

/** Last changed first. Messages count for the search whether they were taken back since or not. */
export function listed(
  db: Database,
  { workspace, query = "", limit }: SessionFilter,
): readonly SessionInfo[] {
  const rows =
    workspace === undefined
      ? (db.all(`${INFO} ${NEWEST_FIRST}`) as readonly SessionInfo[])
      : (db.all(`${INFO} WHERE workspace = ? ${NEWEST_FIRST}`, workspace) as readonly SessionInfo[]);
  const found: SessionInfo[] = [];
  for (const row of rows) {
    if (found.length >= (limit ?? Infinity)) break;
    if (contains(row.title, query) || says(db, row.id, query)) found.push({ ...row });
  }
  return found;
}

const NEWEST_FIRST = "ORDER BY changed DESC, id DESC";

/** A query stands in the JSON of a text as it stands in its own; only what looks like a hit is read. */
function says(db: Database, session: string, query: string): boolean {
  const written = JSON.stringify(query).slice(1, -1);
  return (db.all("SELECT body FROM messages WHERE session = ?", session) as readonly { body: string }[]).some(
    ({ body }) => contains(body, written) && contains(textIn(body), query),
  );
}

/** A message that is damaged says nothing; whoever reads its session is told. */
function textIn(body: string): string {
  try {
    return (JSON.parse(body) as Message).text;
  } catch {
    return "";
  }
}
