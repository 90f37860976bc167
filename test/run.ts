/**
 * Runs tests: `node test/run.ts [unit] [e2e] [engine] [slow] [FILE…] [--changed [--all]]`; without arguments, all that
 * are not slow. Files that change nothing in their process share one with others, so that modules load once and not 800 times; every other
 * file has a separate process. No test run, a failure, or a skip without a reason makes the result red.
 */
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statfsSync,
  writeFileSync,
} from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { changedFiles, selected } from "./house/changed.ts";
import {
  called,
  dealt,
  expected,
  longestFirst,
  type Suite,
  type TestFile,
  testFiles,
  type Times,
} from "./house/suites.ts";
import { type Lane, runLanes } from "./house/lanes.ts";
import { runFile, Tally } from "./house/tally.ts";

const ROOT = path.join(import.meta.dirname, "..");
const CORES = availableParallelism();

/** Groups per core: each loads the modules anew; files with a separate process fill the gaps at the end. */
const GROUPS = 3;

/** Maximum number of files of the other suites in one process: more would run one after the other at the very end. */
const TOGETHER = 4;

/** Many small cases create much short-lived garbage: with more room it is collected less often. */
const YOUNG = ["--min-semi-space-size=16"];

/** Engine tests wait for the engine more than they compute. */
const ENGINE_BESIDE = CORES * 2;

/** Tests of the CLI run beside all others and wait for programs that they start. */
const CLI_BESIDE = Math.ceil(CORES / 2);

/** All of them together. */
const BESIDE = CORES + ENGINE_BESIDE + CLI_BESIDE;

/** A folder that is removed with this process. */
function ownFolder(parent: string): string {
  const folder = mkdtempSync(path.join(parent, "harness-tests-"));
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

interface Unit {
  readonly module: string;
  readonly files: readonly string[];
}

/** Modules that import the files of a group. */
function groupModules(files: readonly string[], groups: number, times: Times): readonly Unit[] {
  const folder = ownFolder(tmpdir());
  return dealt(files, groups, times).map((group, index) => {
    const module = path.join(folder, `group-${index + 1}.mjs`);
    const lines = group.map(
      (file) => `import ${JSON.stringify(pathToFileURL(path.join(ROOT, file)).href)};\n`,
    );
    writeFileSync(module, lines.join(""));
    return { module, files: group };
  });
}

const MEMORY = "/dev/shm";
const MEMORY_FREE = 2 * 2 ** 30;

/** Unit tests write many small files and wait until each is on disk: they use memory instead, if there is room. */
function memoryFolder(): string | undefined {
  try {
    const { bavail, bsize } = statfsSync(MEMORY);
    if (bavail * bsize < MEMORY_FREE) return undefined;
    const folder = ownFolder(MEMORY);
    // Some programs started by tests run as other users.
    chmodSync(folder, 0o1777);
    return folder;
  } catch {
    return undefined;
  }
}

const paths = (files: readonly TestFile[]): readonly string[] => files.map(({ file }) => file);

/** The files that may run beside others, grouped into processes, longest first. */
function unitsOf(files: readonly TestFile[], suite: Suite): readonly string[] {
  const beside = files.filter((each) => !each.alone);
  const own = paths(beside.filter((each) => each.ownProcess)).map((file) => ({
    module: file,
    files: [file],
  }));
  const sharing = paths(beside.filter((each) => !each.ownProcess));
  const groups = suite === "unit" ? CORES * GROUPS : Math.ceil(sharing.length / TOGETHER);
  const shared = groupModules(sharing, groups, known);
  const units = longestFirst<Unit>([...own, ...shared], known, (unit) => unit.files);
  return units.map(({ module }) => module);
}

/** Environment variables of a suite. */
function environment(suite: Suite): Readonly<Record<string, string>> {
  const memory = suite === "unit" && process.env["TMPDIR"] === undefined ? memoryFolder() : undefined;
  return memory === undefined ? {} : { TMPDIR: memory };
}

function laneOf(suite: Suite, bounds: Pick<Lane, "share" | "most" | "after">, tally: Tally): Lane {
  const units = unitsOf(
    files.filter((each) => each.suite === suite),
    suite,
  );
  const env = units.length === 0 ? {} : environment(suite);
  const flags = suite === "unit" ? YOUNG : [];
  return { ...bounds, files: units, run: (file) => runFile(file, tally, { env, flags }) };
}

/**
 * Unit tests compute, while tests that start the CLI or use the engine mostly wait, so these run at the same time.
 * Tests marked alone are alone among tests that use the engine, and no test of the other suites asks the engine for
 * anything. A lane with nothing left leaves its room to the others.
 */
function runAll(tally: Tally): Promise<void> {
  const unit = laneOf("unit", { share: CORES, most: CORES + 1 }, tally);
  const alone: Lane = {
    files: paths(files.filter((each) => each.alone)),
    run: (file) => runFile(file, tally),
    share: 1,
    most: 1,
  };
  const cli = laneOf("e2e", { share: CLI_BESIDE, most: CLI_BESIDE * 3 }, tally);
  const engine = laneOf("engine", { share: ENGINE_BESIDE, most: BESIDE, after: alone }, tally);
  return runLanes([unit, alone, engine, cli], BESIDE);
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { changed: { type: "boolean", default: false }, all: { type: "boolean", default: false } },
});

function chosenFiles(): readonly TestFile[] {
  const every = testFiles(ROOT);
  if (values.changed) return touched(every);
  const files = called(every, positionals);
  if (positionals.length === 0) {
    const left = every.filter(({ slow }) => slow).map(({ file }) => `  ${file}\n`);
    const partly = every.filter(({ slow, alsoSlow }) => alsoSlow && !slow).map(({ file }) => `  ${file}\n`);
    console.log(
      `left out, being slow (npm run test:slow has them): ${left.length} files\n${left.join("")}` +
        `and the slow tests, or most cases, of ${partly.length} more\n${partly.join("")}`,
    );
  }
  return files;
}

function touched(every: readonly TestFile[]): readonly TestFile[] {
  const changed = changedFiles(ROOT);
  const { chosen: taken, left } = selected(ROOT, every, changed, values.all);
  console.log(`${changed.length} files changed, which touch ${taken.length} of ${every.length} test files`);
  if (left.length > 0)
    console.log(
      `left out, being slow: ${left.length} that need an engine or start the CLI (with --all they run):\n` +
        left.map(({ file }) => `  ${file}\n`).join(""),
    );
  return taken;
}

// Tests check file modes, so they must not depend on the caller's umask.
process.umask(0o022);
// Likewise for terminal output: a build server's environment has no live line and no colours.
for (const name of ["CI", "FORCE_COLOR", "NO_COLOR"]) delete process.env[name];
// A fresh clone lacks the modules generated from YAML; changed ones are regenerated.
if (existsSync(path.join(ROOT, "bin/programs.ts"))) await import("../bin/programs.ts");
const cache = path.join(ROOT, "node_modules/.cache/tests");
mkdirSync(cache, { recursive: true });
process.env["NODE_COMPILE_CACHE"] ??= cache;

const TIMES = path.join(cache, "times.json");

function timesOf(file: string): Times {
  try {
    return new Map(JSON.parse(readFileSync(file, "utf8")) as [string, number][]);
  } catch {
    // No tests have run here yet.
    return new Map();
  }
}

/** Looks for an engine once for all files (`test/fixtures/engine.ts`): it costs 0.2 s. */
async function askForAll(): Promise<void> {
  const { askedEngine } = await import("./fixtures/asked-engine.ts");
  process.env["HARNESS_TEST_ENGINE"] ??= JSON.stringify(await askedEngine(ROOT));
}

// The slow suite has all tests of its files, and so has a file that is named.
if (positionals.some((word) => word === "slow" || word.endsWith(".ts"))) process.env["HARNESS_SLOW"] = "1";
const measured = timesOf(TIMES);
const tally = new Tally();
const files = chosenFiles();
const known = expected(files, measured);
if (files.some(({ suite }) => suite === "engine")) await askForAll();
await runAll(tally);
// Another run may write or read the times at the same time.
writeFileSync(`${TIMES}.${process.pid}`, JSON.stringify([...measured, ...tally.times]));
renameSync(`${TIMES}.${process.pid}`, TIMES);
await tally.print();
// A change that affects no test does not make the result red.
process.exitCode = tally.green || (values.changed && files.length === 0) ? 0 : 1;
