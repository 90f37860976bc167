/**
 * Determines which tests a change affects: those that reach a changed file by imports, or by strings that name files
 * (workers, started programs, fixtures). Type imports do not count: they are gone when a test runs.
 */
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import type { TestFile } from "./suites.ts";

export interface Selection {
  readonly chosen: readonly TestFile[];
  /** Also affected, but in a slow suite. */
  readonly left: readonly TestFile[];
}

const CODE = /\.[cm]?[jt]s$/;

/** Files that affect every test. */
const EVERYWHERE = new Set(["package.json", "package-lock.json", "tsconfig.json", "test/run.ts"]);

const git = (root: string, ...words: readonly string[]): string =>
  execFileSync("git", ["-C", root, ...words], { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });

const names = (text: string): readonly string[] => text.split("\0").filter((name) => name !== "");

/** Files that differ from the point where this branch left main, including the work tree and untracked files. */
export function changedFiles(root: string): readonly string[] {
  const changed = names(git(root, "diff", "--name-only", "--no-renames", "-z", baseOf(root)));
  const added = names(git(root, "ls-files", "--others", "--exclude-standard", "-z"));
  return [...new Set([...changed, ...added])].toSorted();
}

function baseOf(root: string): string {
  for (const main of ["main", "origin/main"])
    try {
      return git(root, "merge-base", main, "HEAD").trim();
    } catch {
      // The clone lacks that branch.
    }
  return "HEAD";
}

function filesUnder(root: string, folder: string): readonly string[] {
  if (!existsSync(path.join(root, folder))) return [];
  return readdirSync(path.join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) =>
      path.relative(root, path.join(parentPath, name)).replaceAll(path.sep, "/"),
    );
}

/** A string that may name a file, except in a type import. */
const NAMED = /(import type [^;]*? from )?(["'`])([\w@./-]+)\2/g;

/** The files that this module names: its imports, and files by a relative path, by a path from the root, or by name. */
function namedIn(
  file: string,
  text: string,
  known: ReadonlyMap<string, readonly string[]>,
): readonly string[] {
  const found = new Set<string>();
  for (const [, type, , name = ""] of text.matchAll(NAMED)) {
    if (type !== undefined) continue;
    const here = path.posix.join(path.posix.dirname(file), name);
    const last = path.posix.basename(name);
    const same = known.get(last) ?? [];
    if (same.includes(here)) found.add(here);
    else if (same.includes(name)) found.add(name);
    else if (!name.startsWith("./") && same.length === 1 && last.includes(".")) found.add(same[0] ?? "");
  }
  return [...found];
}

/** For each file, the files that name it. */
function namersOf(root: string): ReadonlyMap<string, readonly string[]> {
  const files = ["src", "test", "sandbox", "bench", "bin", "docs", "examples"].flatMap((folder) => [
    ...filesUnder(root, folder),
  ]);
  const known = Map.groupBy(files, (file) => path.posix.basename(file));
  const namers = new Map<string, string[]>();
  for (const file of files.filter((name) => CODE.test(name)))
    for (const named of namedIn(file, readFileSync(path.join(root, file), "utf8"), known))
      namers.set(named, [...(namers.get(named) ?? []), file]);
  return namers;
}

/** Modules generated from a YAML table lie in its folder. */
const madeOf = (root: string, file: string): readonly string[] =>
  /^src\/.*\.yaml$/.test(file)
    ? filesUnder(root, path.posix.dirname(file)).filter((name) => name.endsWith(".generated.ts"))
    : [];

/** All files that reach one of these, including themselves. */
function filesReaching(
  changed: readonly string[],
  namers: ReadonlyMap<string, readonly string[]>,
): ReadonlySet<string> {
  const seen = new Set(changed);
  for (const file of seen) for (const namer of namers.get(file) ?? []) seen.add(namer);
  return seen;
}

/** Files that affect tests that start the CLI, although these import none of them. */
const isOfProgram = (file: string): boolean => /^(src|sandbox|bin)\/|^Dockerfile/.test(file);

/**
 * Unit tests that reach the change, however far; of the slow suites only changed tests, and with `all` also those that
 * reach it and, after a change of the program, those that start the CLI.
 */
export function selected(
  root: string,
  every: readonly TestFile[],
  changed: readonly string[],
  all: boolean,
): Selection {
  if (changed.some((file) => EVERYWHERE.has(file)))
    return {
      chosen: every.filter(({ suite }) => all || suite === "unit"),
      left: every.filter(({ suite }) => !all && suite !== "unit"),
    };
  const made = changed.flatMap((file) => madeOf(root, file));
  const reached = filesReaching([...changed, ...made], namersOf(root));
  const starts = changed.some(isOfProgram);
  const touched = every.filter(
    ({ file, suite }) =>
      reached.has(file) || (starts && suite !== "unit" && /^test\/(e2e|escape)\//.test(file)),
  );
  const isChosen = ({ file, suite }: TestFile): boolean => all || suite === "unit" || changed.includes(file);
  return { chosen: touched.filter(isChosen), left: touched.filter((each) => !isChosen(each)) };
}
