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

/** Of a rule file. What is longer says nothing that would be obeyed. */
const LONGEST_RULE_FILE = 2 ** 19;
const MOST_RULE_FILES = 10_000;
const SLICE_MS = 10;

/** Which files there are, by one look through the box. */
export async function listingIn(request: ListingRequest): Promise<Listing> {
  const at = Date.now();
  const found: Found[] = [];
  let nameless = 0;
  for await (const each of entriesIn(request.box, request.signal)) {
    if (each === undefined) nameless += 1;
    else found.push(each);
  }
  const rules = await ruleFiles(request, found, at);
  const texts = new Map(rules.map(({ path, text }) => [path, text]));
  const sieve = new Sieve(request.rules, texts, request.largest);
  return { ...(await sifted(found, sieve, request.signal)), rules, nameless, at };
}

async function sifted(
  found: readonly Found[],
  sieve: Sieve,
  signal: AbortSignal,
): Promise<Pick<Listing, "files" | "skipped">> {
  const files = new Map<string, Stamp>();
  const skipped = new Map<string, { readonly stamp: Stamp; readonly why: Skip }>();
  const entered = new Set([""]);
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
  const files = there.filter(({ kind }) => kind === "file").slice(0, MOST_RULE_FILES);
  const before = new Map(known.map((each) => [each.path, each]));
  const texts = new Map<string, string>();
  for (const { path, stamp } of files) {
    const same = before.get(path);
    if (same !== undefined && isSameStamp(same.stamp, stamp) && isSettled(stamp, at))
      texts.set(path, same.text);
  }
  const unread = files.map(({ path }) => path).filter((path) => !texts.has(path));
  for await (const { path, bytes } of contentsOf(box, unread, { most: LONGEST_RULE_FILE, signal }))
    texts.set(path, bytes === null ? TOO_LONG : bytes.toString("utf8"));
  if (own !== undefined && !texts.has(OWN_IGNORE)) throw noFile();
  return files.map(({ path, stamp }) => ({ path, stamp, text: texts.get(path) ?? "" }));
}

/** As whoever obeys it takes any text of this length: `.harnessignore` hides everything, the others nothing. */
const TOO_LONG = " ".repeat(LONGEST_RULE_FILE);

const noFile = (): HarnessError =>
  new HarnessError(
    EXIT.usage,
    `${OWN_IGNORE} cannot be read, so nobody knows what is to be left out`,
    "make it a plain text file that you may read, or remove it",
  );
