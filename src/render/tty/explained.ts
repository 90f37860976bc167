import type { Decision, MatchedRule, Verdict } from "../../core/decision.ts";
import { markedLines } from "./marked.ts";
import { visibleLine } from "../../core/visible.ts";
import { type Output, styleText } from "./output.ts";

const COLOURS = { allow: "green", ask: "yellow", deny: "red" } as const satisfies Record<Verdict, string>;
const INDENT = "    ";
/** Where the stream does not tell how wide it is. */
const WIDTH = 120;
const MOST_EFFECTS = 200;
/** Of the text, below one rule. */
const MOST_LINES = 6;

export interface Explained {
  readonly text: string;
  readonly decision: Decision;
  /** Of each rule of the decision. */
  readonly verdicts: readonly Verdict[];
  /** One line each, as words. */
  readonly effects: readonly string[];
  readonly hintFor: (rule: string) => string | undefined;
  /** Whether it runs where nobody can be asked. */
  readonly unattended: boolean;
  /** What allows it from now on, where something does. */
  readonly remedy?: string;
}

/** The verdict and its first reason. */
export function verdictLine({ decision, rules }: Decision, stream: Output): string {
  const [rule] = rules;
  const word = styleText(["bold", COLOURS[decision]], decision, { stream });
  return rule === undefined ? word : `${word}  ${visibleLine(rule.reason)}  (${rule.id})`;
}

/** Each rule that asks or denies below the part of the text that it is about, then those that allow, then what the text does. */
export function explanation(explained: Explained, stream: Output): string {
  const { decision, verdicts, effects, remedy } = explained;
  const telling = { explained, hints: new Set<string>(), stream };
  const told = partsOf(explained).flatMap((part) => partLines(part, telling));
  const beside = decision.rules.filter((_, at) => isBeside(verdicts[at], decision));
  return [
    verdictLine(decision, stream),
    "",
    ...told,
    ...(beside.length === 0 ? [] : ["allowed", ...beside.map((rule) => ruleLine(rule, stream)), ""]),
    "effects",
    ...effectLines(effects),
    "",
    `contained   ${decision.contained ? CONTAINED : NOT_CONTAINED}`,
    `unattended  ${explained.unattended ? "it runs" : "it is refused"}`,
    ...(remedy === undefined ? [] : [`to allow    ${remedy}`]),
  ].join("\n");
}

function effectLines(effects: readonly string[]): readonly string[] {
  const told = effects.length === 0 ? ["none"] : effects.slice(0, MOST_EFFECTS).map(visibleLine);
  const more = effects.length - MOST_EFFECTS;
  return [...told, ...(more > 0 ? [`… and ${more} more: --json has all`] : [])].map((line) => INDENT + line);
}

const CONTAINED = "yes: no network, and it changes only the workspace and temporary files";
const NOT_CONTAINED = "no: it may reach the network, or change what lies elsewhere";

const ruleLine = ({ id, reason }: MatchedRule, stream: Output, beside = ""): string =>
  `${INDENT}${styleText("bold", id, { stream })}${beside}  ${visibleLine(reason)}`;

/** Rules about the same part of the text. */
interface Part {
  readonly span: MatchedRule["span"];
  readonly verdict: Verdict;
  readonly rules: MatchedRule[];
}

function partsOf({ decision, verdicts }: Explained): readonly Part[] {
  const parts: Part[] = [];
  for (const [at, rule] of decision.rules.entries()) {
    const verdict = verdicts[at] ?? decision.decision;
    if (isBeside(verdict, decision)) continue;
    const last = parts.at(-1);
    const [from, to] = last?.span ?? [];
    if (last?.verdict === verdict && from === rule.span[0] && to === rule.span[1]) last.rules.push(rule);
    else parts.push({ span: rule.span, verdict, rules: [rule] });
  }
  return parts;
}

/** Allowed, where that is not what the whole is. */
const isBeside = (verdict: Verdict | undefined, { decision }: Decision): boolean =>
  verdict === "allow" && decision !== "allow";

interface Telling {
  readonly explained: Explained;
  /** Those that are told already: each is told once. */
  readonly hints: Set<string>;
  readonly stream: Output;
}

function partLines({ span, verdict, rules }: Part, telling: Telling): readonly string[] {
  const { explained, stream } = telling;
  const beside = verdict === explained.decision.decision ? "" : ` (${verdict})`;
  return [
    ...marked(explained.text, { span, verdict }, stream),
    ...rules.flatMap((rule) => [
      ruleLine(rule, stream, beside),
      ...(verdict === "allow" ? [] : hintLines(rule, telling)),
    ]),
    "",
  ];
}

function hintLines({ id }: MatchedRule, { explained, hints }: Telling): readonly string[] {
  const hint = explained.hintFor(id);
  if (hint === undefined || hints.has(hint)) return [];
  hints.add(hint);
  return [`${INDENT}to pass: ${hint}`];
}

function marked(
  text: string,
  { span, verdict }: Pick<Part, "span" | "verdict">,
  stream: Output,
): readonly string[] {
  const width = Math.max(40, stream.columns || WIDTH) - INDENT.length;
  const lines = markedLines(text, span, width);
  const more = lines.length - MOST_LINES;
  return [
    ...lines.slice(0, MOST_LINES).flatMap(({ line, blanks, marks }) => {
      const shown = marks.slice(0, Math.max(1, width - blanks.length));
      return [`${INDENT}${line}`, `${INDENT}${blanks}${styleText(COLOURS[verdict], shown, { stream })}`];
    }),
    ...(more > 0 ? [`${INDENT}… and ${more} more ${more === 1 ? "line" : "lines"}`] : []),
  ];
}
