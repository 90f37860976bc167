import { createHash } from "node:crypto";
import { readdir } from "node:fs/promises";
import path from "node:path";
import { openRegular } from "../../platform/safe-files.ts";
import type { ProjectFile } from "./detect-recipe.ts";
import { VERSION_FILES } from "./version-files.ts";

/** Names of files that decide how a project is built. The contents of all of them count for an environment's key. */
const NAMES = new Set([
  ...Object.keys(VERSION_FILES),
  ..."package-lock.json npm-shrinkwrap.json pnpm-lock.yaml pnpm-workspace.yaml yarn.lock bun.lock bun.lockb .npmrc .yarnrc.yml".split(
    " ",
  ),
  ..."pyproject.toml setup.py setup.cfg uv.lock poetry.lock Pipfile Pipfile.lock".split(" "),
  ..."go.sum go.work go.work.sum Cargo.toml Cargo.lock".split(" "),
  ..."mvnw build.gradle build.gradle.kts settings.gradle settings.gradle.kts gradle.lockfile libs.versions.toml".split(
    " ",
  ),
  ..."composer.json composer.lock Gemfile Gemfile.lock CMakeLists.txt".split(" "),
]);
const PATTERN = /^(?:requirements|dev-requirements|test-requirements|constraints)[\w.-]*\.txt$/;
/** Relative to a project's folder. */
const NESTED = [
  "gradle/wrapper/gradle-wrapper.properties",
  ".mvn/wrapper/maven-wrapper.properties",
  "vendor/modules.txt",
];

/** Folders that tools fill, and folders that only show how others would use the project. */
const SKIPPED = new Set(
  "node_modules vendor target build dist out venv env __pycache__ site-packages third_party test tests __tests__ testdata fixtures __fixtures__ examples example samples docs doc benchmarks templates".split(
    " ",
  ),
);

const MAX_DEPTH = 3;
const MAX_FOLDERS = 600;
const MAX_FILES = 400;
const TEXT_BYTES = 256 * 1024;
const HASHED_BYTES = 64 * 2 ** 20;

interface FoundFiles {
  readonly files: readonly ProjectFile[];
  /** There are more folders or files than were read. */
  readonly more: boolean;
}

/** Reads these files down to a limited depth; no link is followed, and only regular files count. */
export async function projectFiles(workspace: string): Promise<FoundFiles> {
  const [names, more] = await namesIn(workspace);
  const files = await Promise.all(names.slice(0, MAX_FILES).map((name) => readProjectFile(workspace, name)));
  return { files: files.filter((file) => file !== undefined), more: more || names.length > MAX_FILES };
}

async function namesIn(workspace: string): Promise<readonly [names: readonly string[], more: boolean]> {
  const names: string[] = [];
  let level = [""];
  let folders = 0;
  for (let depth = 0; depth <= MAX_DEPTH && level.length > 0; depth += 1) {
    const room = level.slice(0, MAX_FOLDERS - folders);
    folders += room.length;
    if (room.length < level.length) return [names, true];
    const below = await Promise.all(room.map((folder) => inFolder(workspace, folder)));
    names.push(...below.flatMap(({ files }) => files));
    level = below.flatMap((each) => each.folders);
  }
  return [names, false];
}

interface Entries {
  readonly files: readonly string[];
  readonly folders: readonly string[];
}

async function inFolder(workspace: string, folder: string): Promise<Entries> {
  const entries = await readdir(path.join(workspace, folder), { withFileTypes: true }).catch(() => []);
  const at = (name: string): string => (folder === "" ? name : `${folder}/${name}`);
  const own = entries.filter(
    (entry) => entry.isFile() && (NAMES.has(entry.name) || PATTERN.test(entry.name)),
  );
  const nested = own.length === 0 ? [] : NESTED;
  return {
    files: [...own.map(({ name }) => name).toSorted(), ...nested].map(at),
    folders: entries
      .filter((entry) => entry.isDirectory() && !entry.name.startsWith(".") && !SKIPPED.has(entry.name))
      .map(({ name }) => at(name))
      .toSorted(),
  };
}

/** A file that is too large to hash counts by its size and time. */
async function readProjectFile(workspace: string, name: string): Promise<ProjectFile | undefined> {
  try {
    await using opened = await openRegular(path.join(workspace, name), "refuse");
    const { handle, stats } = opened;
    const hash = createHash("sha256");
    if (stats.size > HASHED_BYTES) {
      hash.update(`${stats.size} ${stats.mtimeMs}`);
      return { path: name, text: "", hash: hash.digest("hex") };
    }
    const bytes = await handle.readFile();
    hash.update(bytes);
    return { path: name, text: bytes.subarray(0, TEXT_BYTES).toString("utf8"), hash: hash.digest("hex") };
  } catch {
    return undefined;
  }
}
