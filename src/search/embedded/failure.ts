import { EXIT, errorCode, HarnessError, reasonOf } from "../../core/errors.ts";

/** How long one process waits for another that writes. */
export const PATIENCE_MS = 10_000;

/** What SQLite and the file system have to say that a person can do something about. */
type Trouble = "full" | "read-only" | "damaged" | "another" | "busy" | "unreachable" | "other";

/** Primary result codes of SQLite; extended ones hold them in their lowest byte. */
const OF_SQLITE: Readonly<Record<number, Trouble>> = {
  // What is asked is always the same: where SQLite knows no such table or column, they were other ones that it read.
  1: "damaged",
  5: "busy",
  6: "busy",
  8: "read-only",
  10: "unreachable",
  11: "damaged",
  13: "full",
  14: "unreachable",
  26: "damaged",
};

const OF_SYSTEM: Readonly<Record<string, Trouble>> = {
  ENOSPC: "full",
  EDQUOT: "full",
  EROFS: "read-only",
  EACCES: "read-only",
  EPERM: "read-only",
  ENOTDIR: "unreachable",
  EEXIST: "unreachable",
  ENOENT: "unreachable",
  ELOOP: "unreachable",
  EIO: "unreachable",
  // What was compressed here and cannot be expanded, or encoded and cannot be read.
  ERR_INDEX_DAMAGED: "damaged",
  ERR_INDEX_ANOTHER: "another",
};

export function troubleOf(thrown: unknown): Trouble {
  const code = errorCode(thrown) ?? "";
  if (code !== "ERR_SQLITE_ERROR") {
    // Lengths and compressed bytes that cannot be are of what was read.
    const isOfBytes = thrown instanceof RangeError || /^Z(?:STD)?_/.test(code);
    return isOfBytes ? "damaged" : (OF_SYSTEM[code] ?? "other");
  }
  return OF_SQLITE[sqliteCode(thrown) & 0xff] ?? "other";
}

function sqliteCode(thrown: unknown): number {
  if (typeof thrown !== "object" || thrown === null || !("errcode" in thrown)) return 0;
  return typeof thrown.errcode === "number" ? thrown.errcode : 0;
}

/** Thrown where the bytes of the index do not say what they must. */
export class DamagedIndex extends Error {
  override readonly name = "DamagedIndex";
  readonly code = "ERR_INDEX_DAMAGED";
}

/** Thrown to who only reads, where what is there is nothing that this version could read. */
export class AnotherIndex extends Error {
  override readonly name = "AnotherIndex";
  readonly code = "ERR_INDEX_ANOTHER";
}

/** The failure in a person's words; an abort and what is a HarnessError already stay what they are. */
export function indexFailure(thrown: unknown, folder: string): unknown {
  if (thrown instanceof HarnessError) return thrown;
  if (thrown instanceof Error && thrown.name === "AbortError") return thrown;
  const [why, remedy] = {
    full: ["no space is left on the disk", `df -h ${folder}`],
    "read-only": ["it may not be written", `ls -ld ${folder}`],
    damaged: ["it is damaged", `rm -r ${folder}; the next search makes it again`],
    another: ["it is none that can be read as it is", "harness index"],
    busy: [`another harness has kept it locked for ${PATIENCE_MS / 1000} s`, "try again when it is done"],
    unreachable: ["it cannot be reached", `ls -ld ${folder}; df -h ${folder}`],
    other: ["it failed", "HARNESS_DEBUG=1 shows where"],
  }[troubleOf(thrown)] as [string, string];
  return new HarnessError(
    EXIT.failed,
    `search index in ${folder}: ${why} (${reasonOf(thrown)})`,
    remedy,
    thrown,
  );
}
