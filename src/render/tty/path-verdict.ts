import type { Decision } from "../../core/decision.ts";
import { verdictLine } from "./explained.ts";
import { visibleLine } from "../../core/visible.ts";
import { type Output } from "./output.ts";

/** The verdict with its first reason, then the other reasons, then the path that was judged. */
export function pathVerdict(decision: Decision & { readonly path: string }, stream: Output): string {
  const [, ...others] = decision.rules.map(({ id, reason }) => `    ${visibleLine(reason)}  (${id})`);
  return [verdictLine(decision, stream), ...others, `    path  ${visibleLine(decision.path)}`].join("\n");
}
