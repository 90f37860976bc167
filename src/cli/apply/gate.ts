import { EXIT, HarnessError } from "../../core/errors.ts";
import type { Handoff } from "../../core/handoff.ts";
import { visibleLine } from "../../core/visible.ts";
import { confirm } from "../confirm.ts";
import { stderr } from "../../render/tty/output.ts";

export interface Decided {
  /** Nobody has said yes or no to these. */
  readonly blocked: readonly string[];
  /** Somebody has said no: these stay in the layer. */
  readonly declined: readonly string[];
}

const WHOLE_TIER = "dangerous";

/** Each dangerous path wants a yes: by its name, by the name of the tier, or on a terminal. */
export async function decide(handoff: readonly Handoff[], accept: readonly string[]): Promise<Decided> {
  const dangerous = handoff.filter(({ tier }) => tier === "dangerous");
  for (const path of accept)
    if (path !== WHOLE_TIER && !handoff.some((each) => each.path === path)) throw unknown(path);
  const open = dangerous.filter(({ path }) => !accept.includes(path) && !accept.includes(WHOLE_TIER));
  if (!process.stdin.isTTY || !stderr.isTTY) return { blocked: open.map(({ path }) => path), declined: [] };
  const declined: string[] = [];
  for (const { path, reason } of open)
    if (!(await confirm(`${visibleLine(path.toWellFormed())}: ${reason}\nApply it?`, false)))
      declined.push(path);
  return { blocked: [], declined };
}

const unknown = (path: string): HarnessError =>
  new HarnessError(
    EXIT.usage,
    `--accept ${JSON.stringify(path)}: nothing of that name waits to be accepted`,
    "harness apply --dry-run   (lists what does)",
  );

/** What is said of a folder counts for all that is in it. */
export const isOf = (path: string, told: readonly string[]): boolean =>
  told.some((each) => path === each || path.startsWith(`${each}/`));
