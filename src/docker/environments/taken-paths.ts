import type { IncomingMessage } from "node:http";
import path from "node:path";
import { addAbortSignal } from "node:stream";
import { EXIT, HarnessError } from "../../core/errors.ts";
import { untar } from "../../core/tar-archive.ts";
import { visible } from "../../core/visible.ts";
import { type Engine, engineFailure, isMissing } from "../engine.ts";
import { unstartedContainer } from "../unstarted-container.ts";
import { quoted } from "./dockerfile-copies.ts";
import { globOf, isPattern, MatchSteps, TooManySteps } from "./context-files.ts";
import type { TakenPaths } from "./recipe.ts";

/**
 * Files that a line takes from a stage: the engine reads them as an archive from a container of that image, which is
 * never started, and the image that gets the files unpacks the archive. The host only passes the bytes on.
 */

export interface TakeOptions {
  readonly engine: Engine;
  /** The id of the stage's image. */
  readonly image: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Runs a line in the container that gets the files. */
  readonly run: (script: string, input?: AsyncIterable<Uint8Array>) => Promise<void>;
  readonly signal: AbortSignal;
}

/** On the disk of the layer, because its /run and /tmp are small. */
const UNPACKED = "/.harness-taken";

/** Unpacks everything into a temporary folder, copies it from there to its place, and leaves nothing behind. */
export async function takePaths(
  { paths, to, mode, owner }: TakenPaths,
  { engine, image, labels, run, signal }: TakeOptions,
): Promise<void> {
  await using source = await unstartedContainer(engine, { image, labels });
  const placing: string[] = [];
  const named = await matchedPaths(source.container, paths, signal);
  if (named.length > paths.length && !to.endsWith("/"))
    throw failed("several files need a folder as their target, with a slash at its end");
  for (const [at, wanted] of named.entries()) {
    signal.throwIfAborted();
    const { name, isFolder, bytes } = await archiveOf(source.container, wanted);
    const unpacked = `${UNPACKED}/${at}`;
    await run(
      `rm -rf ${unpacked} && mkdir -p ${unpacked} && tar -x -p --numeric-owner -f - -C ${unpacked}`,
      bytes,
    );
    const there = quoted(`${unpacked}/${name}`);
    placing.push(isFolder ? contentInto(there, quoted(to)) : fileTo(there, to, path.posix.basename(wanted)));
  }
  const lines = [
    ...(owner === undefined ? [] : [`chown -hR ${quoted(owner)} ${UNPACKED}/*`]),
    ...(mode === undefined ? [] : [`find ${UNPACKED} -type f -exec chmod ${mode} {} +`]),
    ...placing,
    `rm -rf ${UNPACKED}`,
  ];
  for (const script of scriptsOf(lines)) await run(script);
}

/** Characters: a program gets no argument of 128 KiB or more. */
const MAX_SCRIPT = 40_000;

function scriptsOf(lines: readonly string[]): readonly string[] {
  const scripts: string[] = [];
  for (const line of lines) {
    const last = scripts.at(-1);
    if (last === undefined || last.length + line.length > MAX_SCRIPT) scripts.push(line);
    else scripts[scripts.length - 1] = `${last}\n${line}`;
  }
  return scripts;
}

/** Copies the content of a folder, not the folder itself: an existing folder keeps its owner and mode. */
const contentInto = (folder: string, to: string): string => `mkdir -p ${to}
for each in ${folder}/* ${folder}/.[!.]* ${folder}/..?*; do
  if [ -e "$each" ] || [ -L "$each" ]; then cp -a "$each" ${to}; fi
done`;

function fileTo(file: string, to: string, name: string): string {
  if (to.endsWith("/")) return `mkdir -p ${quoted(to)}\ncp -a ${file} ${quoted(to + name)}`;
  const at = quoted(to);
  return `mkdir -p ${quoted(path.posix.dirname(to))}
if [ -d ${at} ]; then cp -a ${file} ${quoted(`${to}/${name}`)}; else cp -a ${file} ${at}; fi`;
}

const MAX_TAKEN = 500;

/** A pattern may find nothing if another path of the line is found: patterns are used to name optional files. */
async function matchedPaths(
  container: ArchiveSource,
  paths: readonly string[],
  signal: AbortSignal,
): Promise<readonly string[]> {
  const patterns = paths.filter(isPattern).map(patternOf);
  const steps = new MatchSteps();
  // A folder is read as a whole, and only once, whatever is looked for there.
  for (const [folder, there] of Map.groupBy(patterns, (each) => each.folder))
    await searchFolder(container, { folder, patterns: there, steps, signal });
  const found = new Map(patterns.map((each) => [each.pattern, each.found.toSorted()]));
  const named = paths.flatMap((each) => found.get(each) ?? [each]);
  if (named.length === 0) throw absent(paths.join(" "));
  if (named.length > MAX_TAKEN) throw tooMany(paths);
  return named;
}

const tooMany = (patterns: readonly string[]): HarnessError =>
  failed(`more than ${MAX_TAKEN} files match ${visible(patterns.join(" "))}`);

interface Pattern {
  readonly pattern: string;
  /** The names before the first one that is a pattern. */
  readonly folder: string;
  readonly fits: readonly ((name: string, steps: MatchSteps) => boolean)[];
  readonly found: string[];
}

function patternOf(pattern: string): Pattern {
  const names = pattern.split("/").slice(1);
  const first = names.findIndex(isPattern);
  const folder = `/${names.slice(0, first).join("/")}`;
  return { pattern, folder, fits: names.slice(first).map(nameMatcher), found: [] };
}

interface FolderSearch {
  readonly folder: string;
  readonly patterns: readonly Pattern[];
  /** For all searches of one line. */
  readonly steps: MatchSteps;
  readonly signal: AbortSignal;
}

/** The most names that are looked at in one folder. */
const MAX_NAMES = 500_000;
/** For its reader, a file in an image may have no end: one of zeros costs the image nothing. */
const LOOK_MS = 15 * 60_000;
/** A file that engines put at the top of any container. */
const ENGINES_OWN = ".dockerenv";

/** As COPY does: a star stays within one name and also finds names with a leading dot; links below are not followed. */
async function searchFolder(
  container: ArchiveSource,
  { folder, patterns, steps, signal }: FolderSearch,
): Promise<void> {
  const { bytes } = await archiveOf(container, folder);
  const inTime = AbortSignal.timeout(LOOK_MS);
  addAbortSignal(AbortSignal.any([signal, inTime]), bytes);
  let looked = 0;
  try {
    for await (const entry of untar(bytes)) {
      if (Buffer.isBuffer(entry)) continue;
      looked += 1;
      if (looked > MAX_NAMES) throw failed(`${visible(folder)} has more than ${MAX_NAMES} names to look at`);
      const parts = entry.name
        .toString("utf8")
        .split("/")
        .filter((name) => name !== "" && name !== ".");
      const below = folder === "/" ? parts : parts.slice(1);
      if (folder !== "/" || below[0] !== ENGINES_OWN)
        for (const each of patterns) recordMatch(each, below, steps);
    }
  } catch (thrown) {
    signal.throwIfAborted();
    if (thrown instanceof HarnessError) throw thrown;
    if (thrown instanceof TooManySteps) throw failed(`${namesOf(patterns)}: ${thrown.message}`);
    if (inTime.aborted)
      throw failed(`${visible(folder)} could not be searched within ${LOOK_MS / 60_000} minutes`);
    throw engineFailure(`reading ${visible(folder)} of an image`, thrown);
  } finally {
    bytes.destroy();
  }
}

const namesOf = (patterns: readonly Pattern[]): string =>
  visible(patterns.map(({ pattern }) => pattern).join(" "));

/** Records a path that the pattern finds. */
function recordMatch(
  { pattern, folder, fits, found }: Pattern,
  below: readonly string[],
  steps: MatchSteps,
): void {
  if (below.length !== fits.length || !fits.every((fit, at) => fit(below[at] ?? "", steps))) return;
  if (below.some((name) => name.includes("\uFFFD"))) throw failed(`${visible(pattern)} finds an odd name`);
  if (found.length === MAX_TAKEN) throw tooMany([pattern]);
  found.push(`${folder === "/" ? "" : folder}/${below.join("/")}`);
}

function nameMatcher(name: string): (each: string, steps: MatchSteps) => boolean {
  const glob = isPattern(name) ? globOf(name, false) : undefined;
  return (each, steps) => glob?.matches(each, steps) ?? each === name;
}

interface ArchiveSource {
  readonly getArchive: (options: { path: string }) => Promise<unknown>;
}

interface Archive {
  /** The name of the archive's top entry. */
  readonly name: string;
  readonly isFolder: boolean;
  readonly bytes: IncomingMessage;
}

/** Mode bits in Go's own notation, which engines use. */
const FOLDER = 0x8000_0000;
const LINK = 0x0800_0000;

/** For a path that is a link, reads the target, as the engine finds it within the image. */
async function archiveOf(container: ArchiveSource, wanted: string): Promise<Archive> {
  let at = wanted;
  for (let links = 0; ; links += 1) {
    const bytes = (await container.getArchive({ path: at }).catch((thrown: unknown) => {
      throw isMissing(thrown) ? absent(wanted) : engineFailure(`reading ${wanted} of an image`, thrown);
    })) as IncomingMessage;
    const { mode, linkTarget } = statOf(bytes);
    if ((mode & LINK) === 0) return { name: path.posix.basename(at), isFolder: (mode & FOLDER) !== 0, bytes };
    bytes.destroy();
    if (links > 0 || linkTarget === "" || linkTarget === "/") throw absent(wanted);
    at = linkTarget;
  }
}

function statOf({ headers }: IncomingMessage): { readonly mode: number; readonly linkTarget: string } {
  const stat = Buffer.from(String(headers["x-docker-container-path-stat"] ?? ""), "base64").toString("utf8");
  const { mode, linkTarget } = JSON.parse(stat) as Readonly<Record<string, unknown>>;
  return { mode: Number(mode), linkTarget: typeof linkTarget === "string" ? linkTarget : "" };
}

const absent = (wanted: string): HarnessError =>
  failed(`the stage has no ${visible(wanted)}, which a line takes from it`);

const failed = (why: string): HarnessError =>
  new HarnessError(EXIT.failed, `set-up failed: ${why}`, "fix the recipe, then: harness env build");
