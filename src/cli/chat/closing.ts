import type { Finished } from "../../agent/run.ts";
import { wrapped, widthOfStream } from "../../render/tty/fitted.ts";
import { type Output, styleText } from "../../render/tty/output.ts";
import { commitRows, movedRows } from "../../render/tty/run-summary.ts";

const BACK = "the conversation is as it was; what finished calls have changed in files stays";

/** What a person is told at the end of a request that came to no answer; empty where everything is on the screen. */
export function closing({ status, reason, tool_calls }: Finished, stream: Output): string {
  switch (status) {
    case "done":
    case "refused":
      return "";
    case "interrupted":
      return lines("~", tool_calls === 0 ? "cancelled" : `cancelled: ${BACK}`, stream);
    case "budget":
      return lines("!", `${reason} Say "go on" to go on.`, stream);
    default:
      return lines("✗", reason, stream);
  }
}

/** What was moved out of the workspace beside a request, and committed for it; empty where nothing was. */
export function besides(finished: Finished, stream: Output): string {
  const [moved, commits] = [movedRows(finished), commitRows(finished, widthOfStream(stream) - INDENT.length)];
  const rows = [
    ...(moved.length === 0 ? [] : ["! made in the box and moved out of the workspace:", ...indented(moved)]),
    ...(commits.length === 0 ? [] : ["~ committed:", ...indented(commits)]),
  ];
  return rows.map((row) => `${styleText("yellow", row, { stream })}\n`).join("");
}

const INDENT = "  ";
const indented = (rows: readonly string[]): readonly string[] => rows.map((row) => INDENT + row);

const lines = (mark: string, text: string, stream: Output): string =>
  wrapped(`${mark} ${text}`, widthOfStream(stream))
    .map((line) => `${styleText(mark === "✗" ? "red" : "yellow", line, { stream })}\n`)
    .join("");
