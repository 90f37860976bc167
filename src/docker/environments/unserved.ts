import { readdir } from "node:fs/promises";
import path from "node:path";
import { lastName } from "../../core/file-names.ts";
import { readRegular } from "../../platform/safe-files.ts";
import type { TakenItem } from "./recipe.ts";

/**
 * Files that show a need which no environment meets by itself. Only their names are read. Each kind is reported once,
 * with what a person can do about it.
 */

interface Mark {
  readonly name: RegExp;
  readonly what: string;
}

const byPackages = (tool: string, ...packages: readonly string[]): string =>
  `${tool} is not detected; to install it, ${recipeOf(packages)}`;
const recipeOf = (packages: readonly string[]): string =>
  `write a recipe, .harness/env.json: {"detected": true, "packages": ${JSON.stringify(packages)}}`;
const byImage = (tool: string): string =>
  `${tool} is not offered: neither the distribution nor a preset's registry has it. Use an image that has it: --image IMAGE, or "image" in a recipe`;

/** The first mark that fits a name counts. */
const MARKS: readonly Mark[] = [
  { name: /\.(?:csproj|fsproj|vbproj|slnx?)$/, what: byImage("the .NET SDK") },
  { name: /^mix\.exs$/, what: byPackages("elixir", "elixir", "erlang-dev") },
  {
    name: /^(?:stack\.yaml|cabal\.project|[\w-]+\.cabal)$/,
    what: byPackages("haskell", "ghc", "cabal-install"),
  },
  { name: /^dune-project$/, what: byPackages("ocaml", "ocaml-dune", "opam") },
  { name: /^(?:project\.clj|deps\.edn)$/, what: byPackages("clojure", "leiningen", "clojure") },
  {
    name: /^cpanfile$/,
    what: `perl's modules are not installed; most are packages of the distribution (Try::Tiny is libtry-tiny-perl), so ${recipeOf(["libtry-tiny-perl"])}`,
  },
  { name: /^(?:DESCRIPTION|renv\.lock)$/, what: byPackages("R", "r-base-dev", "r-cran-testthat") },
  { name: /^build\.sbt$/, what: byImage("sbt") },
  { name: /^Package\.swift$/, what: byImage("swift") },
  { name: /^pubspec\.yaml$/, what: byImage("dart") },
  { name: /^build\.zig$/, what: byImage("zig") },
  { name: /^(?:MODULE\.bazel|WORKSPACE\.bazel)$/, what: byImage("bazel") },
  { name: /^flake\.nix$/, what: byImage("nix") },
  {
    name: /^(?:environment\.ya?ml|conda-lock\.yml|pixi\.toml)$/,
    what: 'conda is not offered; to install the packages with pip, write a recipe, .harness/env.json, or use an image that has conda: "image" in a recipe',
  },
  {
    name: /^\.pre-commit-config\.ya?ml$/,
    what: "hooks of pre-commit are not installed: it fetches each from a repository of its own when it first runs. Run pre-commit outside of the box, or the linters themselves in it",
  },
  {
    name: /^(?:docker-)?compose\.ya?ml$/,
    what: 'services of compose files are not started; servers beside the commands are "services" of a recipe, .harness/env.json',
  },
];

export const isMark = (name: string): boolean => MARKS.some((mark) => mark.name.test(name));

/** Pure. The first file of each kind, in the given order. */
export function unservedNeeds(files: readonly { readonly path: string }[]): readonly TakenItem[] {
  const found = new Map<string, TakenItem>();
  for (const { path } of files) {
    const mark = MARKS.find(({ name }) => name.test(lastName(path)));
    if (mark !== undefined && !found.has(mark.what)) found.set(mark.what, { what: mark.what, from: path });
  }
  return [...found.values()];
}

const MAX_BYTES = 64 * 1024;
const MAX_SUBMODULES = 50;

/** The folders of git's submodules that nobody has filled. */
export async function emptySubmodules(workspace: string): Promise<readonly string[]> {
  const bytes = await readRegular(path.join(workspace, ".gitmodules"), {
    links: "refuse",
    max: MAX_BYTES,
  }).catch(() => undefined);
  const text = bytes?.toString("utf8") ?? "";
  const folders = [...text.matchAll(/^[ \t]*path[ \t]*=[ \t]*([^\n]*)$/gm)]
    .map(([, folder = ""]) => folder.trim())
    .filter((folder) => folder !== "" && !/^\/|(?:^|\/)\.\.(?:\/|$)/.test(folder))
    .slice(0, MAX_SUBMODULES);
  const names = await Promise.all(
    folders.map((folder) => readdir(path.join(workspace, folder)).catch((): readonly string[] => [])),
  );
  return folders.filter((_, index) => names[index]?.length === 0);
}

/** A pointer is about 130 bytes long. */
const POINTER_BYTES = 1024;
const MAX_POINTER_FOLDERS = 200;
const MAX_POINTER_FILES = 2000;
const MAX_POINTER_DEPTH = 4;

/**
 * Files that are pointers of git-lfs instead of their contents, among those that the top's `.gitattributes` names by
 * their endings or folders.
 */
export async function lfsPointers(workspace: string): Promise<readonly string[]> {
  const bytes = await readRegular(path.join(workspace, ".gitattributes"), {
    links: "refuse",
    max: MAX_BYTES,
  }).catch(() => undefined);
  const patterns = (bytes?.toString("utf8") ?? "")
    .split("\n")
    .filter((line) => /\sfilter=lfs(?:\s|$)/.test(line))
    .map((line) => line.trim().split(/\s/, 1)[0] ?? "");
  if (patterns.length === 0) return [];
  const ends = patterns.flatMap((each) => /^(?:\*\*\/)?\*(\.[\w.-]+)$/.exec(each)?.[1] ?? []);
  const starts = patterns.flatMap((each) => /^\/?([\w./-]+?)(?:\/\*\*?)?$/.exec(each)?.[1] ?? []);
  const isTracked = (file: string): boolean =>
    ends.some((end) => file.endsWith(end)) ||
    starts.some((start) => file === start || file.startsWith(`${start}/`));
  const files = (await filesBelow(workspace)).filter(isTracked).slice(0, MAX_POINTER_FILES);
  const found = await Promise.all(files.map((file) => isPointer(path.join(workspace, file))));
  return files.filter((_file, index) => found[index]);
}

async function filesBelow(workspace: string): Promise<readonly string[]> {
  const files: string[] = [];
  let level = [""];
  for (let depth = 0; depth <= MAX_POINTER_DEPTH && level.length > 0; depth += 1) {
    const entries = await Promise.all(
      level.slice(0, MAX_POINTER_FOLDERS).map(async (folder) => {
        const all = await readdir(path.join(workspace, folder), { withFileTypes: true }).catch(() => []);
        return all.map((entry) => ({ entry, at: path.posix.join(folder, entry.name) }));
      }),
    );
    files.push(...entries.flat().flatMap(({ entry, at }) => (entry.isFile() ? [at] : [])));
    level = entries
      .flat()
      .filter(({ entry }) => entry.isDirectory() && entry.name !== ".git" && entry.name !== "node_modules")
      .map(({ at }) => at);
  }
  return files;
}

/** A file that is longer than a pointer is refused by its size. */
async function isPointer(file: string): Promise<boolean> {
  const bytes = await readRegular(file, { links: "refuse", max: POINTER_BYTES }).catch(() => undefined);
  return bytes?.toString("latin1").startsWith("version https://git-lfs") === true;
}
