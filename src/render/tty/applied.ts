import type { Handoff } from "../../core/handoff.ts";
import { visibleLine } from "../../core/visible.ts";
import { type Output, styleText } from "./output.ts";

interface Side {
  readonly kind: string;
}

export interface AppliedTold {
  readonly session: string;
  readonly ops: readonly { readonly path: string; readonly from: Side | null; readonly to: Side | null }[];
  readonly merged: readonly string[];
  readonly refused: readonly { readonly path: string; readonly reason: string }[];
  readonly left: readonly string[];
  readonly handoff: readonly Handoff[];
  /** Dangerous ones that nobody has accepted. */
  readonly blocked: readonly string[];
  readonly done: boolean;
  /** Nothing is left in the layer. */
  readonly whole: boolean;
}

interface AppliedPath {
  readonly path: string;
  readonly action: "added" | "changed" | "removed" | "merged";
}

/** Folders whose rights are only needed on the way are left out. */
export const appliedPaths = ({ ops, merged }: Pick<AppliedTold, "ops" | "merged">): readonly AppliedPath[] =>
  ops
    .filter(({ from, to }) => from !== to)
    .map(({ path, from, to }) => ({ path, action: actionOf(from, to, merged.includes(path)) }));

function actionOf(from: Side | null, to: Side | null, merged: boolean): AppliedPath["action"] {
  if (merged) return "merged";
  if (to === null) return "removed";
  return from === null ? "added" : "changed";
}

const name = (path: string): string => visibleLine(path.toWellFormed());

/** What was moved into the workspace, or would be; what was not, and why; what to type next. */
export function appliedText(told: AppliedTold, stream: Output): string {
  const { session, done, whole, refused, left, handoff, blocked } = told;
  const red = (text: string): string => styleText("red", text, { stream });
  const shown = appliedPaths(told);
  const lines = [
    ...shown.map(({ path, action }) => `${action.padEnd(8)} ${name(path)}`),
    ...left.map((path) => `left     ${name(path)}: there is something in it that the session did not change`),
    ...refused.map(({ path, reason }) => `${red("refused")}  ${name(path)}: ${reason}`),
    ...handoff.map(({ path, tier, reason }) => {
      const waits = blocked.includes(path);
      const mark = waits ? red("blocked") : tier === "dangerous" ? red("danger ") : "look at";
      return `${mark}  ${name(path)}: ${reason}`;
    }),
  ];
  return [
    ...lines,
    ...endOf({ session, done, whole, count: shown.length, refused: refused.length, blocked }, stream),
  ].join("\n");
}

interface End extends Pick<AppliedTold, "session" | "done" | "whole" | "blocked"> {
  readonly count: number;
  readonly refused: number;
}

function endOf({ session, done, whole, count, refused, blocked }: End, stream: Output): string[] {
  const bold = (text: string): string => styleText("bold", text, { stream });
  const paths = `${count} path${count === 1 ? "" : "s"}`;
  if (blocked.length > 0)
    return [
      bold("nothing was applied: the host would run or obey what is blocked by itself"),
      `next: harness diff ${session}, then harness apply ${session} --accept PATH for each (or --accept dangerous)`,
    ];
  if (!done && count > 0) return [bold(`${paths} would be applied`)];
  if (whole) return [bold(count === 0 ? "all of it is there already" : `${paths} applied; nothing is left`)];
  const rest =
    refused > 0 ? `harness diff ${session}   (what was refused stays there)` : `harness apply ${session}`;
  return [bold(`${paths} applied`), `next: ${rest}`];
}
