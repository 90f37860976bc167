import { styleText } from "node:util";
import type { Decision } from "../../core/decision.ts";
import { visible } from "./visible.ts";

const COLOURS = { allow: "green", ask: "yellow", deny: "red" } as const;

/** One line for the verdict, one for each reason. */
export function verdictText(judged: string, decision: Decision, stream: NodeJS.WriteStream): string {
  const word = styleText(COLOURS[decision.decision], decision.decision, { stream });
  const reasons = decision.rules.map(({ id, reason }) => `  ${id}: ${oneLine(reason)}\n`);
  return `${word}: ${oneLine(judged)}\n${reasons.join("")}`;
}

const oneLine = (text: string): string => visible(text).replaceAll(/[\n\t]/g, " ");
