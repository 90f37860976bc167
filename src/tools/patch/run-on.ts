import type { Box, ExecResult } from "../../core/ports.ts";
import type { FileRefusal } from "../endings.ts";

const STEP_MS = 20_000;
/** Once a first file is written the rest follows, whoever cancels: half a change is worse than all of it. */
const NEVER = new AbortController().signal;

/** A small program that changes a path: why it did not, or undefined when it did. */
export async function runOn(
  box: Box,
  words: readonly string[],
  path: string,
): Promise<FileRefusal | undefined> {
  const keep = { head: 2000, tail: 0 };
  const result = await box.exec({ words, env: { LC_ALL: "C" }, timeoutMs: STEP_MS, keep }, NEVER);
  return result.exit_code === 0 ? undefined : refusalOf(result, path);
}

const CODES: readonly (readonly [RegExp, string])[] = [
  [/Read-only file system$/, "EROFS"],
  [/Device or resource busy$/, "EBUSY"],
  [/Operation not permitted$/, "EPERM"],
  [/Permission denied$/, "EACCES"],
  [/No space left on device$/, "ENOSPC"],
  [/Not a directory$/, "ENOTDIR"],
];
const WALLS: ReadonlySet<string> = new Set(["EROFS", "EBUSY", "EPERM"]);

function refusalOf({ stderr, reason }: ExecResult, path: string): FileRefusal {
  const said = Buffer.from(stderr.head).toString("utf8").trim();
  const why = said === "" ? reason : said;
  const code = CODES.find(([words]) => words.test(why))?.[1] ?? why;
  return { kind: WALLS.has(code) ? "blocked" : "failed", cause: "filesystem", code, path, reason: why };
}
