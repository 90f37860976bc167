import { visible, visibleLine } from "../../core/visible.ts";
import { type Output, styleText } from "./output.ts";

export interface ChangedVerdict {
  readonly ts: string;
  readonly session: string;
  readonly command: string;
  readonly mode: string;
  readonly old: string;
  readonly new: string;
  readonly rule: string;
  readonly reason: string;
}

/** A command of a past session whose verdict is another one now. */
export function changedVerdict(changed: ChangedVerdict, stream: Output): string {
  const { ts, session, command, mode, rule, reason } = changed;
  const verdicts = styleText("bold", `${changed.old} -> ${changed.new}`, { stream });
  return [
    `${verdicts}  ${visibleLine(ts)}  ${visibleLine(session)}`,
    `    ${visible(command).replaceAll("\n", "\n    ")}`,
    `    ${visibleLine(reason)}  (${visibleLine(rule)}, ${mode})`,
    "",
  ].join("\n");
}
