import type { Box } from "../../core/ports.ts";
import type { FileRefusal } from "../endings.ts";
import type { FileState, Step } from "./plan.ts";
import { runOn } from "./run-on.ts";

export type Committed =
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
