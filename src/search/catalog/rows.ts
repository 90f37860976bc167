import { DamagedIndex } from "../index-failure.ts";
import type { RuleFile, Stamp } from "../read/found.ts";
import type { Role, Skip } from "../words.ts";

/** A file as it was read last. */
export interface CatalogFile {
  readonly stamp: Stamp;
  /** Nothing could have changed it since without another stamp. */
  readonly settled: boolean;
  /** Of its content; null where that was not read. */
  readonly hash: string | null;
  /** Of what cut it. */
  readonly version: string;
  readonly language: string | null;
  readonly role: Role | null;
  readonly chunks: number;
  /** Why it has none. */
  readonly skip: Skip | null;
}

/** What is known of the whole. */
export interface CatalogFacts {
  /** The last update ran to its end. */
  readonly whole: boolean;
  /** Which store holds the chunks, and the model of its vectors. */
  readonly store: "embedded" | "qdrant" | null;
  readonly model: string | null;
  readonly dimension: number | null;
  /** When an update ended last, in milliseconds since 1970; 0 for never. */
  readonly updated: number;
  /** What has no row and is unreadable: files whose name is no text, folders that may not be looked into. */
  readonly nameless: number;
  /** How the rules of what is left out are understood. */
  readonly rules: string;
}

export const NO_FACTS: CatalogFacts = {
  whole: false,
  store: null,
  model: null,
  dimension: null,
  updated: 0,
  nameless: 0,
  rules: "",
};

export type Row = Readonly<Record<string, number | string | null>>;

/** What is written as JSON, one fact a row. */
export function factsOf(rows: readonly Row[]): CatalogFacts {
  const known: Record<string, unknown> = {};
  try {
    for (const { key, value } of rows) known[String(key)] = JSON.parse(String(value));
  } catch (thrown) {
    throw new DamagedIndex("what is known of it cannot be read", { cause: thrown });
  }
  return { ...NO_FACTS, ...(known as Partial<CatalogFacts>) };
}

export const numbersOf = ({
  size,
  mtimeMs,
  ctimeMs,
  ino,
}: Stamp): readonly [number, number, number, number] => [size, mtimeMs, ctimeMs, ino];

const stampOf = (row: Row): Stamp => ({
  size: Number(row["size"]),
  mtimeMs: Number(row["mtime"]),
  ctimeMs: Number(row["ctime"]),
  ino: Number(row["ino"]),
});

/** In this order: there may be hundreds of thousands, and rows as lists are read in half the time of rows with names. */
export const FILE_COLUMNS =
  "path, size, mtime, ctime, ino, settled, hash, version, language, role, chunks, skip";

export type FileColumns = readonly [
  path: string,
  size: number,
  mtime: number,
  ctime: number,
  ino: number,
  settled: number,
  hash: string | null,
  version: string,
  language: string | null,
  role: Role | null,
  chunks: number,
  skip: Skip | null,
];

/** Of one file; `sure` is 1 where the stamp tells whether it is the one that was read. A list, as all of them are read. */
export type KnownStamp = readonly [
  path: string,
  size: number,
  mtimeMs: number,
  ctimeMs: number,
  ino: number,
  sure: number,
];

export function fileOf(columns: FileColumns): readonly [path: string, file: CatalogFile] {
  const [path, size, mtimeMs, ctimeMs, ino, settled, hash, version, language, role, chunks, skip] = columns;
  const stamp = { size, mtimeMs, ctimeMs, ino };
  return [path, { stamp, settled: settled === 1, hash, version, language, role, chunks, skip }];
}

export const ruleOf = (row: Row): RuleFile => ({
  path: String(row["path"]),
  stamp: stampOf(row),
  text: String(row["text"]),
});
