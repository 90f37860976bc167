import { createHash } from "node:crypto";
import { lstat, readdir } from "node:fs/promises";
import path from "node:path";
import { openRegular, readWhole } from "../../platform/safe-files.ts";
import { ECOSYSTEMS, VERSION_FILES } from "./ecosystems.ts";
import { firstOf } from "../../core/wording.ts";
import { lastName } from "../../core/file-names.ts";
import {
  allMembers,
  cargoMembers,
  goMembers,
  isMember,
  namesFolder,
  nodeMembers,
  OWN_LOCKS,
  type PatternReader,
  uvMembers,
} from "./project-members.ts";
import { type Folder, type Needs, TOP } from "./project-needs.ts";
import {
  EMPTY_RECIPE,
  MAX_FOLDERS,
  type FoundRecipe,
  PIP_MANAGERS,
  type Recipe,
  type SetupStep,
  type TakenItem,
  type Toolchain,
} from "./recipe.ts";
import { isMark, unservedNeeds } from "./unserved.ts";

/** What a project needs, found in its files: these are read first, then understood. */

/** Names of files that decide how a project is built. The contents of all of them count for an environment's key. */
const NAMES = new Set([
  "conftest.py",
  ...Object.keys(VERSION_FILES),
  ..."package-lock.json npm-shrinkwrap.json pnpm-lock.yaml pnpm-workspace.yaml yarn.lock bun.lock bun.lockb deno.json deno.jsonc deno.lock binding.gyp .npmrc .yarnrc.yml".split(
    " ",
  ),
  ..."pyproject.toml setup.py setup.cfg tox.ini pytest.ini uv.lock poetry.lock pdm.lock Pipfile Pipfile.lock".split(
    " ",
  ),
  ..."go.sum go.work go.work.sum Cargo.toml Cargo.lock".split(" "),
  ..."mvnw build.gradle build.gradle.kts settings.gradle settings.gradle.kts gradle.lockfile libs.versions.toml".split(
    " ",
  ),
  ..."composer.json composer.lock Gemfile Gemfile.lock CMakeLists.txt meson.build configure.ac".split(" "),
]);
const PATTERN = /^(?:requirements|dev-requirements|test-requirements|constraints)[\w.-]*\.txt$/;
/** Only their existence counts. */
const EMPTY = new Set(["conftest.py"]);
/** Relative to a project's folder. */
const NESTED = [
  "tests/conftest.py",
  "test/conftest.py",
  "tests/requirements.txt",
  "test/requirements.txt",
  "gradle/wrapper/gradle-wrapper.properties",
  ".mvn/wrapper/maven-wrapper.properties",
  "vendor/modules.txt",
];

/** Lists of Python's packages in a folder of their own count for the folder above it. */
const REQUIREMENTS = /(?<=^|\/)requirements\/[\w.-]+\.txt$/;

/** Folders that tools fill, and folders that only show how others would use the project. */
const SKIPPED = new Set(
  "node_modules vendor target build dist out venv env __pycache__ site-packages third_party test tests __tests__ testdata fixtures __fixtures__ examples example samples docs doc benchmarks templates".split(
    " ",
  ),
);

const MAX_DEPTH = 3;
const MAX_FOLDERS_READ = 600;
const MAX_FILES = 400;
const TEXT_BYTES = 256 * 1024;
/** npm's lock files are searched for the folders and scripts of packages. */
const NPM_LOCK = /(?:^|\/)(?:package-lock|npm-shrinkwrap)\.json$/;
const LOCK_BYTES = 8 * 2 ** 20;
const HASHED_BYTES = 64 * 2 ** 20;

/** A file of the workspace that says what the project needs; a long text is cut. */
export interface ProjectFile {
  readonly path: string;
  readonly text: string;
  /** Hash of the whole content; empty if only the file's existence counts. */
  readonly hash: string;
}

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
  let named: readonly string[] = [];
  for (let depth = 0; depth <= MAX_DEPTH && level.length > 0; depth += 1) {
    const room = level.slice(0, MAX_FOLDERS_READ - folders);
    folders += room.length;
    if (room.length < level.length) return [names, true];
    const below = await Promise.all(room.map((folder) => inFolder(workspace, folder)));
    names.push(...below.flatMap(({ files }) => files));
    if (depth === 0) named = await memberPatterns(workspace, names);
    level = below
      .flatMap((each) => each.folders)
      .filter((folder) => !folder.split("/").some((name) => SKIPPED.has(name)) || namesFolder(named, folder));
  }
  return [names, false];
}

/** The patterns by which the workspace's top names the members of its own workspace of packages. */
async function memberPatterns(workspace: string, names: readonly string[]): Promise<readonly string[]> {
  const read = names.filter((name) => name === "package.json" || name === "pnpm-workspace.yaml");
  const files = await Promise.all(read.map((name) => readProjectFile(workspace, name)));
  return (
    nodeMembers(new Map(files.flatMap((file) => (file === undefined ? [] : [[file.path, file.text]])))) ?? []
  );
}

interface Entries {
  readonly files: readonly string[];
  readonly folders: readonly string[];
}

async function inFolder(workspace: string, folder: string): Promise<Entries> {
  const entries = await readdir(path.join(workspace, folder), { withFileTypes: true }).catch(() => []);
  const at = (name: string): string => (folder === "" ? name : `${folder}/${name}`);
  const isList = (name: string): boolean => REQUIREMENTS.test(at(name));
  const own = entries.filter(
    (entry) =>
      entry.isFile() &&
      (NAMES.has(entry.name) || PATTERN.test(entry.name) || isMark(entry.name) || isList(entry.name)),
  );
  const nested = own.length === 0 ? [] : NESTED;
  return {
    files: [...own.map(({ name }) => name).toSorted(), ...nested].map(at),
    folders: entries
      .filter((entry) => entry.isDirectory() && !entry.name.startsWith(".") && entry.name !== "node_modules")
      .map(({ name }) => at(name))
      .toSorted(),
  };
}

const isRegular = async (file: string): Promise<boolean> =>
  (await lstat(file).catch(() => undefined))?.isFile() === true;

/** A file that is too large to hash counts by its size and time. */
async function readProjectFile(workspace: string, name: string): Promise<ProjectFile | undefined> {
  if (isMark(lastName(name))) return { path: name, text: "", hash: "" };
  if (EMPTY.has(lastName(name)))
    return (await isRegular(path.join(workspace, name))) ? { path: name, text: "", hash: "" } : undefined;
  try {
    await using opened = await openRegular(path.join(workspace, name), "refuse");
    const { stats } = opened;
    const hash = createHash("sha256");
    if (stats.size > HASHED_BYTES) {
      hash.update(`${stats.size} ${stats.mtimeMs}`);
      return { path: name, text: "", hash: hash.digest("hex") };
    }
    const bytes = await readWhole(opened, HASHED_BYTES);
    hash.update(bytes);
    const most = NPM_LOCK.test(name) ? LOCK_BYTES : TEXT_BYTES;
    return { path: name, text: bytes.subarray(0, most).toString("utf8"), hash: hash.digest("hex") };
  } catch {
    return undefined;
  }
}

/** The most projects of a repository that are looked at, the top first; the rest is reported. */
const MAX_PROJECTS = 16;

/** Pure. What the files of a workspace need, and which file said so. Only checked names get into commands. */
export function detectRecipe(files: readonly ProjectFile[]): FoundRecipe {
  const folders = foldersOf(files);
  const found = new RecipeFinder(coversIn(folders));
  for (const [folder, content] of folders) found.versions(folder, content);
  for (const [folder, content] of folders)
    for (const [name, read] of Object.entries(ECOSYSTEMS)) {
      const needs = read(content);
      if (needs !== undefined) found.project(name, folder, { needs, content });
    }
  const { notTaken, ...rest } = found.result;
  return { ...rest, notTaken: [...notTaken, ...unservedNeeds(files)] };
}

const depth = (folder: string): number => (folder === "." ? 0 : folder.split("/").length);

function foldersOf(files: readonly ProjectFile[]): ReadonlyMap<string, Folder> {
  const folders = new Map<string, Map<string, string>>();
  for (const { path, text } of files) {
    const nested = NESTED.find((name) => path === name || path.endsWith(`/${name}`));
    const name = nested ?? REQUIREMENTS.exec(path)?.[0] ?? lastName(path);
    const folder = path.slice(0, -name.length).replace(/\/$/, "") || ".";
    folders.set(folder, (folders.get(folder) ?? new Map<string, string>()).set(name, text));
  }
  folders.get(".")?.set(TOP, "");
  return new Map([...folders].toSorted(([a], [b]) => depth(a) - depth(b) || (a < b ? -1 : 1)));
}

/** A folder whose project installs what its members below it need. */
interface Cover {
  readonly folder: string;
  readonly patterns: readonly string[];
  /** The lock file of npm there, if it is whole: it names the folders that packages are put into. */
  readonly npmLock: string | undefined;
}
type Covers = Readonly<Record<string, readonly Cover[]>>;

const COVERS: Readonly<Record<string, PatternReader>> = {
  node: nodeMembers,
  rust: cargoMembers,
  go: goMembers,
  java: allMembers(
    (content) =>
      /<modules>/.test(content.get("pom.xml") ?? "") ||
      content.has("settings.gradle") ||
      content.has("settings.gradle.kts"),
  ),
  cmake: allMembers((content) => content.has("CMakeLists.txt")),
  meson: allMembers((content) => content.has("meson.build")),
  autotools: allMembers((content) => content.has("configure.ac")),
  python: uvMembers,
};

function coversIn(folders: ReadonlyMap<string, Folder>): Covers {
  const coversOf = (read: PatternReader): readonly Cover[] =>
    [...folders].flatMap(([folder, content]) => {
      const patterns = read(content);
      const lock = content.get("package-lock.json") ?? content.get("npm-shrinkwrap.json") ?? "";
      const isWhole = /^\s*"packages": \{/m.test(lock) && lock.trimEnd().endsWith("}");
      return patterns === undefined ? [] : [{ folder, patterns, npmLock: isWhole ? lock : undefined }];
    });
  return Object.fromEntries(Object.entries(COVERS).map(([name, read]) => [name, coversOf(read)]));
}

const isBelow = (folder: string, parent: string): boolean =>
  folder !== parent && (parent === "." || folder.startsWith(`${parent}/`));

const belowOf = (folder: string, parent: string): string =>
  parent === "." ? folder : folder.slice(parent.length + 1);

/** The distribution's packages for each language, for an image that lacks it. */
const PACKAGES: Readonly<Record<Toolchain, readonly string[]>> = {
  node: [],
  python: ["python3-venv", "python3-dev", "g++"],
  go: [],
  rust: [],
  java: [],
  php: ["php-cli", "php-curl", "php-mbstring", "php-xml", "php-zip"],
  ruby: ["ruby-full", "g++"],
};

interface FoundProject {
  readonly needs: Needs;
  readonly content: Folder;
}

class RecipeFinder {
  readonly #covers: Covers;
  readonly #taken: TakenItem[] = [];
  readonly #notTaken: TakenItem[] = [];
  readonly #versions = new Map<Toolchain, { readonly version: string; readonly from: string }>();
  readonly #toolchains: Partial<Record<Toolchain, string | null>> = {};
  #recipe: Recipe = EMPTY_RECIPE;
  /** The project of each step. */
  readonly #owners: string[] = [];
  /** Folders beyond the limit. */
  readonly #unkept: TakenItem[] = [];
  #projects = 0;

  constructor(covered: Covers) {
    this.#covers = covered;
  }

  get result(): FoundRecipe {
    return {
      recipe: { ...this.#recipe, toolchains: this.#toolchains },
      projects: this.#owners,
      taken: this.#taken,
      notTaken: [...this.#notTaken, ...this.#unkeptFolders()],
    };
  }

  #unkeptFolders(): readonly TakenItem[] {
    const [first] = this.#unkept;
    if (first === undefined) return [];
    const named = firstOf(this.#unkept, 3, ({ what }) => what);
    return [{ what: `${named}: an environment has at most ${MAX_FOLDERS} folders`, from: first.from }];
  }

  versions(folder: string, content: Folder): void {
    for (const [name, read] of Object.entries(VERSION_FILES)) {
      const text = content.get(name);
      for (const { toolchain, version } of text === undefined ? [] : read(text)) {
        const [from, first] = [pathIn(folder, name), this.#versions.get(toolchain)];
        if (first === undefined) this.#versions.set(toolchain, { version, from });
        else if (folder === "." ? false : !`${first.version}.`.startsWith(`${version}.`))
          this.#refuse(
            `${toolchain} ${version}: an environment has one version, ${first.version} from ${first.from}`,
            from,
          );
      }
    }
  }

  project(ecosystem: string, folder: string, { needs, content }: FoundProject): void {
    const from = pathIn(folder, needs.from);
    const isLocked = (OWN_LOCKS[ecosystem] ?? []).some((name) => content.has(name));
    for (const cover of this.#covers[ecosystem] ?? []) {
      if (!isBelow(folder, cover.folder)) continue;
      const below = belowOf(folder, cover.folder);
      const isPart = isMember(cover.patterns, below);
      if (!isPart && isLocked) continue;
      // Members of a workspace may get a folder of their own beside the shared one.
      const hasOwn = cover.npmLock?.includes(`"${below}/node_modules/`) ?? true;
      if (ecosystem === "node" && isPart && hasOwn) this.#folders(folder, ["node_modules"], from);
      return;
    }
    if (this.#projects >= MAX_PROJECTS)
      return this.#refuse(`${folder}: an environment has at most ${MAX_PROJECTS} projects`, from);
    this.#projects += 1;
    this.#needs(folder, from, needs);
    this.#setup(`${ecosystem} in ${folder}`, folder, { needs, from });
  }

  #needs(folder: string, from: string, needs: Needs): void {
    if (needs.toolchain !== undefined) this.#toolchain(needs.toolchain, from);
    for (const why of needs.notTaken ?? []) this.#refuse(why, from);
    this.#list("packages", needs.packages ?? [], from);
    this.#list("registries", needs.registries ?? [], from);
    this.#folders(folder, needs.folders ?? [], from);
    for (const [name, version] of Object.entries(needs.managers ?? {})) this.#manager(name, version, from);
    for (const [name, value] of Object.entries(needs.env ?? {})) {
      this.#recipe = { ...this.#recipe, env: { ...this.#recipe.env, [name]: value } };
      this.#take(`variable: ${name}=${value}`, from);
    }
  }

  #setup(
    project: string,
    folder: string,
    { needs: { steps = [], compile }, from }: { readonly needs: Needs; readonly from: string },
  ): void {
    const all: readonly SetupStep[] = [
      ...steps.map((run) => ({ run, folder })),
      ...(compile === undefined ? [] : [{ run: compile, folder, optional: true as const }]),
    ];
    for (const step of all) {
      this.#recipe = { ...this.#recipe, setup: [...this.#recipe.setup, step] };
      this.#owners.push(project);
      const may = step.optional === true ? ", which may fail" : "";
      this.#take(`set-up: ${step.run}${folder === "." ? "" : ` (in ${folder})`}${may}`, from);
    }
  }

  #toolchain(name: Toolchain, from: string): void {
    if (Object.hasOwn(this.#toolchains, name)) return;
    const wish = this.#versions.get(name);
    this.#toolchains[name] = wish?.version ?? null;
    this.#take(`toolchain: ${name} ${wish?.version ?? "(any)"}`, wish?.from ?? from);
    this.#list("packages", PACKAGES[name], from);
  }

  #manager(name: string, version: string | null, from: string): void {
    if (Object.hasOwn(this.#recipe.managers, name)) return;
    this.#recipe = { ...this.#recipe, managers: { ...this.#recipe.managers, [name]: version } };
    this.#take(`package manager: ${name}${version === null ? "" : ` ${version}`}`, from);
    this.#list("registries", [PIP_MANAGERS.some((each) => each === name) ? "pip" : "npm"], from);
  }

  #list(key: "packages" | "registries", names: readonly string[], from: string): void {
    const fresh = names.filter((name) => !this.#recipe[key].includes(name));
    if (fresh.length === 0) return;
    this.#recipe = { ...this.#recipe, [key]: [...this.#recipe[key], ...fresh] };
    this.#take(`${key}: ${fresh.join(" ")}`, from);
  }

  #folders(folder: string, names: readonly string[], from: string): void {
    for (const name of names.map((each) => pathIn(folder, each))) {
      const { folders } = this.#recipe;
      if (folders.includes(name)) continue;
      if (folders.length >= MAX_FOLDERS) {
        this.#unkept.push({ what: name, from });
        continue;
      }
      this.#recipe = { ...this.#recipe, folders: [...folders, name] };
      this.#take(`folder: ${name}`, from);
    }
  }

  #take(what: string, from: string): void {
    this.#taken.push({ what, from });
  }

  #refuse(what: string, from: string): void {
    this.#notTaken.push({ what, from });
  }
}

const pathIn = (folder: string, name: string): string => (folder === "." ? name : `${folder}/${name}`);
