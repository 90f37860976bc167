import path from "node:path";
import { finished } from "node:stream/promises";
import { run } from "node:test";
import { spec, type TestEvent } from "node:test/reporters";

/** Runs test files and counts: no test run, a failure, and a skip without a reason are red. */

const ROOT = path.join(import.meta.dirname, "../..");

export class Tally {
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

  /** What each file of this run took, by its path from the root. */
  readonly times = new Map<string, number>();

  readonly time = (event: TestEvent): void => {
    if (event.type !== "test:pass" && event.type !== "test:fail") return;
    const { nesting, file, details } = event.data;
    if (nesting > 0 || file === undefined) return;
    const name = path.relative(ROOT, file).replaceAll(path.sep, "/");
    this.times.set(name, (this.times.get(name) ?? 0) + details.duration_ms);
  };

  print(): void {
    if (this.#skipped.length > 0)
      console.log(`\nskipped, so not shown here (${this.#skipped.length}):\n${this.#skipped.join("\n")}`);
    if (this.ran === 0) console.log("\nno test was run");
    else console.log(`\n${this.ran} tests, ${this.failed} failed, ${this.#skipped.length} skipped`);
  }
}

/** One run of these files, `beside` of them at once. */
export async function runFiles(files: readonly string[], beside: number, tally: Tally): Promise<void> {
  if (files.length === 0) return;
  const events = run({ files: files.map((file) => path.resolve(ROOT, file)), concurrency: beside });
  events.on("data", tally.note);
  events.on("data", tally.time);
  const shown = events.pipe(new spec());
  shown.pipe(process.stdout, { end: false });
  await finished(shown);
}
