import type { Box, ExecResult } from "../../core/ports.ts";
import type { FileRefusal } from "../endings.ts";
import type { FileState, Step } from "./plan.ts";

export type Committed =
  | { readonly kind: "made" }
  /** Nothing of the patch is left, but for what `stuck` names. */
  | { readonly kind: "refused"; readonly refused: FileRefusal; readonly stuck: readonly string[] };

const STEP_MS = 20_000;
/** Once the first file is written the rest follows, whoever cancels: half a patch is worse than all of it. */
const NEVER = new AbortController().signal;

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
  if (to === undefined) return from === undefined ? undefined : runs(box, path, ["rm", "-f", "--", path]);
  if (from !== undefined && Buffer.from(from.content).equals(to.content) && from.mode === to.mode)
    return undefined;
  const written = await box.write(path, to.content);
  if (written.kind !== "ok") return written;
  const mode = to.mode.toString(8).padStart(3, "0");
  return (from?.mode ?? 0o644) === to.mode ? undefined : runs(box, path, ["chmod", mode, "--", path]);
}

async function runs(box: Box, path: string, words: readonly string[]): Promise<FileRefusal | undefined> {
  const result = await box.exec({ words, timeoutMs: STEP_MS, keep: { head: 2000, tail: 0 } }, NEVER);
  return result.exit_code === 0 ? undefined : refusalOf(result, path);
}

function refusalOf({ blocked, stderr, reason }: ExecResult, path: string): FileRefusal {
  const said = Buffer.from(stderr.head).toString("utf8").trim().split("\n").at(-1) ?? "";
  const wall =
    blocked.length > 0 || said.endsWith("Read-only file system") || said.endsWith("Device or resource busy");
  const why = said === "" ? reason : said;
  return {
    kind: wall ? "blocked" : "failed",
    cause: "filesystem",
    code: wall ? "EROFS" : why,
    path,
    reason: why,
  };
}
