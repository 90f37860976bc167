import { setImmediate as breath } from "node:timers/promises";
import { EXIT, HarnessError } from "../../core/errors.ts";
import type { Box, Entry } from "../../core/ports.ts";
import {
  brokenOutput,
  closedIn,
  FORMAT,
  isBelow,
  type Names,
  recordsOf,
  runStreaming,
  unreadableListing,
} from "./find-records.ts";
import type { Found, Stamp } from "./found-file.ts";
import { NEVER_ENTERED } from "./sieve.ts";

/** Maximum entries of one workspace. Their names and stamps take some hundred megabytes. */
const MAX_ENTRIES = 1_000_000;

/** Maximum characters of all their paths. */
const MAX_LETTERS = 2 ** 28;
/** A path that a program can open has at most half as many folders as bytes. */
const MAX_DEPTH = 2048;

export const TO_MAX_DEPTH: readonly string[] = ["-maxdepth", String(MAX_DEPTH)];

/** `find` arguments that print everything in this format except below folders that are never entered. */
export const allAs = (format: string): readonly string[] => [
  "(",
  "-type",
  "d",
  "(",
  ...NEVER_ENTERED.flatMap((name, index) => [...(index === 0 ? [] : ["-o"]), "-name", name]),
  ")",
  "-prune",
  ")",
  "-o",
  ..."( -type d ! ( -readable -executable ) -prune -printf".split(" "),
  closedIn(format),
  ")",
  "-o",
  "-printf",
  format,
];

const FIND = ["find", ".", "-mindepth", "1", ...TO_MAX_DEPTH, ...allAs(FORMAT)];

/**
 * Everything below the workspace, folders before their contents; undefined for a path that is not valid text or too
 * long to be opened. Uses one GNU `find`, or lists folder by folder if the image has none.
 */
export async function* entriesIn(box: Box, signal: AbortSignal): AsyncGenerator<Names> {
  let count = 0;
  let letters = 0;
  const find = runStreaming(box, { words: FIND, folder: box.workspace }, signal);
  for await (const names of recordsOf(find.output)) {
    letters = names.reduce((sum, found) => sum + (found?.path.length ?? 0), letters);
    if ((count += names.length) > MAX_ENTRIES || letters > MAX_LETTERS) throw tooMany();
    yield names;
  }
  const end = await find.ended;
  signal.throwIfAborted();
  // `find` ends with 1 for a folder that it may not read, and for an expression that it does not know.
  if (end.result.exit_code === 0 || (end.result.exit_code === 1 && count > 0)) return;
  if (end.result.cause !== null && end.result.cause !== "program") throw brokenOutput("listing files", end);
  yield* listByFolder(box, signal);
}

/** The box reports times in whole seconds only, so no file is recognized by its stamp. */
async function* listByFolder(box: Box, signal: AbortSignal): AsyncGenerator<Names> {
  const folders = [""];
  let count = 0;
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    signal.throwIfAborted();
    const result = await box.list(folder === "" ? "." : folder);
    if (result.kind !== "ok") {
      if (folder === "") throw new HarnessError(EXIT.failed, result.reason, "harness doctor");
      yield [{ path: folder, kind: "closed", stamp: NEVER }];
      continue;
    }
    const names: (Found | undefined)[] = [];
    for (const entry of result.value) {
      if ((count += 1) > MAX_ENTRIES) throw tooMany();
      const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
      if (!isBelow(path)) throw unreadableListing();
      if (!path.isWellFormed()) names.push(undefined);
      else {
        names.push({ path, kind: entry.kind, stamp: stampOf(entry) });
        if (entry.kind === "folder" && !NEVER_ENTERED.includes(entry.name)) folders.push(path);
      }
    }
    yield names;
    await breath();
  }
}

const NEVER: Stamp = { size: 0, mtimeMs: 0, ctimeMs: 0, ino: 0 };

const stampOf = ({ size, modified }: Entry): Stamp => ({
  size,
  mtimeMs: modified * 1000,
  ctimeMs: 0,
  ino: 0,
});

const tooMany = (): HarnessError =>
  new HarnessError(
    EXIT.failed,
    `there are too many files and folders for one index: more than ${MAX_ENTRIES}, or names too long to keep`,
    "index one folder: harness index DIR",
  );
