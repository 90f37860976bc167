import { formatSize } from "../../core/wording.ts";
import type { Health } from "../../core/errors.ts";
import { visibleLine } from "../../core/visible.ts";
import { hanging } from "../tty/columns.ts";
import { type Output, styleText } from "../tty/output.ts";
import type { StepLine } from "./search-lines.ts";

/** The closing table: what runs, what replaces what, and what to type next. */
export function setupTable(steps: readonly StepLine[], stream: Output): string {
  const rows = (state: StepLine["state"]): readonly string[] =>
    steps
      .filter((step) => step.state === state)
      .map(({ name, short }) => `${name.padEnd(7)} ${visibleLine(short)}`);
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
  return `\n${block("runs", rows("ok"))}${block("fallback", rows("stand-in"))}${block("next", next)}\n`;
}

const MARKS = { ok: ["green", "ok  "], warn: ["yellow", "warn"], fail: ["red", "fail"] } as const;

/** One line per check, with the command that fixes it below. */
export function healthTable(checks: readonly Health[], stream: Output): string {
  const width = Math.max(...checks.map(({ id }) => id.length));
  return checks
    .map(({ id, state, detail, remedy }) => {
      const [colour, mark] = MARKS[state];
      const head = `${styleText(colour, mark, { stream })}  ${id.padEnd(width)}  ${hanging(detail, width + 8, stream)}\n`;
      return remedy === ""
        ? head
        : `${head}${" ".repeat(width + 8)}${styleText("bold", "next:", { stream })} ${remedy}\n`;
    })
    .join("");
}

/** The place of a bug report and its contents. */
export const bundledLines = ({
  file,
  bytes,
  holds,
  left_out,
}: {
  readonly file: string;
  readonly bytes: number;
  readonly holds: readonly string[];
  readonly left_out: string;
}): string =>
  [
    `${visibleLine(file)}  (${formatSize(bytes)})`,
    ...holds.map((line) => `  contains ${line}`),
    `  left out: ${left_out}`,
    "Read it before you share it.",
  ].join("\n");
