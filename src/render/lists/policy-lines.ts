import type { Decision } from "../../core/decision.ts";
import { visible, visibleLine } from "../../core/visible.ts";
import { type Output, styleText } from "../tty/output.ts";
import { verdictLine } from "./explained.ts";

interface WrongVerdict {
  readonly where: string;
  readonly cmd: string;
  readonly mode: string;
  readonly class: string;
  readonly want: string;
  readonly got: string;
  readonly rule: string;
  readonly reason: string;
  readonly debatable: boolean;
}

interface Counted {
  readonly right: number;
  readonly total: number;
}

/** Why one command of a file failed. */
export function wrongVerdict(wrong: WrongVerdict, stream: Output): string {
  const { where, cmd, mode, want, got, rule, reason, debatable } = wrong;
  const verdicts = styleText(debatable ? "yellow" : "red", `want ${want}, got ${got}`, { stream });
  const suffix = debatable ? ", debatable" : "";
  return [
    `${visibleLine(where)}  ${verdicts}  [${visibleLine(wrong.class)}${suffix}]`,
    `    ${visible(cmd).replaceAll("\n", "\n    ")}`,
    `    ${visibleLine(reason)}  (${visibleLine(rule)}, ${mode})`,
    "",
  ].join("\n");
}

/** Correct and total counts for each class, then for all of them. */
export function scoreTable(
  classes: ReadonlyMap<string, Counted>,
  { sure, debatable }: { readonly sure: Counted; readonly debatable: Counted },
): string {
  const rows: readonly (readonly [string, Counted])[] = [
    ...[...classes].map(([name, count]) => [visibleLine(name), count] as const),
    ["all", sure],
    ...(debatable.total === 0 ? [] : [["debatable only", debatable] as const]),
  ];
  const width = Math.max(...rows.map(([name]) => name.length));
  return rows.map(([name, { right, total }]) => `${name.padEnd(width)}  ${right}/${total}`).join("\n");
}

/** The verdict with its first reason, then the other reasons, then the judged path. */
export function pathVerdict(decision: Decision & { readonly path: string }, stream: Output): string {
  const [, ...others] = decision.rules.map(({ id, reason }) => `    ${visibleLine(reason)}  (${id})`);
  return [verdictLine(decision, stream), ...others, `    path  ${visibleLine(decision.path)}`].join("\n");
}

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

/** A command of a past session whose verdict has changed. */
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
