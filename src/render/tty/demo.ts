import { stripVTControlCharacters, styleText } from "node:util";
import { formatDuration } from "../../core/bounds.ts";

interface Shown {
  readonly step: { readonly says: string; readonly command: string; readonly shows: string };
  readonly outcome: { readonly exit_code: number | null; readonly stdout: string; readonly stderr: string };
  readonly asExpected: boolean;
  readonly ms: number;
}

const LINES = 4;

/** One step of the demo: what is tried, what the box said, what that shows. */
export function demoStep({ step, outcome, asExpected, ms }: Shown, stream: NodeJS.WriteStream): string {
  const head = `${styleText("bold", step.says, { stream })}  ${styleText("dim", formatDuration(ms), { stream })}`;
  const lines = stripVTControlCharacters(`${outcome.stdout}${outcome.stderr}`)
    .split("\n")
    .filter((line) => line.trim() !== "");
  const cut =
    lines.length > LINES ? [...lines.slice(0, LINES), `(${lines.length - LINES} lines more)`] : lines;
  const output = cut.map((line) => `    ${styleText("dim", line.slice(0, 110), { stream })}\n`).join("");
  const mark = asExpected ? styleText("green", "✓", { stream }) : styleText("red", "✗", { stream });
  return `${head}\n  $ ${step.command}\n${output}  ${mark} ${asExpected ? step.shows : `exit code ${outcome.exit_code ?? "none (time-out)"}`}\n\n`;
}
