import { setImmediate as breath } from "node:timers/promises";
import { EXIT, HarnessError } from "../../core/errors.ts";
import type { Box, ListedEntry } from "../../core/ports.ts";
import type { Skip } from "../search-store.ts";
import {
  brokenOutput,
  closedIn,
  contentsOf,
  FORMAT,
  type FoundFile,
  isBelow,
  isSameStamp,
  isSettled,
  type Listing,
  type Names,
  type PathRules,
  recordsOf,
  type RuleFile,
  runStreaming,
  type FileStamp,
  unreadableListing,
} from "./box-files.ts";
import { folderOf, isRuleFile, NEVER_ENTERED, OWN_IGNORE, Sieve } from "./workspace-scan.ts";

/** The files of a workspace, listed in the box: all of them, or those of some folders. */

interface ListingRequest {
  readonly box: Box;
  readonly rules: PathRules;
  /** Bytes of the largest file that is read. */
  readonly largest: number;
  /** Rule files as last read; one with the same stamp is not read again. */
  readonly known: readonly RuleFile[];
  readonly signal: AbortSignal;
}

const SLICE_MS = 10;

/** Lists the files of a workspace in one pass through the box. */
export async function listingIn(request: ListingRequest): Promise<Listing> {
  const at = Date.now();
  const found: FoundFile[] = [];
  let nameless = 0;
  for await (const names of entriesIn(request.box, request.signal))
    for (const each of names)
      if (each === undefined) nameless += 1;
      else found.push(each);
  const rules = await ruleFilesOf(found, { ...request, most: request.rules.mostOfList, at });
  const texts = new Map(rules.map(({ path, text }) => [path, text]));
  const sieve = new Sieve(request.rules, texts, request.largest);
  return { ...(await filterEntries(found, { sieve }, request.signal)), rules, nameless, at };
}

/** Maximum entries of one workspace. Their names and stamps take some hundred megabytes. */
const MAX_ENTRIES = 1_000_000;

/** Maximum characters of all their paths. */
const MAX_LETTERS = 2 ** 28;
/** A path that a program can open has at most half as many folders as bytes. */
const MAX_DEPTH = 2048;

const TO_MAX_DEPTH: readonly string[] = ["-maxdepth", String(MAX_DEPTH)];

/** `find` arguments that print everything in this format except below folders that are never entered. */
const allAs = (format: string): readonly string[] => [
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
async function* entriesIn(box: Box, signal: AbortSignal): AsyncGenerator<Names> {
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
    const names: (FoundFile | undefined)[] = [];
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

const NEVER: FileStamp = { size: 0, mtimeMs: 0, ctimeMs: 0, ino: 0 };

const stampOf = ({ size, modified }: ListedEntry): FileStamp => ({
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

/** Maximum bytes of the folder names in one listing: they are words of a command. */
const MAX_LETTERS_OF_FOLDERS = 2 ** 15;
/** Maximum entries of one partial listing; with more, everything is listed. */
const MAX_ENTRIES_IN_PART = 100_000;

const START = "./";
/** Paths include the starting point. */
const WITH_START = FORMAT.replace("%P", "%p");

/**
 * Lists these folders themselves, or everything below them, folders before their contents, with one `find`. Undefined
 * if the listing is incomplete: a folder is gone or may not be read, a name is not valid text, or the image has no GNU
 * find.
 */
export async function entriesOfFolders(
  box: Box,
  folders: readonly string[],
  { deep, signal }: { readonly deep: boolean; readonly signal: AbortSignal },
): Promise<readonly FoundFile[] | undefined> {
  if (folders.length === 0) return [];
  const starts = folders.map((folder) => (folder === "" ? "." : `${START}${folder}`));
  if (starts.reduce((sum, start) => sum + Buffer.byteLength(start), 0) > MAX_LETTERS_OF_FOLDERS)
    return undefined;
  const depth = deep ? TO_MAX_DEPTH : ["-maxdepth", "1"];
  const words = ["find", ...starts, "-mindepth", "1", ...depth, ...allAs(WITH_START)];
  const find = runStreaming(box, { words, folder: box.workspace }, signal);
  const entries: FoundFile[] = [];
  for await (const names of recordsOf(find.output, START))
    for (const found of names) {
      if (found === undefined || found.kind === "closed" || entries.length >= MAX_ENTRIES_IN_PART)
        return undefined;
      entries.push(found);
    }
  const { result } = await find.ended;
  signal.throwIfAborted();
  return result.exit_code === 0 ? entries : undefined;
}

/** Filters entries found in `folders` and below: keeps files that the sieve accepts. */
export async function filterEntries(
  found: readonly FoundFile[],
  { sieve, folders = [""] }: { readonly sieve: Sieve; readonly folders?: Iterable<string> },
  signal: AbortSignal,
): Promise<Pick<Listing, "files" | "skipped" | "closed">> {
  const files = new Map<string, FileStamp>();
  const skipped = new Map<string, { readonly stamp: FileStamp; readonly why: Skip }>();
  const entered = new Set(folders);
  let closed = 0;
  let slice = performance.now();
  for (const { path, kind, stamp } of found) {
    if (performance.now() - slice > SLICE_MS) {
      await breath();
      signal.throwIfAborted();
      slice = performance.now();
    }
    if (!entered.has(folderOf(path))) continue;
    if (kind === "folder" && sieve.enters(path)) entered.add(path);
    if (kind === "closed" && sieve.enters(path)) closed += 1;
    if (kind !== "file") continue;
    const what = sieve.file(path, stamp.size);
    if (what === "read") files.set(path, stamp);
    else if (what !== undefined) skipped.set(path, { stamp, why: what });
  }
  return { files, skipped, closed };
}

/** Maximum bytes of a rule file that are read; a longer file would not be obeyed further. */
const MAX_FILE_LENGTH = 2 ** 19;
/** Maximum characters of all rule files together, which are held in memory as rules. */
const MAX_RULE_LETTERS = 2 ** 22;
const MAX_FILES = 10_000;

interface RuleReading extends Pick<ListingRequest, "box" | "known" | "signal"> {
  /** Characters of a rule file that are obeyed. */
  readonly most: number;
  /** When the files were found. */
  readonly at: number;
}

/**
 * The ignore files that were found, with their texts. Fails if one cannot be read, since it would be unknown what to
 * leave out.
 */
async function ruleFilesOf(found: readonly FoundFile[], reading: RuleReading): Promise<readonly RuleFile[]> {
  const there = found.filter(({ path }) => isRuleFile(path));
  const own = there.find(({ path }) => path === OWN_IGNORE);
  if (own !== undefined && own.kind !== "file") throw noFile();
  const files = there.filter(({ kind }) => kind === "file");
  if (files.length > MAX_FILES) throw tooMuch();
  const texts = keptTexts(files, reading);
  let letters = [...texts.values()].reduce((sum, text) => sum + text.length, 0);
  const unread = files.map(({ path }) => path).filter((path) => !texts.has(path));
  for await (const { path, text } of readTexts(unread, reading)) {
    if ((letters += text.length) > MAX_RULE_LETTERS) throw tooMuch();
    texts.set(path, text);
  }
  if (own !== undefined && !texts.has(OWN_IGNORE)) throw noFile();
  return files.map(({ path, stamp }) => ({ path, stamp, text: texts.get(path) ?? "" }));
}

/** Texts of the rule files that cannot have changed since. */
function keptTexts(files: readonly FoundFile[], { known, at }: RuleReading): Map<string, string> {
  const before = new Map(known.map((each) => [each.path, each]));
  const texts = new Map<string, string>();
  for (const { path, stamp } of files) {
    const same = before.get(path);
    if (same !== undefined && isSameStamp(same.stamp, stamp) && isSettled(stamp, at))
      texts.set(path, same.text);
  }
  return texts;
}

/** Reads one character more than the limit, so that the caller sees that a text was longer. */
async function* readTexts(
  paths: readonly string[],
  { box, most, signal }: RuleReading,
): AsyncGenerator<{ readonly path: string; readonly text: string }> {
  // Any text of this length has the same effect: `.harnessignore` hides everything, the others nothing.
  const tooLong = " ".repeat(most + 1);
  for await (const { path, bytes } of contentsOf(box, paths, { most: MAX_FILE_LENGTH, signal }))
    yield { path, text: bytes === null ? tooLong : bytes.toString("utf8").slice(0, most + 1) };
}

const noFile = (): HarnessError =>
  new HarnessError(
    EXIT.usage,
    `${OWN_IGNORE} cannot be read, so it is unknown which files to leave out`,
    "make it a readable plain text file, or remove it",
  );

const tooMuch = (): HarnessError =>
  new HarnessError(
    EXIT.failed,
    "the .gitignore files hold too many rules, so it is unknown which files to leave out",
    `remove some, or index one folder: harness index DIR   (at most ${MAX_FILES} files and ${MAX_RULE_LETTERS / 2 ** 20} MiB of rules)`,
  );
