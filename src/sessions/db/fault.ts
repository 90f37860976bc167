import { rmSync, statSync } from "node:fs";
import type { DatabaseSync } from "node:sqlite";
import { suspicionOf } from "./database.ts";

/** Up to this size all of it is looked at, which takes a few milliseconds; above it, when a failure has cast doubt on it. */
const CHECKED_BYTES = 2 * 1024 * 1024;

/** Damage that SQLite itself does not see until it comes upon it, in a database that could be opened. */
export function faultOf(sqlite: DatabaseSync, file: string): string | undefined {
  return missingPart(sqlite, file) ?? brokenStructure(sqlite, file);
}

/** What is read first can only be too little for what is read last: others may write meanwhile. */
function missingPart(sqlite: DatabaseSync, file: string): string | undefined {
  const wanted = numberFrom(sqlite, "page_count") * numberFrom(sqlite, "page_size");
  // Pages that are still in the log are not in the file yet.
  if (sizeOf(`${file}-wal`) > 0) return undefined;
  const size = sizeOf(file);
  if (wanted === 0 && size > 0) return "it is too short to be one";
  return size < wanted ? `${wanted - size} bytes are missing at its end` : undefined;
}

function brokenStructure(sqlite: DatabaseSync, file: string): string | undefined {
  const suspicion = suspicionOf(file);
  const suspected = statSync(suspicion, { throwIfNoEntry: false }) !== undefined;
  if (sizeOf(file) > CHECKED_BYTES && !suspected) return undefined;
  const said = String(sqlite.prepare("PRAGMA quick_check(1)").get()?.["quick_check"]);
  if (said === "ok" && suspected) rmSync(suspicion, { force: true });
  return said === "ok" ? undefined : said;
}

const numberFrom = (sqlite: DatabaseSync, pragma: "page_count" | "page_size"): number =>
  Number(sqlite.prepare(`PRAGMA ${pragma}`).get()?.[pragma]);

const sizeOf = (file: string): number => statSync(file, { throwIfNoEntry: false })?.size ?? 0;
