import type { Connection } from "../../sqlite/connection.ts";

export interface VectorIdentity {
  readonly model: string;
  readonly dimension: number;
}

/**
 * `codes` are a sixteenth of `numbers`, packed so that a process that asks once need not read the vectors themselves.
 * A set's places are those of its chunks.
 */
const TABLES = [
  "CREATE TABLE vectors_about (model TEXT NOT NULL, dimension INTEGER NOT NULL) STRICT",
  "CREATE TABLE vectors (chunk INTEGER PRIMARY KEY, codes INTEGER NOT NULL, numbers BLOB NOT NULL) STRICT",
  `CREATE TABLE vector_codes (
    number INTEGER PRIMARY KEY,
    count INTEGER NOT NULL,
    chunks BLOB NOT NULL,
    codes BLOB NOT NULL
  ) STRICT`,
];

/** What the vectors in this database are of; undefined where there are none. */
export function vectorsAbout(database: Connection): VectorIdentity | undefined {
  const there = database.get("SELECT 1 AS yes FROM sqlite_schema WHERE name = 'vectors_about'");
  if (there === undefined) return undefined;
  const row = database.get("SELECT model, dimension FROM vectors_about");
  return row === undefined ? undefined : { model: String(row["model"]), dimension: Number(row["dimension"]) };
}

/** Vectors of two models have nothing to do with each other: those of another one go. Within a transaction. */
export function adoptVectors(database: Connection, { model, dimension }: VectorIdentity): void {
  const about = vectorsAbout(database);
  if (about?.model === model && about.dimension === dimension) return;
  if (about === undefined) for (const table of TABLES) database.run(table);
  else clearVectors(database);
  database.run("DELETE FROM vectors_about");
  database.run("INSERT INTO vectors_about VALUES (?, ?)", model, dimension);
}

export function clearVectors(database: Connection): void {
  if (vectorsAbout(database) === undefined) return;
  database.run("DELETE FROM vectors");
  database.run("DELETE FROM vector_codes");
}
