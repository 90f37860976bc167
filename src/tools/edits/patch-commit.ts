import { textOfBytes } from "../../core/bytes.ts";
import type { Box, ExecResult } from "../../core/ports.ts";
import type { FileRefusal } from "../line-endings.ts";
import type { FileState, Step } from "./apply-patch-plan.ts";
import { boundedDiff, compactDiff } from "./text-edit.ts";

type Committed =
  | { readonly kind: "made" }
  /** Nothing of the patch is left, but for what `stuck` names. */
  | { readonly kind: "refused"; readonly refused: FileRefusal; readonly stuck: readonly string[] };

/** Writes every file, or puts back those that were written before one was refused. */
export async function commit(box: Box, steps: readonly Step[]): Promise<Committed> {
  const done: Step[] = [];
  // What is made comes first: a file that is moved is never nowhere.
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

/** Brings one path from a state to another. */
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
/** Once a first file is written the rest follows, whoever cancels: half a change is worse than all of it. */
const NEVER = new AbortController().signal;

/** A small program that changes a path: why it did not, or undefined when it did. */
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

interface Told {
  readonly head: string;
  /** None for a file that is new or gone. */
  readonly lines: readonly string[];
}

/** What became of each file, then what changed in those that were there before. */
export function stepsTold(steps: readonly Step[], nameOf: (path: string) => string): string {
  const moved = new Map(
    steps.flatMap(({ from }) => (from === undefined ? [] : [[from, stateBefore(steps, from)]])),
  );
  const told = steps
    .filter(({ path, after }) => after !== undefined || !moved.has(path))
    .map((step) => stepTold(step, nameOf, step.from === undefined ? step.before : moved.get(step.from)));
  const [only] = told;
  if (told.length === 1 && only !== undefined) return boundedDiff([only.head, ...only.lines]);
  const diffs = told.flatMap(({ head, lines }) => (lines.length === 0 ? [] : [head, ...lines]));
  const heads = told.map(({ head }) => head).join("\n");
  return diffs.length === 0 ? heads : `${heads}\n\n${boundedDiff(diffs)}`;
}

const stateBefore = (steps: readonly Step[], path: string): FileState | undefined =>
  steps.find((step) => step.path === path)?.before;

function stepTold(
  { path, from, after }: Step,
  nameOf: (path: string) => string,
  before: FileState | undefined,
): Told {
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
