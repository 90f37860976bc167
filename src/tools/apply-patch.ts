/** The tool apply_patch: finds where each hunk fits, and changes all files of a patch or none. */

import * as z from "zod";
import type { Box, ExecResult } from "../core/ports.ts";
import { bytesOfText, textOfBytes } from "../core/raw-data.ts";
import { type AnyTool, anyTool, type Facts, failed, NO_FACTS, ok, type ToolResult } from "../core/tool.ts";
import { type FilePatch, type Hunk, PatchMistake, readPatch } from "./patch-reader.ts";
import { BOM, knownContent, markWritten, unreadPaths } from "./read-file.ts";
import { boundedDiff, compactDiff, nearestPlace, placeShown } from "./text-edit.ts";
import {
  absolute,
  type FileRefusal,
  lenientInput,
  refusal,
  displayPath,
  type ToolContext,
} from "./tool-context.ts";

const input = lenientInput(z.strictObject({ patch: z.string() }));

export const applyPatchTool = (context: ToolContext): AnyTool =>
  anyTool({
    name: "apply_patch",
    description:
      "Change several files you have read, all or none: a unified diff, or *** Begin Patch / *** Add|Update|Delete File: path / *** Move to: path / @@ / *** End Patch.",
    input,
    concurrent: false,
    shown: ({ patch }) => patch,
    where: "stated",
    state: ({ patch }) => {
      const read = readPatch(patch);
      return { facts: factsOf(context, read), run: (box, signal) => apply(context, box, read, signal) };
    },
  });

type PatchReading = ReturnType<typeof readPatch>;

/** A patch that cannot be read changes nothing. */
function factsOf(context: ToolContext, read: PatchReading): Facts {
  if (read.kind === "mistake") return NO_FACTS;
  const pathOf = (path: string): string => absolute(context.workspace, path);
  const paths = read.files.flatMap(({ path, to }) => (to === undefined ? [path] : [path, to]));
  const there = read.files.filter(({ what }) => what !== "add").map(({ path }) => pathOf(path));
  const reads = unreadPaths(context, [...new Set(there)]);
  return { ...NO_FACTS, reads, writes: [...new Set(paths.map(pathOf))] };
}

const NOTHING = "Nothing was changed.";

async function apply(
  context: ToolContext,
  box: Box,
  read: PatchReading,
  signal: AbortSignal,
): Promise<ToolResult> {
  if (read.kind === "mistake") return failed(`${read.why}. ${NOTHING}`);
  const plan = await planOf(context, box, read.files);
  if (plan.kind === "refused") return plan.result;
  if (signal.aborted) return { kind: "cancelled", cause: "user", text: NOTHING };
  const made = await commit(box, plan.steps);
  if (made.kind === "refused") {
    const result = refusal(context, made.refused);
    const stuck = made.stuck.map((path) => displayPath(context.workspace, path)).join(", ");
    const rest = stuck === "" ? NOTHING : `These files could not be put back: ${stuck}.`;
    return { ...result, text: `${result.text}\n${rest}` };
  }
  for (const { path, after } of plan.steps)
    if (after === undefined) context.seen.forget(path);
    else await markWritten(context, box, path, after.content);
  return ok(stepsReport(plan.steps, (path) => displayPath(context.workspace, path)));
}

type PlanResult =
  | { readonly kind: "plan"; readonly steps: readonly Step[] }
  | { readonly kind: "refused"; readonly result: ToolResult };

async function planOf(context: ToolContext, box: Box, files: readonly FilePatch[]): Promise<PlanResult> {
  let refused: ToolResult | undefined;
  const load = async (path: string): Promise<FileState | undefined> => {
    const known = await knownContent(context, box, path, "shows");
    if (known.kind === "absent") return undefined;
    if (known.kind === "known") return { content: known.content, mode: await modeOf(box, path) };
    refused = known.result;
    throw new PatchMistake("refused");
  };
  try {
    const pathOf = (path: string): string => absolute(context.workspace, path);
    const nameOf = (path: string): string => displayPath(context.workspace, path);
    return { kind: "plan", steps: await planSteps(files, { pathOf, nameOf, load }) };
  } catch (thrown) {
    if (!(thrown instanceof PatchMistake)) throw thrown;
    return { kind: "refused", result: refused ?? failed(`${thrown.message}\n${NOTHING}`) };
  }
}

async function modeOf(box: Box, path: string): Promise<number> {
  const found = await box.stat(path);
  return found.kind === "ok" && found.value.kind === "file" ? found.value.mode : 0o644;
}

type CommitResult =
  | { readonly kind: "made" }
  /** The patch left no change behind, except at the paths in `stuck`. */
  | { readonly kind: "refused"; readonly refused: FileRefusal; readonly stuck: readonly string[] };

/** Writes every file, or restores those already written when one is refused. */
async function commit(box: Box, steps: readonly Step[]): Promise<CommitResult> {
  const done: Step[] = [];
  // New files are written first, so that a moved file always exists somewhere.
  for (const step of steps.toSorted((one, other) => Number(!one.after) - Number(!other.after))) {
    const refused = await put(box, step.path, step.before, step.after);
    if (refused === undefined) {
      done.push(step);
      continue;
    }
    const stuck: string[] = [];
    for (const { path, before, after } of [step, ...done.toReversed()]) {
      const left = await put(box, path, after, before);
      if (left !== undefined && path !== step.path) stuck.push(path);
    }
    return { kind: "refused", refused, stuck };
  }
  return { kind: "made" };
}

/** Changes one path from one state to another. */
async function put(
  box: Box,
  path: string,
  from: FileState | undefined,
  to: FileState | undefined,
): Promise<FileRefusal | undefined> {
  if (to === undefined) return from === undefined ? undefined : runOn(box, ["rm", "-f", "--", path], path);
  if (from !== undefined && Buffer.from(from.content).equals(to.content) && from.mode === to.mode)
    return undefined;
  const written = await box.write(path, to.content);
  if (written.kind !== "ok") return written;
  const mode = to.mode.toString(8).padStart(3, "0");
  return (from?.mode ?? 0o644) === to.mode ? undefined : runOn(box, ["chmod", mode, "--", path], path);
}

const STEP_MS = 20_000;
/** Once the first file is written, cancelling no longer stops the rest: half a patch is worse than all of it. */
const NEVER = new AbortController().signal;

/** Runs a small program that changes a path. Returns why it failed; undefined on success. */
async function runOn(box: Box, words: readonly string[], path: string): Promise<FileRefusal | undefined> {
  const keep = { head: 2000, tail: 0 };
  const result = await box.exec({ words, env: { LC_ALL: "C" }, timeoutMs: STEP_MS, keep }, NEVER);
  return result.exit_code === 0 ? undefined : refusalOf(result, path);
}

const CODES: readonly (readonly [RegExp, string])[] = [
  [/Read-only file system$/, "EROFS"],
  [/Device or resource busy$/, "EBUSY"],
  [/Operation not permitted$/, "EPERM"],
  [/Permission denied$/, "EACCES"],
  [/No space left on device$/, "ENOSPC"],
  [/Not a directory$/, "ENOTDIR"],
];
const WALLS: ReadonlySet<string> = new Set(["EROFS", "EBUSY", "EPERM"]);

function refusalOf({ stderr, reason }: ExecResult, path: string): FileRefusal {
  const message = Buffer.from(stderr.head).toString("utf8").trim();
  const why = message === "" ? reason : message;
  const code = CODES.find(([words]) => words.test(why))?.[1] ?? why;
  return { kind: WALLS.has(code) ? "blocked" : "failed", cause: "filesystem", code, path, reason: why };
}

const NO_DIFF = { added: 0, removed: 0, lines: [] };

interface StepReport {
  readonly head: string;
  /** Empty for a file that is new or removed. */
  readonly lines: readonly string[];
}

/** The outcome for each file, then the changes in files that existed before. */
function stepsReport(steps: readonly Step[], nameOf: (path: string) => string): string {
  const moved = new Set(steps.map(({ from }) => from));
  const before = (step: Step): FileState | undefined =>
    steps.find(({ path }) => path === (step.from ?? step.path))?.before;
  const changes = steps
    .filter(({ path, after }) => after !== undefined || !moved.has(path))
    .map((step) => stepReport(step, nameOf, before(step)));
  const [only] = changes;
  if (changes.length === 1 && only !== undefined) return boundedDiff([only.head, ...only.lines]);
  const diffs = changes.flatMap(({ head, lines }) => (lines.length === 0 ? [] : [head, ...lines]));
  const heads = changes.map(({ head }) => head).join("\n");
  return diffs.length === 0 ? heads : `${heads}\n\n${boundedDiff(diffs)}`;
}

function stepReport(
  { path, from, after }: Step,
  nameOf: (path: string) => string,
  before: FileState | undefined,
): StepReport {
  const name = nameOf(path);
  if (after === undefined) return { head: `${name}: deleted`, lines: [] };
  const same = after.content === before?.content;
  const { added, removed, lines } = same ? NO_DIFF : compactDiff(textIn(before), textIn(after));
  if (before === undefined) return { head: `${name}: made, +${added}`, lines: [] };
  const change = `+${added} -${removed}`;
  return from === undefined
    ? { head: `${name}: ${change}`, lines }
    : { head: `${nameOf(from)} moved to ${name}, ${change}`, lines };
}

const textIn = (state: FileState | undefined): string =>
  state === undefined ? "" : textOfBytes(state.content);

/** A file before or after the patch; undefined when it does not exist. */
interface FileState {
  readonly content: Uint8Array;
  readonly mode: number;
}

/** One path that the patch changes. */
interface Step {
  readonly path: string;
  readonly before: FileState | undefined;
  readonly after: FileState | undefined;
  /** The old path, when the file is moved here. */
  readonly from?: string;
}

interface Sources {
  /** Absolute path. */
  readonly pathOf: (path: string) => string;
  readonly nameOf: (path: string) => string;
  /** The current content of a file, by absolute path. Only files that the patch edits have to be known to the model. */
  readonly load: (path: string) => Promise<FileState | undefined>;
}

const NEW_FILE_MODE = 0o644;

/** The result of the patch for all files. Throws the first mistake; nothing is written. */
async function planSteps(files: readonly FilePatch[], sources: Sources): Promise<readonly Step[]> {
  const plan = new Plan(sources);
  for (const file of files) await planFile(plan, file, sources);
  return plan.steps();
}

/** The files as the sections of the patch so far leave them. */
class Plan {
  readonly #steps = new Map<string, Step>();
  readonly #load: Sources["load"];

  constructor({ load }: Sources) {
    this.#load = load;
  }

  steps = (): readonly Step[] => [...this.#steps.values()];

  async now(path: string): Promise<FileState | undefined> {
    const step = this.#steps.get(path);
    return step === undefined ? this.#load(path) : step.after;
  }

  async set(path: string, after: FileState | undefined, from?: string): Promise<void> {
    const step = this.#steps.get(path) ?? { path, before: await this.#load(path), after };
    this.#steps.set(path, { ...step, after, ...(from === undefined ? {} : { from }) });
  }
}

async function planFile(plan: Plan, file: FilePatch, { pathOf, nameOf }: Sources): Promise<void> {
  const [path, to] = [pathOf(file.path), pathOf(file.to ?? file.path)];
  const name = nameOf(path);
  const state = await plan.now(path);
  if (file.what === "add") {
    if (state !== undefined) throw new PatchMistake(`${name}: it is already there; send an update of it`);
    const content = bytesOfText(applyHunks(name, "", file.hunks));
    return plan.set(path, { content, mode: file.mode ?? NEW_FILE_MODE });
  }
  if (state === undefined) throw new PatchMistake(`${name}: no such file; *** Add File makes a new one`);
  if (file.what === "delete") {
    patched(name, state, file);
    return plan.set(path, undefined);
  }
  const after = { content: patched(name, state, file), mode: file.mode ?? state.mode };
  if (to === path) return plan.set(path, after);
  if ((await plan.now(to)) !== undefined)
    throw new PatchMistake(`${nameOf(to)}: it is already there; ${name} cannot be moved over it`);
  await plan.set(path, undefined);
  return plan.set(to, after, path);
}

function patched(name: string, { content }: FileState, { hunks }: FilePatch): Uint8Array {
  if (hunks.length === 0) return content;
  if (content.includes(0)) throw new PatchMistake(`${name}: a binary file; it cannot be patched as text`);
  return bytesOfText(applyHunks(name, textOfBytes(content), hunks));
}

interface PlacedHunk {
  readonly hunk: Hunk;
  readonly found: HunkPosition;
  /** Position after the hunk's last old line. */
  readonly end: number;
}

/** Applies all hunks to the text; throws the mistake when one of them cannot be placed. */
export function applyHunks(name: string, text: string, hunks: readonly Hunk[]): string {
  const returns =
    text.includes("\r") && hunks.some(({ lines }) => lines.some(({ text }) => text.endsWith("\r")));
  const file = fileLines(text, returns);
  const placed = placesOf(name, file.lines, hunks).toSorted((one, other) => one.found.at - other.found.at);
  const lines: string[] = [];
  let from = 0;
  for (const { hunk, found, end } of placed) {
    if (found.at < from) throw new PatchMistake(`${name}: two of its hunks change the same lines`);
    lines.push(...file.lines.slice(from, found.at), ...madeBy(hunk, found, file.lines));
    from = end;
  }
  lines.push(...file.lines.slice(from));
  return fileText({ ...file, lines, newline: newlineOf(file, placed.at(-1)) });
}

function placesOf(name: string, lines: readonly string[], hunks: readonly Hunk[]): readonly PlacedHunk[] {
  const placed: PlacedHunk[] = [];
  let [after, drift] = [0, 0];
  for (const [index, hunk] of hunks.entries()) {
    const which = hunks.length > 1 ? `${name}: hunk ${index + 1} of ${hunks.length}` : name;
    const found = locate(hunk, { lines, after, drift, name: which });
    const end = found.at + hunk.lines.filter(({ mark }) => mark !== "+").length;
    placed.push({ hunk, found, end });
    after = end;
    drift = hunk.at === undefined ? drift : found.at - hunk.at;
  }
  return placed;
}

/** Unchanged lines keep the file's bytes; a new line takes a carriage return if the line next to it has one. */
function madeBy({ lines }: Hunk, { at, loose }: HunkPosition, old: readonly string[]): readonly string[] {
  let next = at;
  return lines.flatMap(({ mark, text }) => {
    if (mark === "+") {
      const beside = old[next - 1] ?? old[next] ?? "";
      const takesReturn = loose || lines.every((line) => line.mark === "+");
      return [takesReturn && beside.endsWith("\r") && !text.endsWith("\r") ? `${text}\r` : text];
    }
    next += 1;
    return mark === " " ? [old[next - 1] ?? ""] : [];
  });
}

/**
 * The patch decides about the final newline if its last hunk reaches the end of the file; otherwise the newline is
 * kept. A formerly empty file gets one.
 */
function newlineOf({ lines, newline }: FileLines, last: PlacedHunk | undefined): boolean {
  if (lines.length === 0) return last?.hunk.newline?.young ?? true;
  if (last === undefined || last.end < lines.length) return newline;
  return last.hunk.newline?.young ?? newline;
}

/** A text as patches see it, with the byte order mark and the final newline separate from its lines. */
interface FileLines {
  readonly bom: boolean;
  /** Lines without their ends; in a file with mixed line ends, each keeps its own carriage return. */
  readonly lines: readonly string[];
  readonly eol: "\n" | "\r\n";
  readonly newline: boolean;
}

/** `returns`: the patch itself contains carriage returns, which then are part of the lines. */
function fileLines(text: string, returns: boolean): FileLines {
  const bom = text.startsWith(BOM);
  const bare = bom ? text.slice(1) : text;
  const uniform = !returns && bare.includes("\r\n") && !/(?:^|[^\r])\n/.test(bare);
  const eol = uniform ? "\r\n" : "\n";
  const lines = bare.split(eol);
  const newline = lines.at(-1) === "";
  if (newline) lines.pop();
  return { bom, lines, eol, newline };
}

function fileText({ bom, lines, eol, newline }: FileLines): string {
  const end = newline && lines.length > 0 ? eol : "";
  return (bom ? BOM : "") + lines.join(eol) + end;
}

interface HunkPosition {
  /** Counted from 0. */
  readonly at: number;
  /** The lines match except for spaces at their ends. */
  readonly loose: boolean;
}

interface HunkContext {
  readonly lines: readonly string[];
  /** Position after the hunk's lines. */
  readonly after: number;
  /** Distance between the last hunk's stated and actual position. */
  readonly drift: number;
  /** The file, and which of its hunks. */
  readonly name: string;
}

/** The only position where a hunk's old lines are found. Without one, or with several, throws what to send instead. */
function locate(hunk: Hunk, where: HunkContext): HunkPosition {
  const wanted = hunk.lines.flatMap(({ mark, text }) => (mark === "+" ? [] : [text]));
  if (wanted.length === 0) return { at: insertionPoint(hunk, where), loose: false };
  for (const loose of [false, true]) {
    const found = choosePlace(candidates(wanted, where.lines, loose), hunk, where, wanted.length);
    if (found !== undefined) return { at: found, loose };
  }
  throw new PatchMistake(`${where.name}: ${notFoundText(hunk, wanted, where.lines)}`);
}

/** Ignores spaces at the end, and compares bytes that are not UTF-8 in the form in which they are shown. */
function comparable(line: string): string {
  let end = line.length;
  while (end > 0 && " \t\r".includes(line[end - 1] ?? "x")) end -= 1;
  return line.slice(0, end).toWellFormed();
}

function candidates(wanted: readonly string[], lines: readonly string[], loose: boolean): readonly number[] {
  const same = loose
    ? (one = "", other = "") => comparable(one) === comparable(other)
    : (one = "", other = "") => one === other;
  const starts: number[] = [];
  for (let at = 0; at + wanted.length <= lines.length; at += 1)
    if (wanted.every((line, index) => same(line, lines[at + index]))) starts.push(at);
  return starts;
}

function choosePlace(
  all: readonly number[],
  hunk: Hunk,
  { lines, after, drift, name }: HunkContext,
  length: number,
): number | undefined {
  const fitting = anchored(hunk.atEnd ? all.filter((at) => at + length === lines.length) : all, hunk, lines);
  if (hunk.at !== undefined && fitting.includes(hunk.at + drift)) return hunk.at + drift;
  const later = fitting.filter((at) => at >= after);
  const left = later.length > 0 ? later : fitting;
  if (left.length <= 1) return left[0];
  const numbers = left.slice(0, 10).map((at) => at + 1);
  throw new PatchMistake(
    `${name}: its lines are found ${left.length} times, at lines ${numbers.join(", ")}. Give more lines around the change, or a line above it after @@`,
  );
}

/** The first position below each line that the anchors lead to. */
function anchored(starts: readonly number[], { anchors }: Hunk, lines: readonly string[]): readonly number[] {
  if (anchors.length === 0) return starts;
  const below = anchorLines(anchors, lines).map((line) => starts.find((at) => at >= line));
  const found = new Set(below.filter((at) => at !== undefined));
  return found.size > 0 ? [...found] : starts;
}

/** Lines that match the last anchor, below matches of the ones before it. */
function anchorLines(anchors: readonly string[], lines: readonly string[]): readonly number[] {
  let from = [0];
  for (const anchor of anchors.map((one) => one.trim())) {
    const first = from[0] ?? lines.length;
    from = [...lines.keys()].filter((at) => at >= first && lines[at]?.trim() === anchor);
  }
  return from;
}

/** Where a hunk without old lines is inserted. */
function insertionPoint({ at, anchors, atEnd }: Hunk, { lines, drift, name }: HunkContext): number {
  if (at !== undefined) return Math.min(lines.length, Math.max(0, at + drift));
  if (anchors.length === 0 || atEnd) return lines.length;
  const places = anchorLines(anchors, lines);
  const [place] = places;
  if (place !== undefined && places.length === 1) return place + 1;
  throw new PatchMistake(
    `${name}: the line after @@, "${anchors.at(-1)}", is found ${places.length} times; give lines around the change`,
  );
}

function notFoundText(hunk: Hunk, wanted: readonly string[], lines: readonly string[]): string {
  const made = hunk.lines.flatMap(({ mark, text }) => (mark === "-" ? [] : [text]));
  const [done] =
    made.length > 0 && hunk.lines.some(({ mark }) => mark !== " ") ? candidates(made, lines, false) : [];
  if (done !== undefined && made.some((line) => line.trim() !== ""))
    return `its old lines are not in the file, and its new ones already are, at line ${done + 1}: it seems to be done`;
  const place = nearestPlace(wanted, lines);
  if (place === undefined)
    return "its old lines are not in the file, nor anything like them. Read the file again";
  const why = place.spacing ? "differ only in spaces or tabs" : "are nearest";
  return `its old lines are not in the file; lines ${place.first}-${place.last} ${why}. Copy them exactly:\n${placeShown(place, lines)}`;
}
