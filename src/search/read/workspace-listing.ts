import { setImmediate as breath } from "node:timers/promises";
import { EXIT, HarnessError } from "../../core/errors.ts";
import type { Box } from "../../core/ports.ts";
import type { Skip } from "../index-words.ts";
import {
  type Found,
  isSameStamp,
  isSettled,
  type Listing,
  type PathRules,
  type RuleFile,
  type Stamp,
} from "./found-file.ts";
import { entriesIn } from "./host-names.ts";
import { contentsOf } from "./read-contents.ts";
import { folderOf, isRuleFile, OWN_IGNORE, Sieve } from "./sieve.ts";

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
  const found: Found[] = [];
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

/** Filters entries found in `folders` and below: keeps files that the sieve accepts. */
export async function filterEntries(
  found: readonly Found[],
  { sieve, folders = [""] }: { readonly sieve: Sieve; readonly folders?: Iterable<string> },
  signal: AbortSignal,
): Promise<Pick<Listing, "files" | "skipped" | "closed">> {
  const files = new Map<string, Stamp>();
  const skipped = new Map<string, { readonly stamp: Stamp; readonly why: Skip }>();
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
const MAX_LETTERS = 2 ** 22;
const MAX_FILES = 10_000;

interface RuleReading {
  readonly box: Box;
  /** Rule files as last read; one with the same stamp is not read again. */
  readonly known: readonly RuleFile[];
  /** Characters of a rule file that are obeyed. */
  readonly most: number;
  /** When the files were found. */
  readonly at: number;
  readonly signal: AbortSignal;
}

/**
 * The ignore files that were found, with their texts. Fails if one cannot be read, since it would be unknown what to
 * leave out.
 */
async function ruleFilesOf(found: readonly Found[], reading: RuleReading): Promise<readonly RuleFile[]> {
  const there = found.filter(({ path }) => isRuleFile(path));
  const own = there.find(({ path }) => path === OWN_IGNORE);
  if (own !== undefined && own.kind !== "file") throw noFile();
  const files = there.filter(({ kind }) => kind === "file");
  if (files.length > MAX_FILES) throw tooMuch();
  const texts = keptTexts(files, reading);
  let letters = [...texts.values()].reduce((sum, text) => sum + text.length, 0);
  const unread = files.map(({ path }) => path).filter((path) => !texts.has(path));
  for await (const { path, text } of readTexts(unread, reading)) {
    if ((letters += text.length) > MAX_LETTERS) throw tooMuch();
    texts.set(path, text);
  }
  if (own !== undefined && !texts.has(OWN_IGNORE)) throw noFile();
  return files.map(({ path, stamp }) => ({ path, stamp, text: texts.get(path) ?? "" }));
}

/** Texts of the rule files that cannot have changed since. */
function keptTexts(files: readonly Found[], { known, at }: RuleReading): Map<string, string> {
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
    `remove some, or index one folder: harness index DIR   (at most ${MAX_FILES} files and ${MAX_LETTERS / 2 ** 20} MiB of rules)`,
  );
