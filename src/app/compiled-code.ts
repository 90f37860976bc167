/*
 * Files of the bundle, loaded with what V8 compiled of them before. Node keeps such code, too, but as it is when a file
 * has been read: what is called is compiled when it is called, by every process anew, and that was a seventh of a run.
 * Here it is kept as it is when a command ends, in one file for each command.
 */
import { closeSync, existsSync, readdirSync, readFileSync, readSync, rmSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { constants, Script } from "node:vm";
import { compiledIn } from "../config/places.ts";
import { makeFolder } from "../platform/folders.ts";
import { openRegularSync, replaceFileSync } from "../platform/safe-files.ts";

/** Loads a file of the bundle, once. */
export type LoadFile = (file: string) => object;

/** Compiled code of the files that one command loads. */
interface Kept {
  /** Whether this start is to add to it what it has compiled beyond. */
  readonly isYoung: boolean;
  readonly times: number;
  readonly files: ReadonlyMap<string, Buffer>;
}

const NOTHING: Kept = { isYoung: true, times: 0, files: new Map() };

/** The first start of a command may have ended early, and none calls all that another does: so many keep it, then one a day. */
const YOUNG_TIMES = 3;
const DAY_MS = 24 * 60 * 60 * 1000;

/** A number: the length of the index. Then the index, and the code of each file; V8 wants each at a multiple of eight. */
const HEAD_BYTES = 8;
const alignToEight = (length: number): number => Math.ceil(length / 8) * 8;

interface Index {
  readonly times: number;
  readonly files: readonly (readonly [name: string, length: number])[];
}

/** V8 believes what it is given: so it is this user's alone, and whole. */
function readKept(file: string): Kept {
  const read = readOwn(file);
  if (read === undefined || read.bytes.length < HEAD_BYTES) return NOTHING;
  const { bytes, age } = read;
  const length = bytes.readUInt32LE(0);
  const files = new Map<string, Buffer>();
  let at = alignToEight(HEAD_BYTES + length);
  try {
    const index = JSON.parse(bytes.toString("utf8", HEAD_BYTES, HEAD_BYTES + length)) as Index;
    for (const [name, each] of index.files) {
      files.set(name, bytes.subarray(at, at + each));
      at += alignToEight(each);
    }
    if (at !== bytes.length) return NOTHING;
    return { isYoung: index.times < YOUNG_TIMES || age > DAY_MS, times: index.times, files };
  } catch {
    return NOTHING;
  }
}

const OTHERS_WRITE = 0o022;

function readOwn(file: string): { readonly bytes: Buffer; readonly age: number } | undefined {
  let descriptor: number | undefined;
  try {
    const opened = openRegularSync(file, "refuse");
    const { stats } = opened;
    descriptor = opened.descriptor;
    if (stats.uid !== process.getuid?.() || (stats.mode & OTHERS_WRITE) !== 0) return undefined;
    const bytes = Buffer.allocUnsafeSlow(stats.size);
    if (readSync(descriptor, bytes, 0, bytes.length, 0) !== bytes.length) return undefined;
    return { bytes, age: Date.now() - stats.mtimeMs };
  } catch {
    return undefined;
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}

/** Whole or not at all, whatever happens to the machine; where there is no room for it, the next start compiles anew. */
function writeKept(file: string, times: number, codes: ReadonlyMap<string, Buffer>): void {
  const index: Index = { times, files: [...codes].map(([name, code]) => [name, code.length]) };
  const text = JSON.stringify(index);
  const head = Buffer.alloc(alignToEight(HEAD_BYTES + Buffer.byteLength(text)));
  head.writeUInt32LE(Buffer.byteLength(text), 0);
  head.write(text, HEAD_BYTES);
  const padded = [...codes.values()].flatMap((code) => [
    code,
    Buffer.alloc(alignToEight(code.length) - code.length),
  ]);
  try {
    makeFolder(path.dirname(file));
    replaceFileSync(file, Buffer.concat([head, ...padded]), {
      aside: `${file}.${process.pid}`,
      lasts: "content",
    });
    removeOld(path.dirname(path.dirname(file)));
  } catch {
    // No room, or no place: nothing depends on it.
  }
}

/** Bundles whose code stays: whoever builds them makes many a day. */
const MAX_BUNDLES = 4;

/** What was kept for bundles goes that were used before these. */
function removeOld(folder: string): void {
  const found = readdirSync(folder).map((name) => path.join(folder, name));
  const newestFirst = found.toSorted((a, b) => statSync(b).mtimeMs - statSync(a).mtimeMs);
  for (const each of newestFirst.slice(MAX_BUNDLES)) rmSync(each, { recursive: true, force: true });
}

const NAME = /^[a-z]+$/;

/** The command that the words name: each loads other files, and calls other functions of those that it shares. */
function commandName(dist: string, [first = "", second = ""]: readonly string[]): string {
  if (!NAME.test(first)) return "other";
  const folder = path.join(dist, "commands", first);
  if (!existsSync(folder)) return existsSync(`${folder}.cjs`) ? first : "other";
  return NAME.test(second) && existsSync(path.join(folder, `${second}.cjs`)) ? `${first}-${second}` : first;
}

/** Undefined for who wants none kept, where there is no place for it, and for what is answered before it were read. */
function placeOf({ dist, bundle, words }: Bundle): string | undefined {
  const { NODE_DISABLE_COMPILE_CACHE: none, NODE_COMPILE_CACHE: named } = process.env;
  if (none === "1" || (words.length === 1 && words[0] === "--version")) return undefined;
  // What else lies there is not ours to remove.
  const folder = named === undefined || named === "" ? compiledIn(process.env) : path.join(named, "harness");
  return folder === undefined ? undefined : path.join(folder, bundle, commandName(dist, words));
}

type Wrapped = (...given: readonly [object, (wanted: string) => unknown, object, string, string]) => void;

export interface Bundle {
  /** Its folder. */
  readonly dist: string;
  /** What it is made of, as a word: code of another one is of no use. */
  readonly bundle: string;
  readonly words: readonly string[];
}

/** What loads a file of the bundle, once. Whatever such a file asks for besides is Node's own, or a package that is no part of it. */
export function bundleLoader(bundle: Bundle): LoadFile {
  const place = placeOf(bundle);
  const kept = place === undefined ? NOTHING : readKept(place);
  const scripts = new Map<string, Script>();
  if (place !== undefined) process.on("exit", () => keepCode(place, kept, scripts));
  const loaded = new Map<string, { exports: object }>();
  const load = (file: string): object => {
    const before = loaded.get(file);
    if (before !== undefined) return before.exports;
    const module = { exports: {} };
    loaded.set(file, module);
    const name = path.relative(bundle.dist, file);
    const script = compiled(file, kept.files.get(name));
    scripts.set(name, script);
    const folder = path.dirname(file);
    const require = (wanted: string): unknown =>
      wanted.startsWith(".")
        ? load(path.join(folder, wanted))
        : (process.getBuiltinModule(wanted) ?? createRequire(file)(wanted));
    (script.runInThisContext() as Wrapped)(module.exports, require, module, file, folder);
    return module.exports;
  };
  return load;
}

function compiled(file: string, code: Buffer | undefined): Script {
  const text = readFileSync(file, "latin1");
  return new Script(`(function (exports, require, module, __filename, __dirname) {${text}\n})`, {
    filename: file,
    ...(code === undefined ? {} : { cachedData: code }),
    importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
  });
}

function keepCode(place: string, kept: Kept, scripts: ReadonlyMap<string, Script>): void {
  const isKnown = [...scripts].every(
    ([name, script]) => kept.files.has(name) && script.cachedDataRejected !== true,
  );
  if (isKnown && !kept.isYoung) return;
  const codes = [...scripts].map(([name, script]) => [name, script.createCachedData()] as const);
  // What this start had no need of stays, or starts that need different files would each take the other's away.
  writeKept(place, kept.times + 1, new Map([...kept.files, ...codes]));
}
