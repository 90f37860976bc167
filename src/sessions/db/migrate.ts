import { createHash } from "node:crypto";
import type { DatabaseSync } from "node:sqlite";
import { EXIT, HarnessError } from "../../core/errors.ts";

/** The hash is of the step's text, so that two versions that call different steps by one number find out. */
const LEDGER = `
CREATE TABLE IF NOT EXISTS migrations (
  number INTEGER PRIMARY KEY,
  hash TEXT NOT NULL,
  at INTEGER NOT NULL
) STRICT`;

export type Standing = "empty" | "foreign" | "behind" | "current";

/** How far the database is; only reads. One that this version would misread ends with 2. */
export function standingOf(sqlite: DatabaseSync, steps: readonly string[], file: string): Standing {
  const tables = sqlite.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all();
  if (tables.length === 0) return "empty";
  if (!tables.some(({ name }) => name === "migrations")) return "foreign";
  const done = sqlite.prepare("SELECT number, hash FROM migrations ORDER BY number").all();
  if (done.length > steps.length)
    throw newer(file, `it has step ${done.length}, this one knows ${steps.length}`);
  const odd = done.findIndex(({ number, hash }, at) => number !== at + 1 || hash !== hashOf(steps[at] ?? ""));
  if (odd !== -1) throw newer(file, `its step ${odd + 1} is another one`);
  return done.length < steps.length ? "behind" : "current";
}

/** All missing steps or none. */
export function migrate(sqlite: DatabaseSync, steps: readonly string[], now: number): void {
  sqlite.exec("BEGIN IMMEDIATE");
  try {
    sqlite.exec(LEDGER);
    const done = Number(sqlite.prepare("SELECT count(*) AS n FROM migrations").get()?.["n"]);
    const note = sqlite.prepare("INSERT INTO migrations VALUES (?, ?, ?)");
    for (const [at, step] of steps.entries()) {
      if (at < done) continue;
      sqlite.exec(step);
      note.run(at + 1, hashOf(step), now);
    }
    sqlite.exec("COMMIT");
  } catch (thrown) {
    if (sqlite.isTransaction) sqlite.exec("ROLLBACK");
    throw thrown;
  }
}

const hashOf = (text: string): string => createHash("sha256").update(text).digest("hex");

const newer = (file: string, how: string): HarnessError =>
  new HarnessError(
    EXIT.usage,
    `sessions in ${file} were made by a newer harness: ${how}; nothing was touched`,
    "use that version, or another XDG_STATE_HOME",
  );
