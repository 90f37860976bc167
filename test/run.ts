/**
 * Runs tests: `node test/run.ts [unit] [e2e] [engine] [FILE…] [--changed [--all]]`, everything without a word.
 * Unit tests that change nothing of their process share one with their neighbours, so that modules load once and not
 * 400 times; everything else has a process of its own. No test run, a failure, and a skip without a reason are red.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import path from "node:path";
import { finished } from "node:stream/promises";
import { run } from "node:test";
import { spec, type TestEvent } from "node:test/reporters";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { changedFiles, selected } from "./house/changed.ts";
import { dealt, type Suite, SUITES, type TestFile, testFiles } from "./house/suites.ts";

const ROOT = path.join(import.meta.dirname, "..");
const CORES = availableParallelism();

/** Groups per core: many enough that a heavy one does not run at the end by itself. */
const GROUPS = 6;

/** Engine tests wait for the engine more than they compute. */
const ENGINE_BESIDE = CORES + 1;

class Tally {
  ran = 0;
  failed = 0;
  readonly #skipped: string[] = [];

  readonly note = (event: TestEvent): void => {
    if (event.type !== "test:pass" && event.type !== "test:fail") return;
    if (event.type === "test:fail") this.failed += 1;
    if (event.data.details.type === "suite") return;
    this.ran += 1;
    const { skip, name } = event.data;
    if (skip === undefined || skip === false) return;
    this.#skipped.push(`  ${name}: ${typeof skip === "string" && skip !== "" ? skip : "NO REASON GIVEN"}`);
  };

  /** Says what was skipped and why. */
  get green(): boolean {
    return (
      this.ran > 0 && this.failed === 0 && !this.#skipped.some((line) => line.endsWith("NO REASON GIVEN"))
    );
  }

  print(): void {
    if (this.#skipped.length > 0)
      console.log(`\nskipped, so not shown here (${this.#skipped.length}):\n${this.#skipped.join("\n")}`);
    if (this.ran === 0) console.log("\nno test was run");
    else console.log(`\n${this.ran} tests, ${this.failed} failed, ${this.#skipped.length} skipped`);
  }
}

/** One run of these files, `beside` of them at once. */
async function runFiles(files: readonly string[], beside: number, tally: Tally): Promise<void> {
  if (files.length === 0) return;
  const events = run({ files: files.map((file) => path.resolve(ROOT, file)), concurrency: beside });
  events.on("data", tally.note);
  const shown = events.pipe(new spec());
  shown.pipe(process.stdout, { end: false });
  await finished(shown);
}

/** Modules that import the files of a group; their folder is gone with the process. */
function groupModules(files: readonly string[]): readonly string[] {
  const folder = mkdtempSync(path.join(tmpdir(), "harness-tests-"));
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  return dealt(files, CORES * GROUPS).map((group, index) => {
    const module = path.join(folder, `group-${index + 1}.mjs`);
    const lines = group.map(
      (file) => `import ${JSON.stringify(pathToFileURL(path.join(ROOT, file)).href)};\n`,
    );
    writeFileSync(module, lines.join(""));
    return module;
  });
}

const paths = (files: readonly TestFile[]): readonly string[] => files.map(({ file }) => file);

async function runSuite(suite: Suite, files: readonly TestFile[], tally: Tally): Promise<void> {
  const beside = files.filter((each) => !each.alone);
  const own = beside.filter((each) => each.ownProcess);
  const shared = groupModules(paths(beside.filter((each) => !each.ownProcess)));
  await runFiles([...paths(own), ...shared], suite === "engine" ? ENGINE_BESIDE : CORES, tally);
  await runFiles(paths(files.filter((each) => each.alone)), 1, tally);
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { changed: { type: "boolean", default: false }, all: { type: "boolean", default: false } },
});

function wanted(): readonly TestFile[] {
  const every = testFiles(ROOT);
  if (values.changed) return touched(every);
  if (positionals.length === 0) return every;
  return every.filter(({ file, suite }) => positionals.includes(suite) || positionals.includes(file));
}

function touched(every: readonly TestFile[]): readonly TestFile[] {
  const changed = changedFiles(ROOT);
  const { chosen, left } = selected(ROOT, every, changed, values.all);
  console.log(`${changed.length} files changed, which touch ${chosen.length} of ${every.length} test files`);
  if (left.length > 0)
    console.log(
      `left out, being slow: ${left.length} that need an engine or start the CLI (with --all they run):\n` +
        left.map(({ file }) => `  ${file}\n`).join(""),
    );
  return chosen;
}

const cache = path.join(ROOT, "node_modules/.cache/tests");
mkdirSync(cache, { recursive: true });
process.env["NODE_COMPILE_CACHE"] ??= cache;
const tally = new Tally();
const files = wanted();
for (const suite of SUITES)
  await runSuite(
    suite,
    files.filter((each) => each.suite === suite),
    tally,
  );
tally.print();
// A change that touches no test is no red.
process.exitCode = tally.green || (values.changed && files.length === 0) ? 0 : 1;
