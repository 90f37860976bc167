import { textOfBytes } from "../../core/byte-text.ts";
import { boundedDiff, compactDiff } from "../text/compact-diff.ts";
import type { FileState, Step } from "./plan.ts";

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
