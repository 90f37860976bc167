import * as z from "zod";
import { textOfBytes } from "../core/text/bytes.ts";
import type { Box, ExecResult } from "../core/ports.ts";
import { type AnyTool, anyTool, type Facts, NO_FACTS, type ToolResult } from "../core/tool.ts";
import { type FileState, planned, type Step } from "./edits/apply-patch-plan.ts";
import { readPatch } from "./edits/patch-reader.ts";
import { boundedDiff, compactDiff } from "./edits/text-edit.ts";
import { type FilePatch, PatchMistake } from "./edits/unified-patch.ts";
import { forgiving } from "./forgiving-input.ts";
import { knownContent, unreadPaths, markWritten } from "./seen-content.ts";
import { absolute, type ToolContext, shown } from "./tool-context.ts";
import { failed, type FileRefusal, ok, refusal } from "./tool-results.ts";

const input = forgiving(z.strictObject({ patch: z.string() }));

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
    const told = refusal(context, made.refused);
    const stuck = made.stuck.map((path) => shown(context.workspace, path)).join(", ");
    const rest = stuck === "" ? NOTHING : `These files could not be put back: ${stuck}.`;
    return { ...told, text: `${told.text}\n${rest}` };
  }
  for (const { path, after } of plan.steps)
    if (after === undefined) context.seen.forget(path);
    else await markWritten(context, box, path, after.content);
  return ok(stepsReport(plan.steps, (path) => shown(context.workspace, path)));
}

type Plan =
  | { readonly kind: "plan"; readonly steps: readonly Step[] }
  | { readonly kind: "refused"; readonly result: ToolResult };

async function planOf(context: ToolContext, box: Box, files: readonly FilePatch[]): Promise<Plan> {
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
    const nameOf = (path: string): string => shown(context.workspace, path);
    return { kind: "plan", steps: await planned(files, { pathOf, nameOf, load }) };
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
  const said = Buffer.from(stderr.head).toString("utf8").trim();
  const why = said === "" ? reason : said;
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
  const moved = new Map(
    steps.flatMap(({ from }) => (from === undefined ? [] : [[from, stateBefore(steps, from)]])),
  );
  const told = steps
    .filter(({ path, after }) => after !== undefined || !moved.has(path))
    .map((step) => stepReport(step, nameOf, step.from === undefined ? step.before : moved.get(step.from)));
  const [only] = told;
  if (told.length === 1 && only !== undefined) return boundedDiff([only.head, ...only.lines]);
  const diffs = told.flatMap(({ head, lines }) => (lines.length === 0 ? [] : [head, ...lines]));
  const heads = told.map(({ head }) => head).join("\n");
  return diffs.length === 0 ? heads : `${heads}\n\n${boundedDiff(diffs)}`;
}

const stateBefore = (steps: readonly Step[], path: string): FileState | undefined =>
  steps.find((step) => step.path === path)?.before;

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
