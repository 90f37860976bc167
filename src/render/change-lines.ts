/** Changes of files for a person: their diffs, and what was undone or applied. */
import type { FileDiff, FileSide } from "../core/text/line-diff.ts";
import { bytesOfText } from "../core/raw-data.ts";
import type { Handoff } from "../core/run-record.ts";
import type { Step } from "../core/session.ts";
import { visible, visibleLine } from "../core/visible.ts";
import { plural } from "../core/wording.ts";
import { type Output, styleText } from "./tty/output.ts";

/** Diffs in the format of `git diff`; control characters in names and texts are made visible. */
export const fileDiffs = (files: readonly FileDiff[], stream: Output): string =>
  files.flatMap((file) => linesOf(file).map((line) => coloured(line, stream))).join("");

/** One line per file, and the totals. */
export function diffStat(files: readonly FileDiff[], stream: Output): string {
  const rows = files.map((file) => `${markOf(file, stream)} ${statName(file)}  ${countsOf(file, stream)}\n`);
  const sum = (of: "added" | "removed"): number =>
    files.reduce((all, { lines }) => all + (lines?.[of] ?? 0), 0);
  const total = `${plural(files.length, "path")} changed, +${sum("added")} -${sum("removed")} lines\n`;
  return rows.join("") + total;
}

interface Patch {
  readonly text: string;
  /** Paths whose change is not in it. */
  readonly left: readonly string[];
}

/**
 * The text for a pipe or a file: a patch that `git apply` accepts and that does nothing on a terminal. A change that
 * git's format cannot express, or only with control characters, appears as comments, which git ignores.
 */
export function pipedPatch(files: readonly FileDiff[]): Patch {
  const lines = files.flatMap((file) =>
    isTamePatch(file)
      ? patchLines(file)
      : linesOf(file).map((line) => (line.startsWith("# ") ? line : `# ${line}`)),
  );
  const left = files.filter((file) => !isTamePatch(file) && !isFolder(file)).map(({ path }) => path);
  return { text: lines.map((line) => `${line}\n`).join(""), left };
}

/** A patch for `git apply` with unaltered texts, for a file. */
export function gitPatchOf(files: readonly FileDiff[]): Patch {
  const lines = files.filter(isPatch).flatMap(patchLines);
  const left = files.filter((file) => !isPatch(file) && !isFolder(file)).map(({ path }) => path);
  const notes = left.map((path) => `# not in this patch: ${printedName(path)}\n`);
  return { text: notes.join("") + lines.map((line) => `${line}\n`).join(""), left };
}

/** A patch from elsewhere, for a pipe or a file. */
export const pipedText = (patch: string): string => patch.split("\n").map(tameLine).join("\n");

/** A patch from elsewhere. */
export const shownPatch = (patch: string, stream: Output): string =>
  patch === ""
    ? ""
    : visible(patch)
        .replace(/\n$/, "")
        .split("\n")
        .map((line) => coloured(line, stream))
        .join("");

const PARTS_OF_LINE = /^([ +-]\uFEFF|)(.*?)(\r?)$/s;

/** A byte order mark at the start and a CR at the end are part of a file's text and do nothing on a terminal. */
function tameLine(line: string): string {
  const [, start = "", text = line, end = ""] = PARTS_OF_LINE.exec(line.toWellFormed()) ?? [];
  return `${start}${visible(text)}${end}`;
}

const isTame = ({ lines }: FileDiff): boolean =>
  lines === null ||
  lines.hunks.every((hunk) => hunk.lines.every((line) => line.isWellFormed() && tameLine(line) === line));

const isTamePatch = (file: FileDiff): boolean => isPatch(file) && isTame(file);

const patchLines = (file: FileDiff): readonly string[] => [...headOf(file), ...hunksOf(file, (line) => line)];

const linesOf = (file: FileDiff): readonly string[] => [...headOf(file), ...bodyOf(file)];

function headOf(file: FileDiff): readonly string[] {
  const { path, was, before, after } = file;
  const [a, b] = [printedName(`a/${was ?? path}`), printedName(`b/${path}`)];
  const head = [`diff --git ${a} ${b}`];
  if (before === null) return [...head, `new file mode ${modeOf(after)}`];
  if (after === null) return [...head, `deleted file mode ${modeOf(before)}`];
  const modes =
    modeOf(before) === modeOf(after) ? [] : [`old mode ${modeOf(before)}`, `new mode ${modeOf(after)}`];
  if (was === null) return [...head, ...modes];
  const names = [`rename from ${printedName(was)}`, `rename to ${printedName(path)}`];
  return [...head, ...modes, "similarity index 100%", ...names];
}

function bodyOf(file: FileDiff): readonly string[] {
  const { before, after, change, lines } = file;
  const comments = commentsOn(before, after, change);
  if (lines !== null) return [...comments, ...hunksOf(file, visible)];
  if (file.cut === true) return [...comments, "# not shown: the whole diff would be too long"];
  const [a, b] = sidesOf(file);
  return [...comments, `Binary files ${a} and ${b} differ`];
}

const sidesOf = ({ path, was, before, after }: FileDiff): readonly [a: string, b: string] => [
  before === null ? "/dev/null" : printedName(`a/${was ?? path}`),
  after === null ? "/dev/null" : printedName(`b/${path}`),
];

function hunksOf(file: FileDiff, print: (line: string) => string): readonly string[] {
  const { lines } = file;
  if (lines === null || lines.hunks.length === 0) return [];
  const [a, b] = sidesOf(file);
  const hunks = lines.hunks.flatMap(({ from, to, lines: each }) => [
    `@@ -${from.join(",")} +${to.join(",")} @@`,
    ...each.map((line) => print(line.toWellFormed())),
  ]);
  return [`--- ${a}`, `+++ ${b}`, ...hunks];
}

/** A description of changes that git's diff format cannot express. */
function commentsOn(
  before: FileSide | null,
  after: FileSide | null,
  change: FileDiff["change"],
): readonly string[] {
  const [was, is] = [before?.kind, after?.kind];
  if (change === "modified" && was !== is) return [`# a ${was} before, a ${is} now`];
  const kind = is ?? was;
  if (kind === "unkept") return ["# what it holds was not kept"];
  return kind === undefined || kind === "file" || kind === "link" ? [] : [`# a ${kind}`];
}

const TYPES: Readonly<Record<FileSide["kind"], number>> = {
  file: 0o100000,
  unkept: 0o100000,
  link: 0o120000,
  folder: 0o040000,
  fifo: 0o010000,
  socket: 0o140000,
  device: 0o060000,
};

const modeOf = (side: FileSide | null): string =>
  side === null ? "0" : (TYPES[side.kind] | (side.mode ?? 0)).toString(8).padStart(6, "0");

function coloured(line: string, stream: Output): string {
  const paint = (style: "bold" | "cyan" | "red" | "green"): string =>
    `${styleText(style, line, { stream })}\n`;
  if (line.startsWith("@@")) return paint("cyan");
  if (/^(diff |--- |\+\+\+ |new |old |deleted |rename |similarity |Binary |# )/.test(line))
    return paint("bold");
  if (line.startsWith("+")) return paint("green");
  return line.startsWith("-") ? paint("red") : `${line}\n`;
}

const KINDS_OF_GIT: ReadonlySet<string | undefined> = new Set(["file", "link", undefined]);

/** Git does not track folders: they come and go with their content. */
const isFolder = ({ before, after }: FileDiff): boolean =>
  [before?.kind, after?.kind].every((kind) => kind === "folder" || kind === undefined);

const isPatch = ({ before, after, lines }: FileDiff): boolean =>
  lines !== null &&
  KINDS_OF_GIT.has(before?.kind) &&
  KINDS_OF_GIT.has(after?.kind) &&
  (before === null || after === null || before.kind === after.kind);

const statName = ({ path, was }: FileDiff): string =>
  was === null
    ? visibleLine(path.toWellFormed())
    : `${visibleLine(was.toWellFormed())} -> ${visibleLine(path.toWellFormed())}`;

function markOf({ change }: FileDiff, stream: Output): string {
  const [mark, colour] = (
    {
      added: ["A", "green"],
      deleted: ["D", "red"],
      modified: ["M", "yellow"],
      renamed: ["R", "cyan"],
    } as const
  )[change];
  return styleText(colour, mark, { stream });
}

function countsOf({ lines, before, after, change, cut }: FileDiff, stream: Output): string {
  const newMode = change === "modified" && before?.mode !== after?.mode;
  const mode = newMode ? [`${modeOf(before)} -> ${modeOf(after)}`] : [];
  const what = [after?.kind ?? before?.kind ?? "file"].filter((kind) => kind !== "file");
  if (lines !== null && lines.added + lines.removed > 0) {
    const counts = [
      styleText("green", `+${lines.added}`, { stream }),
      styleText("red", `-${lines.removed}`, { stream }),
    ];
    return [...counts, ...what, ...mode].join(" ");
  }
  const why = cut === true ? "not compared: the whole diff would be too long" : "binary";
  return [...(lines === null ? [why] : []), ...what, ...mode].join(" ");
}

const ODD = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800"\\]/u;

/** Quotes a name as git does: names that are not plain text are quoted, with unusual bytes in octal. */
function printedName(name: string): string {
  if (!ODD.test(name)) return name;
  const bytes = Array.from(bytesOfText(name), (byte) => {
    if (byte === 0x22 || byte === 0x5c) return `\\${String.fromCharCode(byte)}`;
    if (byte === 0x0a) return "\\n";
    if (byte === 0x09) return "\\t";
    return byte < 0x20 || byte > 0x7e ? `\\${byte.toString(8).padStart(3, "0")}` : String.fromCharCode(byte);
  });
  return `"${bytes.join("")}"`;
}

interface Side {
  readonly kind: string;
}

interface ShownOp {
  readonly path: string;
  readonly from: Side | null;
  readonly to: Side | null;
}

interface ShownUndo {
  readonly session: string;
  /** The step to which the undo goes back; 0: the beginning. */
  readonly target: number;
  readonly redo: boolean;
  readonly dryRun: boolean;
  readonly done: boolean;
  readonly ops: readonly ShownOp[];
  readonly merged: readonly string[];
  readonly refused: readonly { readonly path: string; readonly reason: string }[];
  readonly left: readonly string[];
}

interface PathAction<Action extends string> {
  readonly path: string;
  readonly action: Action | "removed" | "merged";
}

/** Leaves out folders that only have their permissions changed temporarily. */
const actionsOf = <Action extends string>(
  { ops, merged }: Pick<ShownUndo, "ops" | "merged">,
  created: Action,
  changed: Action,
): readonly PathAction<Action>[] =>
  ops
    .filter(({ from, to }) => from !== to)
    .map(({ path, from, to }) => {
      if (merged.includes(path)) return { path, action: "merged" };
      return { path, action: to === null ? "removed" : from === null ? created : changed };
    });

export const undonePaths = (
  undone: Pick<ShownUndo, "ops" | "merged">,
): readonly PathAction<"restored" | "reverted">[] => actionsOf(undone, "restored", "reverted");

const name = (path: string): string => (path === "" ? "." : visibleLine(path.toWellFormed()));

/** What was (or would be) undone, what was not and why, and what to type next. */
export function undoText(undone: ShownUndo, stream: Output): string {
  const { session, target, redo, dryRun, done, refused, left } = undone;
  const bold = (text: string): string => styleText("bold", text, { stream });
  const shown = undonePaths(undone);
  const lines = [
    ...shown.map(({ path, action }) => `${action.padEnd(8)} ${name(path)}`),
    ...left.map(
      (path) =>
        `left     ${name(path)}: it holds things that are not from the run, or whose paths are too long`,
    ),
    ...refused.map(
      ({ path, reason }) =>
        `${styleText("red", "refused", { stream })}  ${name(path)}: ${appliedName(reason)}`,
    ),
  ];
  const same = redo ? " --redo" : target > 0 ? ` --to ${target}` : "";
  const count = plural(shown.length, "path");
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
      kind === "call"
        ? visibleLine(call ?? "")
        : kind === "undo"
          ? target === null
            ? "undo in part"
            : `undo to ${target}`
          : kind;
    const open =
      kind !== "lost" && after === null ? " (did not end)" : before === after ? " (changed nothing)" : "";
    const time = new Date(at).toTimeString().slice(0, 8);
    return `${String(step).padEnd(4)}  ${time}  ${String(turn ?? "-").padEnd(4)}  ${what}${open}`;
  });
  return [head, ...rows].join("\n");
}

export interface ShownApply {
  readonly session: string;
  readonly ops: readonly ShownOp[];
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

export const appliedPaths = (
  applied: Pick<ShownApply, "ops" | "merged">,
): readonly PathAction<"added" | "changed">[] => actionsOf(applied, "added", "changed");

const appliedName = (path: string): string => visibleLine(path.toWellFormed());

/** What was (or would be) moved into the workspace, what was not and why, and what to type next. */
export function appliedText(applied: ShownApply, stream: Output): string {
  const { refused, left, handoff, blocked } = applied;
  const red = (text: string): string => styleText("red", text, { stream });
  const shown = appliedPaths(applied);
  const lines = [
    ...shown.map(({ path, action }) => `${action.padEnd(8)} ${appliedName(path)}`),
    ...left.map((path) => `left     ${appliedName(path)}: it holds things that the session did not change`),
    ...refused.map(({ path, reason }) => `${red("refused")}  ${appliedName(path)}: ${appliedName(reason)}`),
    ...handoff.map(({ path, tier, reason }) => {
      const waits = blocked.includes(path);
      const mark = waits ? red("blocked") : tier === "dangerous" ? red("danger ") : "look at";
      return `${mark}  ${appliedName(path)}: ${reason}`;
    }),
  ];
  return [...lines, ...applyEnd(applied, shown.length, stream)].join("\n");
}

/** The outcome for `count` paths, and what to type next. */
function applyEnd(
  { session, done, whole, blocked, refused }: ShownApply,
  count: number,
  stream: Output,
): readonly string[] {
  const bold = (text: string): string => styleText("bold", text, { stream });
  const paths = plural(count, "path");
  if (blocked.length > 0)
    return [
      bold("nothing was applied: the host would run or obey the blocked paths by itself"),
      `next: harness diff ${session}, then harness apply ${session} --accept PATH for each (or --accept dangerous)`,
    ];
  if (!done && count > 0) return [bold(`${paths} would be applied`)];
  if (whole)
    return [bold(count === 0 ? "everything is applied already" : `${paths} applied; nothing is left`)];
  const rest =
    refused.length > 0
      ? `harness diff ${session}   (what was refused is still in the layer)`
      : `harness apply ${session}`;
  return [bold(`${paths} applied`), `next: ${rest}`];
}
