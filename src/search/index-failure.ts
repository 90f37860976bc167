import { type DiskTrouble, diskTroubleOf, sqliteCodeOf } from "../core/disk-trouble.ts";
import { EXIT, errorCode, HarnessError, reasonOf } from "../core/errors.ts";

/** How long one process waits for another that writes. */
export const PATIENCE_MS = 10_000;

/** Beside what any database may have: what stands there is whole, and none that this version could read. */
type Trouble = DiskTrouble | "another";

export function troubleOf(thrown: unknown): Trouble {
  if (thrown instanceof AnotherIndex) return "another";
  // What was compressed here and cannot be expanded, or encoded and cannot be read.
  if (thrown instanceof DamagedIndex || thrown instanceof RangeError) return "damaged";
  if (/^Z(?:STD)?_/.test(errorCode(thrown) ?? "")) return "damaged";
  // What is asked is always the same: where SQLite knows no such table or column, they were other ones that it read.
  return sqliteCodeOf(thrown) === SQL_ERROR ? "damaged" : diskTroubleOf(thrown);
}

const SQL_ERROR = 1;

/** Thrown where the bytes of the index do not say what they must. */
export class DamagedIndex extends Error {
  override readonly name = "DamagedIndex";
}

/** Thrown to who only reads, where what is there is nothing that this version could read. */
export class AnotherIndex extends Error {
  override readonly name = "AnotherIndex";
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
    taken: ["something that is no file has the name of one", `ls -ld ${folder}/*; move it away`],
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
