import { visibleLine } from "../../core/visible.ts";
import { fitted, widthOfStream } from "./fitted.ts";
import { type Output, styleText } from "./output.ts";

interface Ended {
  readonly kind: string;
  readonly exit_code: number | null;
}

export interface ShownRerun {
  readonly command: string;
  readonly outcome: "same" | "differs" | "not run";
  readonly then: Ended | null;
  readonly now: Ended | null;
  readonly difference: {
    readonly line: number;
    readonly then: string | undefined;
    readonly now: string | undefined;
  } | null;
  readonly reason: string;
}

const COLOURS = { same: "green", differs: "red", "not run": "yellow" } as const;

/** A command that was run again, and where its result is another one. */
export function rerunLines(rerun: ShownRerun, stream: Output): string {
  const { command, outcome, then, now, difference, reason } = rerun;
  const width = widthOfStream(stream);
  const lines = [
    `${styleText(COLOURS[outcome], outcome.padEnd(8), { stream })} ${fitted(command, width - 9)}`,
  ];
  if (reason !== "") lines.push(`    ${visibleLine(reason)}`);
  if (outcome === "differs" && words(then) !== words(now))
    lines.push(`    then ${words(then)}, now ${words(now)}`);
  if (difference !== null)
    lines.push(
      `    line ${difference.line} then: ${fitted(difference.then ?? "(no such line)", width - 24)}`,
      `    line ${difference.line} now:  ${fitted(difference.now ?? "(no such line)", width - 24)}`,
    );
  return `${lines.join("\n")}\n`;
}

const words = (ended: Ended | null): string =>
  ended === null ? "nothing" : `${ended.kind}${ended.exit_code === null ? "" : ` (exit ${ended.exit_code})`}`;
