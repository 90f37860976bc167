import {
  type Decision,
  type MatchedRule,
  type Mode,
  type OnAsk,
  runsUnattended,
  type Verdict,
} from "../core/decision.ts";
import { visible, visibleLine } from "../core/visible.ts";
import { plural } from "../core/wording.ts";
import { type Cell, cellsOf, fitToWidth, hangingIndent, widthOf } from "./tty/columns.ts";
import { type Output, styleText } from "./tty/output.ts";

const COLOURS = { allow: "green", ask: "yellow", deny: "red" } as const satisfies Record<Verdict, string>;
const INDENT = "    ";
/** Used if the stream does not report its width. */
const WIDTH = 120;
const MAX_EFFECTS = 200;
/** Most lines of the text shown for one rule. */
const MAX_LINES = 6;

interface Explained {
  readonly text: string;
  readonly decision: Decision;
  /** One for each rule of the decision. */
  readonly verdicts: readonly Verdict[];
  /** One line per effect, in words. */
  readonly effects: readonly string[];
  readonly hintFor: (rule: string) => string | undefined;
  readonly mode: Mode;
  /** What happens to an ask if no person is present. */
  readonly onAsk: OnAsk;
  /** The command changes files or their permissions. */
  readonly writes: boolean;
  /** The command that allows this one permanently, if there is one. */
  readonly remedy?: string;
}

/** The verdict and its first reason. */
export function verdictLine({ decision, rules }: Decision, stream: Output): string {
  const [rule] = rules;
  const word = styleText(["bold", COLOURS[decision]], decision, { stream });
  return rule === undefined ? word : `${word}  ${visibleLine(rule.reason)}  (${rule.id})`;
}

/** Rules that ask or deny, each below the part of the text they are about; then rules that allow; then the effects. */
export function explanation(explained: Explained, stream: Output): string {
  const { decision, verdicts, effects, remedy } = explained;
  const telling = { explained, hints: new Set<string>(), stream };
  const ruleLines = partsOf(explained).flatMap((part) => partLines(part, telling));
  const allowed = decision.rules.filter((_, at) => isAllowedPart(verdicts[at], decision));
  return [
    verdictLine(decision, stream),
    "",
    ...ruleLines,
    ...(allowed.length === 0 ? [] : ["allowed", ...allowed.map((rule) => ruleLine(rule, stream)), ""]),
    "effects",
    ...effectLines(effects),
    "",
    `contained   ${hangingIndent(decision.contained ? CONTAINED : NOT_CONTAINED, 12, stream)}`,
    `unattended  ${unattendedWords(explained)}`,
    ...(remedy === undefined ? [] : [`to allow    ${remedy}`]),
  ].join("\n");
}

/** The verdict with its first reason, then the other reasons, then the judged path. */
export function pathVerdict(decision: Decision & { readonly path: string }, stream: Output): string {
  const [, ...others] = decision.rules.map(({ id, reason }) => `    ${visibleLine(reason)}  (${id})`);
  return [verdictLine(decision, stream), ...others, `    path  ${visibleLine(decision.path)}`].join("\n");
}

/** How a run without a person present settles the decision. */
function unattendedWords({ decision, mode, onAsk, writes }: Explained): string {
  if (runsUnattended(decision, mode, onAsk)) return "it runs";
  if (decision.decision === "deny") return "it is refused";
  const readOnly = mode === "read-only";
  if (onAsk === "park" && !decision.contained && !(readOnly && writes))
    return "it waits for you: on_ask is park";
  if (readOnly) return "it is refused: the mode is read-only, where nothing that needs approval runs";
  return onAsk === "refuse" ? "it is refused: on_ask is refuse" : "it is refused";
}

function effectLines(effects: readonly string[]): readonly string[] {
  const lines = effects.length === 0 ? ["none"] : effects.slice(0, MAX_EFFECTS).map(visibleLine);
  const more = effects.length - MAX_EFFECTS;
  return [...lines, ...(more > 0 ? [`… and ${more} more: --json has all`] : [])].map((line) => INDENT + line);
}

const CONTAINED =
  "yes: no network that was not granted, and it changes only the workspace and temporary files";
const NOT_CONTAINED =
  "no: it may read a secret, reach the network, or change something outside the workspace";

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
    if (isAllowedPart(verdict, decision)) continue;
    const last = parts.at(-1);
    const [from, to] = last?.span ?? [];
    if (last?.verdict === verdict && from === rule.span[0] && to === rule.span[1]) last.rules.push(rule);
    else parts.push({ span: rule.span, verdict, rules: [rule] });
  }
  return parts;
}

/** Rules that allow a part, if the whole is not allowed. */
const isAllowedPart = (verdict: Verdict | undefined, { decision }: Decision): boolean =>
  verdict === "allow" && decision !== "allow";

interface RuleContext {
  readonly explained: Explained;
  /** Hints already shown; each is shown once. */
  readonly hints: Set<string>;
  readonly stream: Output;
}

function partLines({ span, verdict, rules }: Part, telling: RuleContext): readonly string[] {
  const { explained, stream } = telling;
  const beside = verdict === explained.decision.decision ? "" : ` (${verdict})`;
  return [
    ...markPart(explained.text, { span, verdict }, stream),
    ...rules.flatMap((rule) => [
      ruleLine(rule, stream, beside),
      ...(verdict === "allow" ? [] : hintLines(rule, telling)),
    ]),
    "",
  ];
}

function hintLines({ id }: MatchedRule, { explained, hints }: RuleContext): readonly string[] {
  const hint = explained.hintFor(id);
  if (hint === undefined || hints.has(hint)) return [];
  hints.add(hint);
  return [`${INDENT}to pass: ${hint}`];
}

function markPart(
  text: string,
  { span, verdict }: Pick<Part, "span" | "verdict">,
  stream: Output,
): readonly string[] {
  const width = Math.max(40, stream.columns || WIDTH) - INDENT.length;
  if (stream.plain) return [`${INDENT}at: ${fitToWidth(text.slice(...span) || "its end", width - 4)}`];
  const lines = markedLines(text, span, width);
  const more = lines.length - MAX_LINES;
  return [
    ...lines.slice(0, MAX_LINES).flatMap(({ line, blanks, marks }) => {
      const shown = marks.slice(0, Math.max(1, width - blanks.length));
      return [`${INDENT}${line}`, `${INDENT}${blanks}${styleText(COLOURS[verdict], shown, { stream })}`];
    }),
    ...(more > 0 ? [`${INDENT}… and ${plural(more, "more line")}`] : []),
  ];
}

type Span = readonly [from: number, to: number];

interface MarkedLine {
  readonly line: string;
  /** The line below the text: blanks, then one mark per column of the span. */
  readonly blanks: string;
  readonly marks: string;
}

/**
 * The lines of a text that a span touches, each cut around it if wider than `width`. An empty span marks its position.
 */
export function markedLines(text: string, [from, to]: Span, width: number): readonly MarkedLine[] {
  const lines: MarkedLine[] = [];
  let start = 0;
  for (const line of text.split("\n")) {
    const end = start + line.length;
    const touched = from === to ? from >= start && from <= end : from < end && to > start;
    if (touched && text !== "") {
      lines.push(markedLine(line, [Math.max(from, start) - start, Math.min(to, end) - start], width));
    }
    start = end + 1;
  }
  return lines;
}

/** Columns shown before a span in a cut line. */
const COLUMNS_BEFORE = 20;
const CUT = "…";

/** Most characters examined on either side of the start of a span. */
const MAX_EXAMINED = 1000;

function markedLine(text: string, span: Span, width: number): MarkedLine {
  const first = Math.max(0, span[0] - MAX_EXAMINED);
  const last = Math.min(text.length, span[0] + MAX_EXAMINED);
  const cells = cellsOf(text.slice(first, last));
  const [from, to] = [span[0] - first, Math.min(span[1], last) - first];
  const whole = last - first === text.length && widthOf(cells) <= width;
  const near = first === 0 && widthOf(cells.slice(0, to)) < width;
  const start = whole || near ? 0 : startOf(cells, from, width);
  const left = start + first === 0 ? "" : CUT;
  const end = whole ? cells.length : cellAfter(cells, start, width - left.length - CUT.length);
  const right = first + end === text.length ? "" : CUT;
  const marked = widthOf(cells.slice(from, Math.min(to, end)));
  return {
    line:
      left +
      cells
        .slice(start, end)
        .map((cell) => cell.shown)
        .join("") +
      right,
    blanks: " ".repeat(left.length + widthOf(cells.slice(start, from))),
    marks: "^".repeat(Math.max(1, marked)),
  };
}

/** Where the shown part starts: some columns before the span, more if little follows it. */
const startOf = (cells: readonly Cell[], from: number, width: number): number =>
  Math.min(cellBefore(cells, from, COLUMNS_BEFORE), cellBefore(cells, cells.length, width - CUT.length - 1));

/** The cell this many columns earlier. */
function cellBefore(cells: readonly Cell[], from: number, columns: number): number {
  let at = from;
  for (let left = columns; at > 0 && left > 0; at -= 1) left -= cells[at - 1]?.columns ?? 0;
  return at;
}

/** The cell after the last one that fits in this many columns. */
function cellAfter(cells: readonly Cell[], from: number, columns: number): number {
  let at = from;
  for (let left = columns; at < cells.length; at += 1) {
    left -= cells[at]?.columns ?? 0;
    if (left < 0) break;
  }
  return at;
}

interface WrongVerdict {
  readonly where: string;
  readonly cmd: string;
  readonly mode: string;
  readonly class: string;
  readonly want: string;
  readonly got: string;
  readonly rule: string;
  readonly reason: string;
  readonly debatable: boolean;
}

interface Counted {
  readonly right: number;
  readonly total: number;
}

/** Why one command of a file failed. */
export function wrongVerdict(wrong: WrongVerdict, stream: Output): string {
  const { where, want, got, debatable } = wrong;
  const verdicts = styleText(debatable ? "yellow" : "red", `want ${want}, got ${got}`, { stream });
  const suffix = debatable ? ", debatable" : "";
  return [
    `${visibleLine(where)}  ${verdicts}  [${visibleLine(wrong.class)}${suffix}]`,
    ...judgedLines(wrong.cmd, wrong),
    "",
  ].join("\n");
}

/** A command, and why it got its verdict. */
function judgedLines(
  command: string,
  { reason, rule, mode }: Pick<ChangedVerdict, "reason" | "rule" | "mode">,
): readonly string[] {
  return [
    `${INDENT}${visible(command).replaceAll("\n", `\n${INDENT}`)}`,
    `${INDENT}${visibleLine(reason)}  (${visibleLine(rule)}, ${mode})`,
  ];
}

/** Correct and total counts for each class, then for all of them. */
export function scoreTable(
  classes: ReadonlyMap<string, Counted>,
  { sure, debatable }: { readonly sure: Counted; readonly debatable: Counted },
): string {
  const rows: readonly (readonly [string, Counted])[] = [
    ...[...classes].map(([name, count]) => [visibleLine(name), count] as const),
    ["all", sure],
    ...(debatable.total === 0 ? [] : [["debatable only", debatable] as const]),
  ];
  const width = Math.max(...rows.map(([name]) => name.length));
  return rows.map(([name, { right, total }]) => `${name.padEnd(width)}  ${right}/${total}`).join("\n");
}

export interface ChangedVerdict {
  readonly ts: string;
  readonly session: string;
  readonly command: string;
  readonly mode: string;
  readonly old: string;
  readonly new: string;
  readonly rule: string;
  readonly reason: string;
}

/** A command of a past session whose verdict has changed. */
export function changedVerdict(changed: ChangedVerdict, stream: Output): string {
  const verdicts = styleText("bold", `${changed.old} -> ${changed.new}`, { stream });
  return [
    `${verdicts}  ${visibleLine(changed.ts)}  ${visibleLine(changed.session)}`,
    ...judgedLines(changed.command, changed),
    "",
  ].join("\n");
}
