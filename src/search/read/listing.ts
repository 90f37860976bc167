import { setImmediate as breath } from "node:timers/promises";
import { EXIT, HarnessError } from "../../core/errors.ts";
import type { Box } from "../../core/ports.ts";
import type { Skip } from "../words.ts";
import { contentsOf } from "./contents.ts";
import {
  type Found,
  isSameStamp,
  isSettled,
  type Listing,
  type PathRules,
  type RuleFile,
  type Stamp,
} from "./found.ts";
import { entriesIn } from "./names.ts";
import { folderOf, isRuleFile, OWN_IGNORE, Sieve } from "./sieve.ts";

export interface ListingRequest {
  readonly box: Box;
  readonly rules: PathRules;
  /** Bytes of the largest file that is read. */
  readonly largest: number;
  /** Rule files as they were read last; one with the same stamp is not read again. */
  readonly known: readonly RuleFile[];
  readonly signal: AbortSignal;
}

/** Bytes of a rule file. What is longer says nothing that would be obeyed. */
const LONGEST_RULE_FILE = 2 ** 19;
/** Characters that are kept of one: by one more than the policy obeys it sees that there were more. */
const KEPT_OF_RULES = 2 ** 16 + 1;
/** Of all rule files together, which are held in memory as rules. */
const MOST_OF_RULES = 2 ** 22;
const MOST_RULE_FILES = 10_000;
const SLICE_MS = 10;

/** Which files there are, by one look through the box. */
export async function listingIn(request: ListingRequest): Promise<Listing> {
  const at = Date.now();
  const found: Found[] = [];
  let nameless = 0;
  for await (const names of entriesIn(request.box, request.signal))
    for (const each of names)
      if (each === undefined) nameless += 1;
      else found.push(each);
  const rules = await ruleFiles(request, found, at);
  const texts = new Map(rules.map(({ path, text }) => [path, text]));
  const sieve = new Sieve(request.rules, texts, request.largest);
  return { ...(await sifted(found, { sieve }, request.signal)), rules, nameless, at };
}

/** What counts of what was found in folders that are looked into, and below them. */
export async function sifted(
  found: readonly Found[],
  { sieve, folders = [""] }: { readonly sieve: Sieve; readonly folders?: Iterable<string> },
  signal: AbortSignal,
): Promise<Pick<Listing, "files" | "skipped">> {
  const files = new Map<string, Stamp>();
  const skipped = new Map<string, { readonly stamp: Stamp; readonly why: Skip }>();
  const entered = new Set(folders);
  let slice = performance.now();
  for (const { path, kind, stamp } of found) {
    if (performance.now() - slice > SLICE_MS) {
      await breath();
      signal.throwIfAborted();
      slice = performance.now();
    }
    if (!entered.has(folderOf(path))) continue;
    if (kind === "folder" && sieve.enters(path)) entered.add(path);
    if (kind !== "file") continue;
    const what = sieve.file(path, stamp.size);
    if (what === "read") files.set(path, stamp);
    else if (what !== undefined) skipped.set(path, { stamp, why: what });
  }
  return { files, skipped };
}

async function ruleFiles(
  { box, known, signal }: ListingRequest,
  found: readonly Found[],
  at: number,
): Promise<readonly RuleFile[]> {
  const there = found.filter(({ path }) => isRuleFile(path));
  const own = there.find(({ path }) => path === OWN_IGNORE);
  if (own !== undefined && own.kind !== "file") throw noFile();
  const files = there.filter(({ kind }) => kind === "file");
  if (files.length > MOST_RULE_FILES) throw tooManyRules();
  const before = new Map(known.map((each) => [each.path, each]));
  const texts = new Map<string, string>();
  for (const { path, stamp } of files) {
    const same = before.get(path);
    if (same !== undefined && isSameStamp(same.stamp, stamp) && isSettled(stamp, at))
      texts.set(path, same.text);
  }
  let length = [...texts.values()].reduce((sum, text) => sum + text.length, 0);
  const unread = files.map(({ path }) => path).filter((path) => !texts.has(path));
  for await (const { path, text } of rulesIn(box, unread, signal)) {
    if ((length += text.length) > MOST_OF_RULES) throw tooManyRules();
    texts.set(path, text);
  }
  if (own !== undefined && !texts.has(OWN_IGNORE)) throw noFile();
  return files.map(({ path, stamp }) => ({ path, stamp, text: texts.get(path) ?? "" }));
}

async function* rulesIn(
  box: Box,
  paths: readonly string[],
  signal: AbortSignal,
): AsyncGenerator<{ readonly path: string; readonly text: string }> {
  for await (const { path, bytes } of contentsOf(box, paths, { most: LONGEST_RULE_FILE, signal }))
    yield { path, text: bytes === null ? TOO_LONG : bytes.toString("utf8").slice(0, KEPT_OF_RULES) };
}

/** As whoever obeys it takes any text of this length: `.harnessignore` hides everything, the others nothing. */
const TOO_LONG = " ".repeat(KEPT_OF_RULES);

const noFile = (): HarnessError =>
  new HarnessError(
    EXIT.usage,
    `${OWN_IGNORE} cannot be read, so nobody knows what is to be left out`,
    "make it a plain text file that you may read, or remove it",
  );

const tooManyRules = (): HarnessError =>
  new HarnessError(
    EXIT.failed,
    "there is too much of ignore rules in .gitignore files: nobody can tell what is to be left out",
    `remove some, or index one folder: harness index DIR   (at most ${MOST_RULE_FILES} files and ${MOST_OF_RULES / 2 ** 20} MiB of rules)`,
  );
