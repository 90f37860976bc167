import type { AuditEntry } from "../../core/audit.ts";
import { hashIn, linesOf, NONE, sha256 } from "./chain.ts";
import type { Head } from "./head.ts";

/** Where a file goes on, and what has to be said first. */
export interface Joint {
  readonly lines: number;
  readonly hash: string;
  /** Ends a torn line. */
  readonly close: "\n" | "";
  readonly entries: readonly AuditEntry[];
}

/** For a file that is as long as the database knows. */
export const jointTo = ({ lines, hash }: Head): Joint => ({ lines, hash, close: "", entries: [] });

const HEADER: AuditEntry = { kind: "header", format: 1 };

/**
 * For a file that is not as long as the database knows: it is new, its last writer was killed, or somebody was at it. What
 * is there stays; a line that says what was expected and what was found goes before the next one, and whether that was a
 * kill or worse is for the check to say.
 */
export function jointFor(bytes: Buffer, expected: Head): Joint {
  const { lines, torn } = linesOf(bytes);
  const last = lines.at(-1);
  const header = lines.length === 0 ? [HEADER] : [];
  if (last === undefined && expected.lines === 0) return { lines: 0, hash: NONE, close: "", entries: header };
  const hash = lines.reduceRight<string | undefined>((found, line) => found ?? hashIn(line), undefined);
  const remnant = torn && last !== undefined && hashIn(last) === undefined ? sha256(last) : null;
  const recovered: AuditEntry = {
    kind: "recovered",
    expected: { lines: expected.lines, hash: expected.hash },
    found: { lines: lines.length, bytes: bytes.length },
    torn: remnant,
  };
  return {
    lines: lines.length,
    hash: hash ?? NONE,
    close: torn ? "\n" : "",
    entries: [...header, recovered],
  };
}
