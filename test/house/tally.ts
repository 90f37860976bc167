import path from "node:path";
import { finished } from "node:stream/promises";
import { run } from "node:test";
import { spec, type TestEvent } from "node:test/reporters";

/** Runs test files and counts: no test run, a failure, and a skip without a reason are red. */

const ROOT = path.join(import.meta.dirname, "../..");

export class Tally {
  ran = 0;
  failed = 0;
  /** Names of tests by the reason for which they were skipped. */
  readonly #skipped = new Map<string, string[]>();
  readonly #failures: string[] = [];

  readonly note = (event: TestEvent): void => {
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

  /** Says what was skipped and why. */
  get green(): boolean {
    return this.ran > 0 && this.failed === 0 && !this.#skipped.has(NO_REASON);
  }

  /** What each file of this run took, by its path from the root. */
  readonly times = new Map<string, number>();

  /** A process of one file tells its own time; in one of many files each test counts for the file it stands in. */
  readonly time = (event: TestEvent): void => {
    if (event.type !== "test:complete" || event.data.nesting > 0) return;
    const { name, file, details, entryFile } = event.data as CompletedTest;
    if (entryFile?.endsWith(".test.ts")) return;
    const timed = path.relative(ROOT, (entryFile === undefined ? name : file) ?? "");
    if (!timed.endsWith(".test.ts")) return;
    const known = timed.replaceAll(path.sep, "/");
    this.times.set(known, (this.times.get(known) ?? 0) + details.duration_ms);
  };

  /** What was skipped and why, then what failed: the end of a long output is what is read. */
  print(): void {
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

function failureText({ name, file, details }: Extract<TestEvent, { type: "test:fail" }>["data"]): string {
  const { cause, message } = details.error;
  const text = cause instanceof Error ? (cause.stack ?? cause.message) : message;
  return `${name}\n  ${path.relative(ROOT, file ?? "")}\n${text.slice(0, MOST_OF_ONE)}`;
}

/** The file that its process was started with is not in the types yet; a test that is a process has none. */
type CompletedTest = Extract<TestEvent, { type: "test:complete" }>["data"] & { readonly entryFile?: string };

interface Beside {
  readonly beside: number;
  /** Of its processes, over that of this one. */
  readonly env?: Readonly<Record<string, string>>;
}

/** One run of these files, `beside` of them at once. */
export async function runFiles(
  files: readonly string[],
  { beside, env = {} }: Beside,
  tally: Tally,
): Promise<void> {
  if (files.length === 0) return;
  const events = run({
    files: files.map((file) => path.resolve(ROOT, file)),
    concurrency: beside,
    env: { ...process.env, ...env },
  });
  events.on("data", tally.note);
  events.on("data", tally.time);
  const shown = events.pipe(new spec());
  shown.pipe(process.stdout, { end: false });
  await finished(shown);
}
