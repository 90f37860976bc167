import { randomBytes } from "node:crypto";
import {
  chmodSync,
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  lstatSync,
  opendirSync,
  openSync,
  renameSync,
  type Stats,
} from "node:fs";
import path from "node:path";
import { setImmediate as breath } from "node:timers/promises";
import { quote } from "shell-quote";
import { errorCode } from "../../core/errors.ts";
import { foldName, protectedName } from "../../core/file-names.ts";
import { bytesOfText, textOfBytes } from "../../core/raw-data.ts";
import { DIRECTORY, O_PATH } from "./safe-paths.ts";
import type { SharedCopies } from "./shared-copies.ts";

/** An entry, given by the number of its part and its path in that part. */
interface TreePosition {
  readonly part: number;
  readonly rel: string;
}

/** The changes to a tree, so that they can be undone. */
interface TreeChanges {
  readonly cuts: readonly TreePosition[];
  readonly modes: readonly (TreePosition & { readonly mode: number; readonly folder: boolean })[];
  readonly renames: readonly (TreePosition & { readonly name: string; readonly inert: string })[];
  /** The name of a part in the tree's top folder; the top folder itself is part 0. */
  readonly partName: (part: number) => string;
}

/** Limits that keep every path from a part short and flat enough for every program. */
const MAX_COUNT = { levels: 48, characters: 1500 } as const;

/**
 * What becomes of executable files that have further names: copies are made inert; they stay as they are, because the
 * tree is about to be copied; or no name of theirs lies outside of the tree, so they are made inert themselves.
 */
type Copies = SharedCopies | "later" | "none";

/**
 * Makes a tree inert in place: nothing in it can be executed, and no program obeys it, whoever enters it. Names that
 * programs look for are changed, at any depth. What lies too deep for paths is cut off and put beside the rest in the
 * top folder. Folders are entered through descriptors, so that no link is followed, whatever a process does there
 * meanwhile. `straighten` does the first half, which a copy to another file system needs too.
 */
export class Inert implements TreeChanges {
  readonly cuts: TreePosition[] = [];
  readonly modes: (TreePosition & { readonly mode: number; readonly folder: boolean })[] = [];
  readonly renames: (TreePosition & { readonly name: string; readonly inert: string })[] = [];
  readonly #token = randomBytes(6).toString("hex");
  #copies: Copies = "none";
  #steps = 0;

  readonly partName = (part: number): string => `part-${this.#token}-${part}`;

  /** Unlocks what its owner may not read, removes the right to execute, and cuts off what lies too deep. */
  async straighten(top: string, copies: Copies): Promise<void> {
    this.#copies = copies;
    this.#allow(top, { part: 0, rel: "" }, true);
    await inFolder(top, async (above) => {
      await this.#straightenIn(above, above, { part: 0, rel: "" });
      for (let part = 1; part <= this.cuts.length; part += 1)
        await inFolder(above(this.partName(part)), (inner) =>
          this.#straightenIn(inner, above, { part, rel: "" }),
        );
    });
  }

  async #straightenIn(at: EntryPath, top: EntryPath, { part, rel }: TreePosition, levels = 1): Promise<void> {
    for (const name of namesIn(at)) {
      await this.#step();
      if (part === 0 && rel === "" && name.startsWith(`part-${this.#token}-`)) continue;
      const spot = { part, rel: rel === "" ? name : `${rel}/${name}` };
      const stats = lstatEntry(at(name));
      if (stats?.isFile() === true) await this.#allowFile(at, name, spot, stats);
      if (stats?.isDirectory() !== true || !unlessGone(() => this.#allow(at(name), spot, true))) continue;
      if (levels < MAX_COUNT.levels && spot.rel.length < MAX_COUNT.characters)
        await inFolder(at(name), (inner) => this.#straightenIn(inner, top, spot, levels + 1));
      else if (unlessGone(() => renameEntry(at(name), top(this.partName(this.cuts.length + 1)))))
        this.cuts.push(spot);
    }
  }

  /** Another name of the file may be one of the user's; then a copy is made inert. */
  async #allowFile(at: EntryPath, name: string, spot: TreePosition, stats: Stats): Promise<void> {
    const shared = this.#copies !== "none" && stats.nlink > 1 && (stats.mode & 0o111) !== 0;
    if (!shared) return void unlessGone(() => this.#allow(at(name), spot, false));
    // A copy that other names share may be inert already.
    this.modes.push({ ...spot, mode: stats.mode & 0o777, folder: false });
    if (typeof this.#copies === "string") return;
    const own = `part-${this.#token}-copy`;
    await this.#copies.file(at(name), at(own));
    renameEntry(at(own), at(name));
    unlessGone(() => this.#allow(at(name), undefined, false));
  }

  /** Renames what a program might look for. The tree must have been straightened. */
  async rename(top: string): Promise<void> {
    await inFolder(top, async (above) => {
      await this.#renameIn(above, { part: 0, rel: "" });
      for (let part = 1; part <= this.cuts.length; part += 1)
        await inFolder(above(this.partName(part)), (inner) => this.#renameIn(inner, { part, rel: "" }));
    });
  }

  async #renameIn(at: EntryPath, { part, rel }: TreePosition): Promise<void> {
    const known: string[] = [];
    const folders: string[] = [];
    for (const name of namesIn(at)) {
      await this.#step();
      if (part === 0 && rel === "" && name.startsWith(`part-${this.#token}-`)) continue;
      if (isObeyed(name)) known.push(name);
      else if (lstatEntry(at(name))?.isDirectory() === true) folders.push(name);
    }
    const below = async (now: string, name: string): Promise<void> =>
      inFolder(at(now), (inner) =>
        this.#renameIn(inner, { part, rel: rel === "" ? name : `${rel}/${name}` }),
      );
    for (const name of folders) await below(name, name);
    for (const name of known) {
      const inert = this.#inertName(at, name);
      if (!unlessGone(() => renameEntry(at(name), at(inert)))) continue;
      this.renames.push({ part, rel, name, inert });
      if (lstatEntry(at(inert))?.isDirectory() === true) await below(inert, name);
    }
  }

  #inertName(at: EntryPath, name: string): string {
    // Neither the beginning nor the end of the new name is one that a program looks for.
    const plain = `_${name}.held`;
    const free = bytesOfText(plain).length <= MAX_NAME_LENGTH && lstatEntry(at(plain)) === undefined;
    return free ? plain : `held-${this.#token}-${this.renames.length}`;
  }

  /** Lets the owner enter a folder and read a file; nobody may execute a file. */
  #allow(place: string, spot: TreePosition | undefined, folder: boolean): void {
    const linux = process.platform === "linux";
    const fd = openSync(bytesOfText(place), constants.O_NOFOLLOW | (linux ? O_PATH : constants.O_NONBLOCK));
    try {
      const stats = fstatSync(fd);
      const mode = stats.mode & 0o7777;
      const wanted = folder ? mode | 0o700 : (mode & 0o666) | 0o400;
      if (mode === wanted || (!stats.isDirectory() && !stats.isFile()) || stats.isDirectory() !== folder)
        return;
      if (linux) chmodSync(`/proc/self/fd/${fd}`, wanted);
      else fchmodSync(fd, wanted);
      if (spot !== undefined) this.modes.push({ ...spot, mode: mode & 0o777, folder });
    } finally {
      closeSync(fd);
    }
  }

  async #step(): Promise<void> {
    this.#steps += 1;
    if (this.#steps % 1000 === 0) await breath();
  }
}

const MAX_NAME_LENGTH = 255;

/** Names that make a folder a git directory, and git's settings. */
const GIT: ReadonlySet<string> = new Set([
  "head",
  "config",
  "config.worktree",
  "commondir",
  "gitdir",
  "hooks",
]);

const isObeyed = (name: string): boolean =>
  name.startsWith(".") || GIT.has(foldName(name)) || protectedName(name, true) !== undefined;

/** The path of an entry in a folder that is held open. */
type EntryPath = (name: string) => string;

async function inFolder(folder: string, work: (at: EntryPath) => Promise<void>): Promise<void> {
  let fd = 0;
  if (!unlessGone(() => void (fd = openSync(bytesOfText(folder), DIRECTORY)))) return;
  try {
    await work((name) =>
      process.platform === "linux" ? `/proc/self/fd/${fd}/${name}` : path.join(folder, name),
    );
  } finally {
    closeSync(fd);
  }
}

/** False if a process removed the entry meanwhile: then no program can obey it. */
function unlessGone(work: () => void): boolean {
  try {
    work();
    return true;
  } catch (thrown) {
    if (errorCode(thrown) === "ENOENT") return false;
    throw thrown;
  }
}

const lstatEntry = (place: string): Stats | undefined =>
  lstatSync(bytesOfText(place), { throwIfNoEntry: false });

const renameEntry = (from: string, to: string): void => renameSync(bytesOfText(from), bytesOfText(to));

function* namesIn(at: EntryPath): Iterable<string> {
  // Names have one character for each byte.
  const opened = opendirSync(bytesOfText(at(".")), { encoding: "latin1", bufferSize: 1024 });
  try {
    for (let entry = opened.readSync(); entry !== null; entry = opened.readSync())
      yield textOfBytes(Buffer.from(entry.name, "latin1"));
  } finally {
    opened.closeSync();
  }
}

/** Something that was taken out of the workspace, and where it is now. */
export interface TakenOut {
  readonly from: string;
  readonly to: string;
  /** The changes that were made to it there. */
  readonly done: TreeChanges;
}

/**
 * A script for sh that restores a thing with its names and modes. Names can do no harm: every word stands in single
 * quotes. The script works beside the original place, moves the thing there as its last step and stops at the first
 * failure, so that no program obeys any of it before it is whole.
 */
export function takeBackScript({ from, to, done }: TakenOut): Buffer {
  const name = shellWord(`./${path.basename(from)}`);
  const lines = [
    "#!/bin/sh",
    "set -eu",
    "unset CDPATH",
    ...folderSteps(path.dirname(from)).map((piece) => `cd -P -- ${shellWord(piece)}`),
    `if [ -e ${name} ] || [ -L ${name} ]; then echo "it is there already: nothing was moved" >&2; exit 1; fi`,
    `stage=$(mktemp -d ./.harness-take-back-XXXXXX)`,
    `mv -nT -- ${shellWord(to)} "$stage/item"`,
    ...insideLines(done),
    `mv -nT -- "$stage/item" ${name}`,
    ...done.modes.filter(isTop).map(({ mode }) => `chmod ${mode.toString(8)} ${name}`),
    `rmdir -- "$stage"`,
    "",
  ];
  return bytesOfText(lines.join("\n"));
}

const isTop = ({ part, rel }: TreeChanges["modes"][number]): boolean => part === 0 && rel === "";

function insideLines({ cuts, modes, renames, partName }: TreeChanges): readonly string[] {
  const inside = modes.filter((one) => !isTop(one));
  if (cuts.length + inside.length + renames.length === 0) return [];
  const place = (part: number, rel: string): string =>
    shellWord(`./${[part === 0 ? "" : partName(part), rel].filter((one) => one !== "").join("/")}`);
  const rights = inside.map(({ part, rel, mode, folder }) => ({
    part,
    folder,
    line: `chmod ${mode.toString(8)} ${place(part, rel)}`,
  }));
  // A folder that its owner may not enter gets its mode back once it is complete: from the last part to the first.
  const closing = Map.groupBy(
    rights.filter(({ folder }) => folder),
    ({ part }) => part,
  );
  const closed = (part: number): readonly string[] =>
    (closing.get(part) ?? []).map(({ line }) => line).toReversed();
  const joined = cuts.flatMap(({ part, rel }, index) => [
    [...closed(index + 1), `mv -nT -- ${place(index + 1, "")} ${place(part, rel)}`],
  ]);
  return [
    `cd -P -- "$stage/item"`,
    ...renames.map(
      ({ part, rel, name, inert }) =>
        `mv -nT -- ${place(part, joinPath(rel, inert))} ${place(part, joinPath(rel, name))}`,
    ),
    ...rights.filter(({ folder }) => !folder).map(({ line }) => line),
    ...joined.toReversed().flat(),
    ...closed(0),
    "cd -P ../..",
  ];
}

const joinPath = (rel: string, name: string): string => (rel === "" ? name : `${rel}/${name}`);

const shellWord = (text: string): string => quote([text]);

const MAX_LENGTH = 2000;

/** The steps to a folder, each short enough for one call; the first is absolute. */
function folderSteps(folder: string): readonly string[] {
  const found: string[] = [];
  let piece = "";
  for (const part of folder.split("/").filter((name) => name !== "")) {
    if (piece.length + part.length > MAX_LENGTH) {
      found.push(piece);
      piece = ".";
    }
    piece += `/${part}`;
  }
  return [...found, piece === "" ? "/" : piece];
}
