import type { Step } from "../../core/session.ts";
import type { Handoff } from "../../core/run-record.ts";
import { counted } from "../../core/wording.ts";
import { visibleLine } from "../../core/visible.ts";
import { type Output, styleText } from "../tty/output.ts";

interface Side {
  readonly kind: string;
}

interface ShownUndo {
  readonly session: string;
  /** The step to which the undo goes back; 0: the beginning. */
  readonly target: number;
  readonly redo: boolean;
  readonly dryRun: boolean;
  readonly done: boolean;
  readonly ops: readonly { readonly path: string; readonly from: Side | null; readonly to: Side | null }[];
  readonly merged: readonly string[];
  readonly refused: readonly { readonly path: string; readonly reason: string }[];
  readonly left: readonly string[];
}

interface UndonePath {
  readonly path: string;
  readonly action: "removed" | "restored" | "reverted" | "merged";
}

/** Leaves out folders that only had their permissions changed temporarily. */
export const undonePaths = ({ ops, merged }: Pick<ShownUndo, "ops" | "merged">): readonly UndonePath[] =>
  ops
    .filter(({ from, to }) => from !== to)
    .map(({ path, from, to }) => ({ path, action: actionOf(from, to, merged.includes(path)) }));

function actionOf(from: Side | null, to: Side | null, merged: boolean): UndonePath["action"] {
  if (merged) return "merged";
  if (to === null) return "removed";
  return from === null ? "restored" : "reverted";
}

const name = (path: string): string => (path === "" ? "." : visibleLine(path.toWellFormed()));

/** What was (or would be) undone, what was not and why, and what to type next. */
export function undoText(undone: ShownUndo, stream: Output): string {
  const { session, target, redo, dryRun, done, refused, left } = undone;
  const bold = (text: string): string => styleText("bold", text, { stream });
  const shown = undonePaths(undone);
  const lines = [
    ...shown.map(({ path, action }) => `${action.padEnd(8)} ${name(path)}`),
    ...left.map((path) => `left     ${name(path)}: it holds things that are not from the run`),
    ...refused.map(
      ({ path, reason }) => `${styleText("red", "refused", { stream })}  ${name(path)}: ${reason}`,
    ),
  ];
  const same = redo ? " --redo" : target > 0 ? ` --to ${target}` : "";
  const count = counted(shown.length, "path");
  if (refused.length > 0 && !done && !dryRun) {
    // If nothing else remains, --skip would have no effect either.
    const next = shown.length === 0 ? `harness diff ${session}` : `harness undo ${session}${same} --skip`;
    return [...lines, bold("nothing was changed"), `next: ${next}`].join("\n");
  }
  if (dryRun) return [...lines, bold(`${count} would be brought back`)].join("\n");
  if (!done) return [...lines, bold("nothing to undo: all is as it was before")].join("\n");
  const back = redo ? `harness undo ${session}` : `harness undo ${session} --redo`;
  return [...lines, bold(`${count} brought back`), `next: ${back}   (reverses this)`].join("\n");
}

/** The steps that a person can go back to. */
export function stepTable(steps: readonly Step[], stream: Output): string {
  const head = styleText("bold", "STEP  AT        TURN  WHAT", { stream });
  const rows = steps.map(({ step, kind, call, turn, at, target, before, after }) => {
    const what =
      kind === "call" ? visibleLine(call ?? "") : kind === "undo" ? `undo to ${target ?? 0}` : kind;
    const open =
      kind !== "lost" && after === null ? " (did not end)" : before === after ? " (changed nothing)" : "";
    const time = new Date(at).toTimeString().slice(0, 8);
    return `${String(step).padEnd(4)}  ${time}  ${String(turn ?? "-").padEnd(4)}  ${what}${open}`;
  });
  return [head, ...rows].join("\n");
}

interface AppliedSide {
  readonly kind: string;
}

export interface ShownApply {
  readonly session: string;
  readonly ops: readonly {
    readonly path: string;
    readonly from: AppliedSide | null;
    readonly to: AppliedSide | null;
  }[];
  readonly merged: readonly string[];
  readonly refused: readonly { readonly path: string; readonly reason: string }[];
  readonly left: readonly string[];
  readonly handoff: readonly Handoff[];
  /** Dangerous paths that have not been accepted. */
  readonly blocked: readonly string[];
  readonly done: boolean;
  /** True when nothing is left in the layer. */
  readonly whole: boolean;
}

interface AppliedPath {
  readonly path: string;
  readonly action: "added" | "changed" | "removed" | "merged";
}

/** Leaves out folders that only have their permissions changed temporarily. */
export const appliedPaths = ({ ops, merged }: Pick<ShownApply, "ops" | "merged">): readonly AppliedPath[] =>
  ops
    .filter(({ from, to }) => from !== to)
    .map(({ path, from, to }) => ({ path, action: applyActionOf(from, to, merged.includes(path)) }));

function applyActionOf(
  from: AppliedSide | null,
  to: AppliedSide | null,
  merged: boolean,
): AppliedPath["action"] {
  if (merged) return "merged";
  if (to === null) return "removed";
  return from === null ? "added" : "changed";
}

const appliedName = (path: string): string => visibleLine(path.toWellFormed());

/** What was (or would be) moved into the workspace, what was not and why, and what to type next. */
export function appliedText(applied: ShownApply, stream: Output): string {
  const { session, done, whole, refused, left, handoff, blocked } = applied;
  const red = (text: string): string => styleText("red", text, { stream });
  const shown = appliedPaths(applied);
  const lines = [
    ...shown.map(({ path, action }) => `${action.padEnd(8)} ${appliedName(path)}`),
    ...left.map((path) => `left     ${appliedName(path)}: it holds things that the session did not change`),
    ...refused.map(({ path, reason }) => `${red("refused")}  ${appliedName(path)}: ${reason}`),
    ...handoff.map(({ path, tier, reason }) => {
      const waits = blocked.includes(path);
      const mark = waits ? red("blocked") : tier === "dangerous" ? red("danger ") : "look at";
      return `${mark}  ${appliedName(path)}: ${reason}`;
    }),
  ];
  return [
    ...lines,
    ...endOf({ session, done, whole, count: shown.length, refused: refused.length, blocked }, stream),
  ].join("\n");
}

interface End extends Pick<ShownApply, "session" | "done" | "whole" | "blocked"> {
  readonly count: number;
  readonly refused: number;
}

function endOf({ session, done, whole, count, refused, blocked }: End, stream: Output): string[] {
  const bold = (text: string): string => styleText("bold", text, { stream });
  const paths = counted(count, "path");
  if (blocked.length > 0)
    return [
      bold("nothing was applied: the host would run or obey the blocked paths by itself"),
      `next: harness diff ${session}, then harness apply ${session} --accept PATH for each (or --accept dangerous)`,
    ];
  if (!done && count > 0) return [bold(`${paths} would be applied`)];
  if (whole)
    return [bold(count === 0 ? "everything is applied already" : `${paths} applied; nothing is left`)];
  const rest =
    refused > 0
      ? `harness diff ${session}   (what was refused is still in the layer)`
      : `harness apply ${session}`;
  return [bold(`${paths} applied`), `next: ${rest}`];
}
