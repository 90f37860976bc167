import { styleText } from "node:util";
import type { Decision, MatchedRule, Verdict } from "../../core/decision.ts";
import { visible } from "./visible.ts";

const COLOURS = { allow: "green", ask: "yellow", deny: "red" } as const satisfies Record<Verdict, string>;
const INDENT = "    ";

export interface Explained {
  readonly text: string;
  readonly decision: Decision;
  /** One line each, as words. */
  readonly effects: readonly string[];
  readonly hintFor: (rule: string) => string | undefined;
}

/** The verdict and its first reason. */
export function verdictLine({ decision, rules }: Decision, stream: NodeJS.WriteStream): string {
  const [rule] = rules;
  const word = styleText(["bold", COLOURS[decision]], decision, { stream });
  return rule === undefined ? word : `${word}  ${visible(rule.reason)}  (${rule.id})`;
}

/** Each rule under the part of the text that it is about, then what the text does. */
export function explanation(
  { text, decision, effects, hintFor }: Explained,
  stream: NodeJS.WriteStream,
): string {
  const { rules, contained } = decision;
  const parts = rules.map((rule) => [
    ...underlined(text, rule, stream),
    `${INDENT}${styleText("bold", rule.id, { stream })}  ${visible(rule.reason)}`,
    ...toPass(decision.decision, hintFor(rule.id)),
    "",
  ]);
  const does = effects.map((effect) => `${INDENT}${visible(effect)}`);
  return [
    verdictLine(decision, stream),
    "",
    ...parts.flat(),
    "effects",
    ...(does.length === 0 ? [`${INDENT}none`] : does),
    `contained  ${contained ? "yes: it stays inside the workspace, without network" : "no"}`,
  ].join("\n");
}

const toPass = (verdict: Verdict, hint: string | undefined): readonly string[] =>
  verdict === "allow" || hint === undefined ? [] : [`${INDENT}to pass: ${hint}`];

/** The lines that a span touches, with marks below. */
function underlined(
  text: string,
  { span: [from, to] }: MatchedRule,
  stream: NodeJS.WriteStream,
): readonly string[] {
  const lines: string[] = [];
  let start = 0;
  for (const line of text.split("\n")) {
    const [left, right] = [Math.max(from, start) - start, Math.min(to, start + line.length) - start];
    if (right > left) {
      const before = visible(line.slice(0, left));
      const marks = "^".repeat(Math.max(1, visible(line.slice(left, right)).length));
      lines.push(
        `${INDENT}${visible(line)}`,
        `${INDENT}${" ".repeat(before.length)}${styleText("red", marks, { stream })}`,
      );
    }
    start += line.length + 1;
  }
  return lines.slice(0, MOST_LINES);
}

/** Two for each line of the text. */
const MOST_LINES = 12;
