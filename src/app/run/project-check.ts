import { lstat, readdir } from "node:fs/promises";
import path from "node:path";
import { isMember, nodeMembers } from "../../docker/environments/project-members.ts";
import { headText } from "../../platform/safe-files.ts";

/**
 * The command that runs a project's own tests, judged by the top of its folder. Only names and the heads of plain files
 * are read; the command itself runs only in the box, judged as any command is.
 */
export async function projectCheck(
  workspace: string,
  { scripts = false }: CheckOptions = {},
): Promise<string | undefined> {
  const top = await readdir(workspace).catch((): readonly string[] => []);
  const folders = TEST_FOLDERS.filter((folder) => top.includes(folder));
  const read = (name: string): Promise<string> => headText(path.join(workspace, name), MAX_BYTES);
  const below = await Promise.all([
    ...folders.map((folder) => namesIn(workspace, folder)),
    memberManifests(workspace, await memberPatterns(new Set(top), read)),
  ]);
  return checkFor({ names: new Set([...top, ...below.flat()]), read }, { scripts });
}

interface CheckOptions {
  /** Also accept scripts that only their name calls a test: `test.sh`. */
  readonly scripts?: boolean;
}

const TEST_FOLDERS = ["test", "tests", "t", "spec"];

async function namesIn(workspace: string, folder: string): Promise<readonly string[]> {
  const at = path.join(workspace, folder);
  const plain = await lstat(at).catch(() => undefined);
  if (plain?.isDirectory() !== true) return [];
  return (await readdir(at).catch(() => [])).map((name) => `${folder}/${name}`);
}

/** The patterns by which a workspace of npm, yarn, bun or pnpm names its members; empty if there are none. */
async function memberPatterns(
  names: ReadonlySet<string>,
  read: ProjectTop["read"],
): Promise<readonly string[]> {
  const files = ["package.json", "pnpm-workspace.yaml"].filter((name) => names.has(name));
  const texts = await Promise.all(files.map(async (name) => [name, await read(name)] as const));
  return nodeMembers(new Map(texts)) ?? [];
}

const MAX_MEMBERS = 100;

/** The manifests of members that lie directly in a folder that a pattern names, or are that folder. */
async function memberManifests(workspace: string, patterns: readonly string[]): Promise<readonly string[]> {
  if (patterns.length === 0) return [];
  const heads = patterns
    .map((each) => each.replace(/^(?:\.?\/)+/, ""))
    .filter((each) => !each.startsWith("!"));
  const parents = new Set(heads.map((each) => each.replace(/\/?[^/]*\*.*$/, "")));
  const found = await Promise.all(
    [...parents]
      .filter((folder) => !folder.split("/").includes(".."))
      .slice(0, MAX_MEMBERS)
      .map(async (folder) => [folder, ...(await foldersIn(workspace, folder))]),
  );
  return [...new Set(found.flat())]
    .filter((folder) => folder !== "" && isMember(patterns, folder))
    .slice(0, MAX_MEMBERS)
    .map((folder) => `${folder}/package.json`);
}

async function foldersIn(workspace: string, folder: string): Promise<readonly string[]> {
  const at = path.join(workspace, folder);
  if ((await lstat(at).catch(() => undefined))?.isDirectory() !== true) return [];
  const entries = await readdir(at, { withFileTypes: true }).catch(() => []);
  return entries
    .filter((entry) => entry.isDirectory() && entry.name !== "node_modules")
    .map(({ name }) => path.posix.join(folder, name));
}

export interface ProjectTop {
  readonly names: ReadonlySet<string>;
  /** The head of a plain file; empty if there is none. */
  readonly read: (name: string) => Promise<string>;
}

interface KnownBuild {
  readonly file: string;
  readonly command: (text: string, names: ReadonlySet<string>) => string | undefined;
}

/** Builds outside of the workspace, in a folder that keeps the build from one check to the next. */
const CTEST =
  "cmake -S . -B /tmp/check >/dev/null && cmake --build /tmp/check && ctest --test-dir /tmp/check --output-on-failure";

const MESON =
  "{ test -e /tmp/check/build.ninja || meson setup /tmp/check >/dev/null; } && meson test -C /tmp/check --print-errorlogs";

/** The first entry with a command counts. */
const KNOWN_BUILDS: readonly KnownBuild[] = [
  { file: "package.json", command: npmTest },
  ...["deno.json", "deno.jsonc"].map((file): KnownBuild => ({ file, command: denoTest })),
  { file: "Cargo.toml", command: () => "cargo test --offline" },
  // At the top of a workspace of modules, `./...` is no pattern of any of them.
  { file: "go.work", command: () => "go list -f '{{.Dir}}/...' -m | xargs go test" },
  { file: "go.mod", command: () => "go test ./..." },
  { file: "pom.xml", command: () => "mvn -o -q test" },
  { file: "gradlew", command: () => "./gradlew --offline test" },
  ...["build.gradle", "build.gradle.kts"].map((file): KnownBuild => ({
    file,
    command: () => "gradle --offline test",
  })),
  { file: "mix.exs", command: () => "mix test" },
  { file: "Package.swift", command: () => "swift test" },
  { file: "dune-project", command: () => "dune test" },
  {
    file: ".rspec",
    command: (_text, names) => (names.has("Gemfile") ? "bundle exec rspec" : "rspec"),
  },
  {
    file: "composer.json",
    command: (text) => (scriptNamed(text, "test") === undefined ? undefined : "composer test"),
  },
  ...["phpunit.xml", "phpunit.xml.dist"].map((file): KnownBuild => ({
    file,
    command: () => "vendor/bin/phpunit",
  })),
  { file: "composer.json", command: phpunitTests },
  ...["pytest.ini", "conftest.py"].map((file): KnownBuild => ({ file, command: () => PYTEST })),
  { file: "pyproject.toml", command: (text) => (/^\[tool\.pytest\b/m.test(text) ? PYTEST : undefined) },
  { file: "setup.cfg", command: (text) => (/^\[tool:pytest\]/m.test(text) ? PYTEST : undefined) },
  { file: "tox.ini", command: (text) => (/^\[pytest\]/m.test(text) ? PYTEST : undefined) },
  ...["Makefile", "makefile", "GNUmakefile"].map((file): KnownBuild => ({ file, command: makeTest })),
  {
    file: "meson.build",
    command: (text) => (/^[ \t]*(?:test|subdir)[ \t]*\(/m.test(text) ? MESON : undefined),
  },
  ...["Rakefile", "rakefile", "Rakefile.rb"].map((file): KnownBuild => ({ file, command: rakeTest })),
  { file: "Gemfile", command: (_text, names) => (hasSpecs(names) ? "bundle exec rspec" : undefined) },
  ...["justfile", "Justfile"].map((file): KnownBuild => ({ file, command: justTest })),
  {
    file: "CMakeLists.txt",
    command: (text) =>
      /^[ \t]*(?:enable_testing|include)[ \t]*\((?:[ \t]*CTest[ \t]*)?\)/im.test(text) ? CTEST : undefined,
  },
];

/** Writes nothing except what the tests write: no caches. */
const PYTEST = "python3 -m pytest -q -p no:cacheprovider";

export async function checkFor(
  top: ProjectTop,
  { scripts = false }: CheckOptions = {},
): Promise<string | undefined> {
  for (const { file, command } of KNOWN_BUILDS) {
    if (!top.names.has(file)) continue;
    const found = command(await top.read(file), top.names);
    if (found !== undefined) return found;
  }
  const { names } = top;
  const members = await testsOfMembers(top);
  if (members !== undefined) return members;
  const found = (await pythonTests(top)) ?? nodeTests(names) ?? perlTests(names) ?? batsTests(names);
  return found ?? (scripts ? testScript(top) : undefined);
}

/** npm's own placeholder is not a test. */
const PLACEHOLDER = /no test specified/;

function npmTest(text: string): string | undefined {
  const script = scriptNamed(text, "test");
  return script === undefined || PLACEHOLDER.test(script) ? undefined : "npm test --silent";
}

/** For a workspace of packages whose top has no test of its own. A member's placeholder for a test would fail. */
async function testsOfMembers({ names, read }: ProjectTop): Promise<string | undefined> {
  const members = [...names].filter((name) => name.endsWith("/package.json")).toSorted();
  const texts = await Promise.all(members.map(async (name) => [name, await read(name)] as const));
  const tested = texts.filter(([, text]) => npmTest(text) !== undefined).map(([name]) => path.dirname(name));
  if (tested.length === 0) return undefined;
  const isPnpm = names.has("pnpm-workspace.yaml");
  const isAll = texts.every(([name, text]) => tested.includes(path.dirname(name)) || !PLACEHOLDER.test(text));
  if (isAll) return isPnpm ? "pnpm --recursive test" : "npm test --silent --workspaces --if-present";
  const plain = tested.filter((folder) => /^[\w@][\w@./-]*$/.test(folder));
  if (plain.length === 0) return undefined;
  const each = plain.map((folder) => (isPnpm ? `--filter ./${folder}` : `--workspace ${folder}`)).join(" ");
  return isPnpm ? `pnpm ${each} test` : `npm test --silent ${each}`;
}

function denoTest(text: string): string {
  return /"test"\s*:/.test(text) ? "deno task test" : "deno test";
}

function scriptNamed(text: string, name: string): string | undefined {
  try {
    const { scripts } = JSON.parse(text) as { readonly scripts?: Readonly<Record<string, unknown>> };
    const script = scripts?.[name];
    return typeof script === "string" && script.trim() !== "" ? script : undefined;
  } catch {
    return undefined;
  }
}

/** Without settings of its own, phpunit needs the folder. */
function phpunitTests(text: string, names: ReadonlySet<string>): string | undefined {
  const folder = ["tests", "test"].find((name) => hasFileBelow(names, name, "Test.php"));
  return folder === undefined || !/"phpunit\/phpunit"/.test(text)
    ? undefined
    : `vendor/bin/phpunit ${folder}`;
}

const hasFileBelow = (names: ReadonlySet<string>, folder: string, end: string): boolean =>
  [...names].some((name) => name.startsWith(`${folder}/`) && name.endsWith(end));

const hasSpecs = (names: ReadonlySet<string>): boolean => hasFileBelow(names, "spec", "_spec.rb");

/** A task `test`, or `spec` of rspec's. */
function rakeTest(text: string, names: ReadonlySet<string>): string | undefined {
  const lines = text.split("\n").map((line) => line.trim());
  const has = (...starts: readonly string[]): boolean =>
    lines.some((line) => starts.some((start) => line.startsWith(start)));
  const task = has("Rake::TestTask.new(:", "Minitest::TestTask.create(:")
    ? /TestTask\.(?:new|create)\(:(\w{1,40})/.exec(text)?.[1]
    : has(
          "Rake::TestTask.new",
          "Minitest::TestTask.create",
          "task :test",
          "task test",
          'task "test"',
          "task 'test'",
        )
      ? "test"
      : has("RSpec::Core::RakeTask.new")
        ? "spec"
        : undefined;
  if (task === undefined) return undefined;
  return `${names.has("Gemfile") ? "bundle exec " : ""}rake ${task}`;
}

function justTest(text: string): string | undefined {
  return /^@?test(?=[ :])[^:\n]{0,200}:(?!=)/m.test(text) ? "just test" : undefined;
}

function makeTest(text: string): string | undefined {
  const target = ["test", "check"].find((name) => new RegExp(`^${name}[ \\t]*:(?!=)`, "m").test(text));
  return target === undefined ? undefined : `make ${target}`;
}

/**
 * Test files at the top or in a folder of tests. Tests of unittest, and tests that are programs, need nothing
 * installed.
 */
async function pythonTests({ names, read }: ProjectTop): Promise<string | undefined> {
  const files = [...names].filter((name) => /(?:^|\/)(?:test_\w+|\w+_test)\.py$/.test(name)).toSorted();
  const [first] = files;
  if (first === undefined) return undefined;
  const texts = await Promise.all(files.slice(0, MAX_READ).map((file) => read(file)));
  if (texts.some((text) => /^[ \t]*(?:import|from) unittest\b/m.test(text))) {
    const folder = first.includes("/") ? `-s ${first.slice(0, first.indexOf("/"))} ` : "";
    const pattern = /(?:^|\/)test_/.test(first) ? "test_*.py" : "*_test.py";
    return `python3 -m unittest discover ${folder}-p '${pattern}'`;
  }
  const programs = texts.every(
    (text) => /^if __name__ == /m.test(text) && !/^[ \t]*(?:import|from) pytest\b/m.test(text),
  );
  return programs && files.length === 1 && /^[\w./-]+$/.test(first) ? `python3 ${first}` : PYTEST;
}

const MAX_READ = 5;

function nodeTests(names: ReadonlySet<string>): string | undefined {
  if (![...names].some((name) => /\.test\.[cm]?[jt]s$/.test(name))) return undefined;
  return names.has("bun.lock") || names.has("bun.lockb") ? "bun test" : "node --test";
}

/** In the folder `t`, as in distributions, or at the top. */
function perlTests(names: ReadonlySet<string>): string | undefined {
  const tests = [...names].filter((name) => /^(?:t\/)?[\w.-]+\.t$/.test(name));
  if (tests.length === 0) return undefined;
  return tests.some((name) => name.startsWith("t/")) ? "prove -l t" : "prove *.t";
}

function batsTests(names: ReadonlySet<string>): string | undefined {
  const folder = TEST_FOLDERS.find((name) => hasFileBelow(names, name, ".bats"));
  return folder === undefined ? undefined : `bats ${folder}`;
}

const SCRIPTS = ["test.sh", "tests.sh", "run-tests.sh", "run_tests.sh", "runtests.sh"];

/** A script named like a test, at the top or in a folder of tests; in the latter, `run.sh` counts too. */
async function testScript({ names, read }: ProjectTop): Promise<string | undefined> {
  const below = TEST_FOLDERS.flatMap((folder) => [...SCRIPTS, "run.sh"].map((name) => `${folder}/${name}`));
  const script = [...SCRIPTS, ...below].find((name) => names.has(name));
  if (script === undefined) return undefined;
  const shell = /^#!.*\b(\w*sh)\b/.exec(await read(script))?.[1] ?? "sh";
  return shell === "sh" || shell === "bash" ? `${shell} ${script}` : undefined;
}

const MAX_BYTES = 256 * 1024;
