/** Says at the very end what was skipped and why, and makes a run of no tests red. */
import type { TestEvent } from "node:test/reporters";

export default async function* closing(source: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  const skipped: string[] = [];
  let ran = 0;
  for await (const event of source) {
    if (event.type !== "test:pass" && event.type !== "test:fail") continue;
    if (event.data.details.type === "suite") continue;
    ran += 1;
    const { skip } = event.data;
    if (skip === undefined || skip === false) continue;
    skipped.push(
      `  ${event.data.name}: ${typeof skip === "string" && skip !== "" ? skip : "NO REASON GIVEN"}`,
    );
  }
  if (skipped.length > 0) yield `\nskipped, so not shown here (${skipped.length}):\n${skipped.join("\n")}\n`;
  if (ran === 0) {
    yield "\nno test was run\n";
    process.exitCode = 1;
  }
  if (skipped.some((line) => line.endsWith("NO REASON GIVEN"))) process.exitCode = 1;
}
