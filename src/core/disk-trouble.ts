import { errorCode } from "./errors.ts";

/** Failures of SQLite and the file system that a person can repair. */
export type DiskTrouble =
  | "full"
  | "read-only"
  | "damaged"
  | "busy"
  /** A folder or device is in the place of the file. */
  | "taken"
  | "unreachable"
  | "other";

/** Primary result codes of SQLite; extended codes contain them in their lowest byte. */
const OF_SQLITE: Readonly<Record<number, DiskTrouble>> = {
  5: "busy",
  6: "busy",
  8: "read-only",
  10: "unreachable",
  11: "damaged",
  13: "full",
  14: "unreachable",
  26: "damaged",
};

const OF_SYSTEM: Readonly<Record<string, DiskTrouble>> = {
  ENOSPC: "full",
  EDQUOT: "full",
  EROFS: "read-only",
  EACCES: "read-only",
  EPERM: "read-only",
  EISDIR: "taken",
  ENOTDIR: "unreachable",
  EEXIST: "unreachable",
  ENOENT: "unreachable",
  ELOOP: "unreachable",
  EIO: "unreachable",
};

export function diskTroubleOf(thrown: unknown): DiskTrouble {
  const sqlite = sqliteCodeOf(thrown);
  return (sqlite === undefined ? OF_SYSTEM[errorCode(thrown) ?? ""] : OF_SQLITE[sqlite]) ?? "other";
}

/** The primary result code of an SQLite error; undefined for any other error. */
export function sqliteCodeOf(thrown: unknown): number | undefined {
  if (errorCode(thrown) !== "ERR_SQLITE_ERROR") return undefined;
  const { errcode } = thrown as { readonly errcode?: unknown };
  return typeof errcode === "number" ? errcode & 0xff : 0;
}
