import { setImmediate as breath } from "node:timers/promises";
import { EXIT, HarnessError } from "../../core/errors.ts";
import { textOfBytes } from "../../core/byte-text.ts";
import type { Box, Entry } from "../../core/ports.ts";
import type { Found, Stamp } from "./found.ts";
import { NEVER_ENTERED } from "./sieve.ts";
import { broken, running } from "./stream.ts";

/** Entries of one workspace. Names and numbers of so many take some hundred megabytes. */
const MOST_ENTRIES = 1_000_000;

/** Characters of all their paths. */
const MOST_LETTERS = 2 ** 28;
/** Bytes of a path that a program can open; its folders are no deeper than half of that. */
const LONGEST_PATH = 4095;
const DEEPEST = 2048;
/** Of one record; longer ones no `find` writes for paths of that depth. */
const LONGEST_RECORD = 2 ** 20;

/** What a box may have found: kind, size, times, number, path. */
const FIELDS = 6;
const FORMAT = String.raw`%y\0%s\0%T@\0%C@\0%i\0%P\0`;

const FIND = [
  "find",
  ".",
  "-mindepth",
  "1",
  "-maxdepth",
  String(DEEPEST),
  "(",
  "-type",
  "d",
  "(",
  ...NEVER_ENTERED.flatMap((name, index) => [...(index === 0 ? [] : ["-o"]), "-name", name]),
  ")",
  "-prune",
  ")",
  "-o",
  "-printf",
  FORMAT,
];

/** As many as come together: to wait for each by itself takes longer than to read it. */
type Names = readonly (Found | undefined)[];

/**
 * Everything below the workspace, folders before what is in them; a path that is no text, or too long to be opened, is given as undefined. By one
 * `find` of GNU's; where the image has none, folder by folder through the box.
 */
export async function* entriesIn(box: Box, signal: AbortSignal): AsyncGenerator<Names> {
  let count = 0;
  let letters = 0;
  const find = running(box, { words: FIND, folder: box.workspace }, signal);
  for await (const names of recordsOf(find.output)) {
    letters = names.reduce((sum, found) => sum + (found?.path.length ?? 0), letters);
    if ((count += names.length) > MOST_ENTRIES || letters > MOST_LETTERS) throw tooMany();
    yield names;
  }
  const end = await find.ended;
  signal.throwIfAborted();
  // It ends with 1 for a folder that it may not look into, and for an expression that it does not know.
  if (end.result.exit_code === 0 || (end.result.exit_code === 1 && count > 0)) return;
  if (end.result.cause !== null && end.result.cause !== "program") throw broken("the listing of files", end);
  yield* listed(box, signal);
}

async function* recordsOf(output: AsyncIterable<Buffer>): AsyncGenerator<Names> {
  let rest: Buffer = Buffer.alloc(0);
  for await (const piece of output) {
    const all = rest.length === 0 ? piece : Buffer.concat([rest, piece]);
    const names: (Found | undefined)[] = [];
    let from = 0;
    for (let end = recordEnd(all, from); end !== -1; end = recordEnd(all, from)) {
      names.push(foundIn(all.subarray(from, end)));
      from = end;
    }
    yield names;
    rest = all.subarray(from);
    if (rest.length > LONGEST_RECORD) throw unreadableListing();
  }
}

/** Behind the sixth NUL. */
function recordEnd(bytes: Buffer, from: number): number {
  let at = from;
  for (let field = 0; field < FIELDS; field += 1) {
    at = bytes.indexOf(0, at) + 1;
    if (at === 0) return -1;
  }
  return at;
}

const KINDS: Readonly<Record<string, Found["kind"]>> = { f: "file", d: "folder", l: "link" };

function foundIn(record: Buffer): Found | undefined {
  const text = textOfBytes(record);
  const [kind = "", size = "", modified = "", changed = "", ino = "", path = ""] = text.split("\0");
  const stamp = { size: Number(size), mtimeMs: millis(modified), ctimeMs: millis(changed), ino: Number(ino) };
  if (Number.isNaN(stamp.size + stamp.mtimeMs + stamp.ctimeMs + stamp.ino) || !isBelow(path))
    throw unreadableListing();
  return canBeOpened(path) ? { path, kind: KINDS[kind] ?? "odd", stamp } : undefined;
}

const canBeOpened = (path: string): boolean => path.isWellFormed() && Buffer.byteLength(path) <= LONGEST_PATH;

/** As Node counts the same time, to the last bit: whole seconds and nanoseconds apart. */
function millis(text: string): number {
  const dot = text.indexOf(".");
  if (dot === -1) return Number(text) * 1000;
  const part = text.slice(dot + 1, dot + 10);
  return Number(text.slice(0, dot)) * 1000 + Number(part.length === 9 ? part : part.padEnd(9, "0")) / 1e6;
}

/** A path that leads nowhere else, whoever wrote the listing. */
const isBelow = (path: string): boolean => !OUTSIDE.test(path);

/** A name that is none, or the folder itself, or the one above. */
const OUTSIDE = /(?:^|\/)\.{0,2}(?:\/|$)/;

/** Seconds are all that it knows of times, so that nothing is known again by them. */
async function* listed(box: Box, signal: AbortSignal): AsyncGenerator<Names> {
  const folders = [""];
  let count = 0;
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    signal.throwIfAborted();
    const result = await box.list(folder === "" ? "." : folder);
    if (result.kind !== "ok") {
      if (folder === "") throw new HarnessError(EXIT.failed, result.reason, "harness doctor");
      continue;
    }
    const names: (Found | undefined)[] = [];
    for (const entry of result.value) {
      if ((count += 1) > MOST_ENTRIES) throw tooMany();
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

const stampOf = ({ size, modified }: Entry): Stamp => ({
  size,
  mtimeMs: modified * 1000,
  ctimeMs: 0,
  ino: 0,
});

const unreadableListing = (): HarnessError =>
  new HarnessError(
    EXIT.failed,
    "the listing of files from the box cannot be read",
    "try again; with an image of your own: harness config set image null",
  );

const tooMany = (): HarnessError =>
  new HarnessError(
    EXIT.failed,
    `there are more than ${MOST_ENTRIES} files and folders, or as much of names: too many for one index`,
    "index one folder of them: harness index DIR   (or leave folders out in .gitignore)",
  );
