import type { StepLine } from "./progress.ts";
import { type Output, styleText } from "./output.ts";

/** What runs, what stands in for what, what to type next. */
export function setupTable(steps: readonly StepLine[], stream: Output): string {
  const rows = (state: StepLine["state"]): readonly string[] =>
    steps.filter((step) => step.state === state).map(({ name, short }) => `${name.padEnd(7)} ${short}`);
  const next = [
    "./start.sh demo       see the box at work",
    "bin/harness doctor    check everything a run depends on",
  ];
  const block = (title: string, lines: readonly string[]): string =>
    lines
      .map(
        (line, index) =>
          `  ${styleText("bold", (index === 0 ? title : "").padEnd(10), { stream })} ${line}\n`,
      )
      .join("");
  return `\n${block("runs", rows("ok"))}${block("stands in", rows("stand-in"))}${block("type next", next)}\n`;
}
