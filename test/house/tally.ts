import path from "node:path";
import { finished } from "node:stream/promises";
import { run } from "node:test";
import { spec, type TestEvent } from "node:test/reporters";

/** Runs test files and counts: no test run, a failure, or a skip without a reason makes the result red. */

const ROOT = path.join(import.meta.dirname, "../..");
const BEFORE = ["./untracked-promises.ts", "./unused-parts.ts"].flatMap((file) => [
  "--import",
  import.meta.resolve(file),
]);

export class Tally {
  ran = 0;
  failed = 0;
  /** Names of skipped tests, by reason. */
  readonly #skipped = new Map<string, string[]>();
  readonly #failures: string[] = [];

  readonly #shown = new spec();

  constructor() {
    this.#shown.pipe(process.stdout, { end: false });
  }

  readonly note = (event: TestEvent): void => {
    this.#shown.write(event);
    if (event.type !== "test:pass" && event.type !== "test:fail") return;
    if (event.type === "test:fail") {
      this.failed += 1;
      this.#failures.push(failureText(event.data));
    }
    if (event.data.details.type === "suite") return;
    this.ran += 1;
    const { skip, name } = event.data;
    if (skip === undefined || skip === false) return;
    const reason = typeof skip === "string" && skip !== "" ? skip : NO_REASON;
    this.#skipped.set(reason, [...(this.#skipped.get(reason) ?? []), name]);
  };

  /** Whether tests ran, none failed, and every skip has a reason. */
  get green(): boolean {
    return this.ran > 0 && this.failed === 0 && !this.#skipped.has(NO_REASON);
  }

  /** The duration of each file of this run, by path from the root. */
  readonly times = new Map<string, number>();

  /** A process with one file reports its own time; in a process with many files each test counts for its file. */
  readonly time = (event: TestEvent): void => {
    if (event.type !== "test:complete" || event.data.nesting > 0) return;
    const { name, file, details, entryFile } = event.data as CompletedTest;
    if (entryFile?.endsWith(".test.ts")) return;
    const timed = path.relative(ROOT, (entryFile === undefined ? name : file) ?? "");
    if (!timed.endsWith(".test.ts")) return;
    const known = timed.replaceAll(path.sep, "/");
    this.times.set(known, (this.times.get(known) ?? 0) + details.duration_ms);
  };

  /** Reports what a killed process was doing. */
  ended(event: Failed, mostMs: number, begun: readonly string[]): void {
    this.#shown.write(event);
    this.ran += 1;
    this.failed += 1;
    const what = begun.length === 0 ? "no test had begun, or all had ended" : `at ${begun.join(", ")}`;
    const file = path.relative(ROOT, event.data.name);
    this.#failures.push(`${file}\n  ended after ${mostMs / 60_000} minutes: ${what}`);
  }

  /** Prints what was skipped and why, then what failed: people read the end of a long output. */
  async print(): Promise<void> {
    this.#shown.end();
    await finished(this.#shown);
    const skipped = [...this.#skipped.values()].flat().length;
    if (skipped > 0) console.log(`\nskipped, so not shown here (${skipped}):`);
    for (const [reason, names] of this.#skipped)
      console.log(`  ${reason}:\n${names.map((name) => `    ${name}\n`).join("")}`.trimEnd());
    for (const failure of this.#failures.slice(0, MOST_FAILURES)) console.log(`\n✖ ${failure}`);
    if (this.ran === 0) console.log("\nno test was run");
    else console.log(`\n${this.ran} tests, ${this.failed} failed, ${skipped} skipped`);
  }
}

const NO_REASON = "NO REASON GIVEN";
const MOST_FAILURES = 20;
const MOST_OF_ONE = 1500;

type Failed = Extract<TestEvent, { type: "test:fail" }>;

function failureText({ name, file, details }: Failed["data"]): string {
  const { cause, message } = details.error;
  const text = cause instanceof Error ? (cause.stack ?? cause.message) : message;
  return `${name}\n  ${path.relative(ROOT, file ?? "")}\n${text.slice(0, MOST_OF_ONE)}`;
}

/** The types do not yet know the file with which the process was started; a test that is a process has none. */
type CompletedTest = Extract<TestEvent, { type: "test:complete" }>["data"] & { readonly entryFile?: string };

interface Bounds {
  /** Variables that override the environment of this process. */
  readonly env?: Readonly<Record<string, string>>;
  /** Flags for Node. */
  readonly flags?: readonly string[];
  /** Time limit: a process that hangs is killed and counts as failed. */
  readonly mostMs?: number;
}

/** Far longer than the longest file takes on a busy machine. */
const MOST_MS = 15 * 60_000;

/** Runs this module with the tests of one or several files in a separate process. */
export async function runFile(
  module: string,
  tally: Tally,
  { env = {}, flags = [], mostMs = MOST_MS }: Bounds = {},
): Promise<void> {
  const file = path.resolve(ROOT, module);
  const over = AbortSignal.timeout(mostMs);
  const begun = new Set<string>();
  const told: TestEvent[] = [];
  const events: AsyncIterable<TestEvent> = run({
    files: [file],
    env: { ...process.env, ...env },
    execArgv: [...BEFORE, ...flags],
    signal: over,
  });
  for await (const event of events) {
    if (isOfThisRun(event)) continue;
    tally.time(event);
    follow(begun, event);
    told.push(event);
  }
  // Keeps the output of a file together, whatever else ran meanwhile.
  for (const event of told)
    if (over.aborted && event.type === "test:fail" && event.data.name === file)
      tally.ended(event, mostMs, [...begun]);
    else tally.note(event);
}

/** Each run is one file: its totals add nothing to those of the tally. */
const isOfThisRun = ({ type, data }: TestEvent): boolean =>
  type === "test:summary" || (type === "test:diagnostic" && data.file === undefined);

/** Which tests of a process have begun and not ended. */
function follow(begun: Set<string>, event: TestEvent): void {
  if (event.type !== "test:dequeue" && event.type !== "test:complete") return;
  const { name, file = "", entryFile } = event.data as CompletedTest;
  // The process's own entry has no file.
  if (entryFile === undefined) return;
  const known = `${path.relative(ROOT, file)}: ${name}`;
  if (event.type === "test:dequeue") begun.add(known);
  else begun.delete(known);
}
