import { EXIT, errorCode, HarnessError, reasonOf } from "../../core/errors.ts";

type Trouble = "full" | "read-only" | "damaged" | "busy" | "unreachable" | "other";

/** Primary result codes of SQLite; extended ones hold them in their lowest byte. */
const OF_SQLITE: Readonly<Record<number, Trouble>> = {
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
  ENOENT: "unreachable",
  ENOTDIR: "unreachable",
  EEXIST: "unreachable",
  EIO: "unreachable",
};

function troubleOf(thrown: unknown): Trouble {
  const code = errorCode(thrown) ?? "";
  if (code !== "ERR_SQLITE_ERROR") return OF_SYSTEM[code] ?? "other";
  const { errcode } = thrown as { readonly errcode?: unknown };
  return (typeof errcode === "number" ? OF_SQLITE[errcode & 0xff] : undefined) ?? "other";
}

export const isBusy = (thrown: unknown): boolean => troubleOf(thrown) === "busy";
export const isDamaged = (thrown: unknown): boolean => troubleOf(thrown) === "damaged";

/** In a person's words; what is a HarnessError already stays one. */
export function indexFailure(thrown: unknown, folder: string): HarnessError {
  if (thrown instanceof HarnessError) return thrown;
  const [why, remedy] = {
    full: ["no space is left on the disk", `make room (df -h ${folder}), then the same command goes on`],
    "read-only": ["it may not be written", `ls -ld ${folder}`],
    damaged: ["it is damaged", "harness index   builds it anew"],
    busy: ["another harness keeps it locked", "try again when it is done"],
    unreachable: ["it cannot be reached", `ls -ld ${folder}; df -h ${folder}`],
    other: ["it failed", "HARNESS_DEBUG=1 shows where"],
  }[troubleOf(thrown)] as [string, string];
  return new HarnessError(EXIT.failed, `index in ${folder}: ${why} (${reasonOf(thrown)})`, remedy, thrown);
}
