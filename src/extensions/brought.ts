import { createHash } from "node:crypto";
import { lstat, realpath, stat } from "node:fs/promises";
import path from "node:path";
import { parse } from "jsonc-parser";
import { errorCode, reasonOf } from "../core/errors.ts";
import { formatSize } from "../core/bounds.ts";
import { NotRegularError, readRegular, TooLargeError } from "../platform/safe-files.ts";

/** What a repository brings that would count once it is trusted, read so that nothing of it can harm its reader. */

interface BroughtKind {
  /** As scripts name it. */
  readonly kind: string;
  readonly what: string;
  /** Where it may stand, from the project's top; two of them at once are a mistake. */
  readonly files: readonly string[];
  /** Further files that it names, from its own folder: they are a part of it, shown and recorded with it. */
  readonly names?: (text: string) => readonly string[];
  /** Chats and runs tell by themselves that it is not trusted; else only whoever looks for it does. */
  readonly told: boolean;
}

/** The table: a further kind is one row here, and one in `src/app/project-effects.ts` that says what it would do. */
const BROUGHT = [
  { kind: "settings", what: "settings", files: [".harness/config.json"], told: true },
  {
    kind: "rules",
    what: "rules for commands",
    files: [".harness/policy.toml", ".harness/policy.json"],
    told: true,
  },
  { kind: "environment", what: "recipe of an environment", files: [".harness/env.json"], told: true },
  {
    kind: "devcontainer",
    what: "dev container",
    files: [".devcontainer/devcontainer.json", ".devcontainer.json"],
    names: dockerfileOf,
    told: false,
  },
] as const satisfies readonly BroughtKind[];

export type Kind = (typeof BROUGHT)[number]["kind"];
export const rowOf = (kind: Kind): BroughtKind => BROUGHT.find((row) => row.kind === kind) ?? BROUGHT[0];

export interface BroughtFile {
  /** From the project's top. */
  readonly path: string;
  readonly text: string;
  /** Of the bytes that `text` was read from, in hexadecimal digits. */
  readonly sha256: string;
}

/** One kind that is there: whole, or why nothing of it can count. */
export type Brought = { readonly kind: Kind } & (
  | { readonly usable: true; readonly files: readonly [BroughtFile, ...BroughtFile[]] }
  | { readonly usable: false; readonly path: string; readonly why: string }
);

export interface ProjectPlace {
  /** The real path of the project's top. */
  readonly top: string;
  readonly dev: string;
  readonly ino: string;
}

/**
 * Where a project's own things stand: the nearest folder with a `.harness`, else with a dev container, from the
 * workspace up to the top of its repository; a folder of another owner ends the way up. The home is no project: what is
 * there is the user's own. Undefined where there is no such folder.
 */
export async function projectOf(workspace: string, home: string): Promise<ProjectPlace | undefined> {
  const folders = await foldersUp(workspace, await realpath(home).catch(() => home));
  for (const name of [".harness", ".devcontainer", ".devcontainer.json"])
    for (const folder of folders) if (await isThere(path.join(folder, name))) return placeOf(folder);
  const top = folders.at(-1);
  return top === undefined ? undefined : placeOf(top);
}

async function placeOf(top: string): Promise<ProjectPlace> {
  const { dev, ino } = await stat(top, { bigint: true });
  return { top, dev: String(dev), ino: String(ino) };
}

/** The workspace, and what is above it within its repository. */
async function foldersUp(workspace: string, home: string): Promise<readonly string[]> {
  const start = await realpath(workspace).catch(() => undefined);
  if (start === undefined || start === home) return [];
  const { uid } = await stat(start);
  const folders: string[] = [];
  for (let folder = start; folder !== home; folder = path.dirname(folder)) {
    if (folder !== start && (await stat(folder)).uid !== uid) break;
    folders.push(folder);
    if (await isThere(path.join(folder, ".git"))) return folders;
    if (path.dirname(folder) === folder) break;
  }
  return [start];
}

const isThere = (file: string): Promise<boolean> =>
  lstat(file).then(
    () => true,
    () => false,
  );

/** Everything of the table that is in a project. */
export async function broughtBy(place: ProjectPlace | undefined): Promise<readonly Brought[]> {
  if (place === undefined) return [];
  const each = await Promise.all(BROUGHT.map(({ kind }) => broughtOf(place, kind)));
  return each.flatMap((brought) => brought ?? []);
}

/** One kind; undefined where the project has none of it. */
export async function broughtOf({ top }: ProjectPlace, kind: Kind): Promise<Brought | undefined> {
  const row = rowOf(kind);
  const present: string[] = [];
  for (const file of row.files) if (await isThere(path.join(top, file))) present.push(file);
  const [main, second] = present;
  if (main === undefined) return undefined;
  const unusable = (file: string, why: string): Brought => ({ kind, usable: false, path: file, why });
  if (second !== undefined) return unusable(main, `there is ${second}, too, and only one can count`);
  try {
    const file = await readInside(top, main);
    const others = [...new Set(row.names?.(file.text))].map((name) =>
      path.relative(top, path.resolve(top, path.dirname(main), name)),
    );
    const named: BroughtFile[] = [];
    for (const other of others) named.push(await readInside(top, other));
    return { kind, usable: true, files: [file, ...named] };
  } catch (thrown) {
    if (thrown instanceof Unusable) return unusable(thrown.file, thrown.message);
    throw thrown;
  }
}

class Unusable extends Error {
  readonly file: string;

  constructor(file: string, why: string) {
    super(why);
    this.file = file;
  }
}

const MAX_BYTES = 2 ** 20;

/** A file of the project itself: no link leads to it, and nothing else than a file is opened. */
async function readInside(top: string, file: string): Promise<BroughtFile> {
  if (file === "" || file.startsWith("..") || path.isAbsolute(file))
    throw new Unusable(file, "it is outside of the project");
  const at = path.join(top, file);
  try {
    const real = await realpath(path.dirname(at));
    if (real !== path.dirname(at)) throw new Unusable(file, "a folder on the way to it is a link");
    const bytes = await readRegular(at, { links: "refuse", max: MAX_BYTES });
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    return { path: file, text, sha256: createHash("sha256").update(bytes).digest("hex") };
  } catch (thrown) {
    throw thrown instanceof Unusable ? thrown : new Unusable(file, whyUnread(thrown));
  }
}

function whyUnread(thrown: unknown): string {
  if (thrown instanceof TooLargeError)
    return `it has ${formatSize(thrown.size)}; at most ${formatSize(MAX_BYTES)} are read`;
  if (thrown instanceof NotRegularError)
    return thrown.what === "folder" ? "it is a folder" : "it is a pipe or a device, not a file";
  const code = errorCode(thrown);
  if (code === "ELOOP" || code === "EMLINK") return "it is a link";
  if (code === "ENXIO") return "it is a socket or a device, not a file";
  if (code === "ENOENT") return "it is not there";
  if (code === "ERR_ENCODING_INVALID_ENCODED_DATA") return "it is not UTF-8";
  return `it cannot be read: ${reasonOf(thrown)}`;
}

/** The Dockerfile that a dev container is built from, if it names one. */
function dockerfileOf(text: string): readonly string[] {
  const value = parsed(text);
  const build = recordOf(value["build"]);
  return [build["dockerfile"], build["dockerFile"], value["dockerFile"], value["dockerfile"]].filter(
    (name) => typeof name === "string",
  );
}

/** What is nested deeper than the parser goes names nothing: nor will anybody be able to use it. */
function parsed(text: string): Readonly<Record<string, unknown>> {
  try {
    return recordOf(parse(text.replace(/^\uFEFF/, ""), [], { allowTrailingComma: true }));
  } catch {
    return {};
  }
}

const recordOf = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
