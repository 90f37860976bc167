/** The state of a machine for a person: its set-up, its checks, its models, and the attacks tried on a box. */
import type { Health } from "../core/errors.ts";
import type { Capabilities } from "../core/model-provider.ts";
import { visibleLine } from "../core/visible.ts";
import { formatCount, formatDuration, formatSize } from "../core/wording.ts";
import type { StepLine } from "./search-lines.ts";
import { alignedRows, columnsOf, hangingIndent, padded } from "./tty/columns.ts";
import { type Output, styleText } from "./tty/output.ts";

/** The closing table: what runs, what replaces what, and what to type next. */
export function setupTable(steps: readonly StepLine[], stream: Output): string {
  const rows = (state: StepLine["state"]): readonly string[] =>
    steps
      .filter((step) => step.state === state)
      .map(({ name, short }) => `${name.padEnd(7)} ${visibleLine(short)}`);
  const next = [
    "./start.sh demo       see the box at work",
    "bin/harness doctor    check everything a run depends on",
  ];
  const block = (title: string, lines: readonly string[]): string =>
    lines
      .map(
        (line, index) =>
          `  ${styleText("bold", (index === 0 ? title : "").padEnd(10), { stream })} ${line}\n`,
      )
      .join("");
  return `\n${block("runs", rows("ok"))}${block("fallback", rows("stand-in"))}${block("next", next)}\n`;
}

const HEALTH_MARKS = { ok: ["green", "ok  "], warn: ["yellow", "warn"], fail: ["red", "fail"] } as const;

/** One line per check, with the command that fixes it below. */
export function healthTable(checks: readonly Health[], stream: Output): string {
  const width = Math.max(...checks.map(({ id }) => id.length));
  return checks
    .map(({ id, state, detail, remedy }) => {
      const [colour, mark] = HEALTH_MARKS[state];
      const head = `${styleText(colour, mark, { stream })}  ${id.padEnd(width)}  ${hangingIndent(detail, width + 8, stream)}\n`;
      return remedy === ""
        ? head
        : `${head}${" ".repeat(width + 8)}${styleText("bold", "next:", { stream })} ${remedy}\n`;
    })
    .join("");
}

/** The place of a bug report and its contents. */
export const bundledLines = ({
  file,
  bytes,
  holds,
  left_out,
}: {
  readonly file: string;
  readonly bytes: number;
  readonly holds: readonly string[];
  readonly left_out: string;
}): string =>
  [
    `${visibleLine(file)}  (${formatSize(bytes)})`,
    ...holds.map((line) => `  contains ${line}`),
    `  left out: ${left_out}`,
    "Read it before you share it.",
  ].join("\n");

interface ModelRow {
  readonly model: string;
  /** The model that a run would use. */
  readonly configured: boolean;
  /** Whether the server has it; null if the server gave no list. */
  readonly present: boolean | null;
  readonly kind: "chat" | "embedding" | "other";
  readonly assumed: Capabilities;
}

const MODEL_HEADS = ["model", "window", "native tools", "calls", "thinking", "cache"] as const;

/** One line per model, each value with its source. Models that cannot chat come last, without these values. */
export function modelTable(rows: readonly ModelRow[], stream: Output): string {
  const chats = rows.filter(({ kind, configured }) => kind === "chat" || configured);
  const others = rows.filter((row) => !chats.includes(row));
  const cells = chats.map(({ model, assumed: { context, origin, tools, calls, thinking, cache } }) => [
    visibleLine(model),
    `${formatCount(context)} ${origin.context}`,
    `${yesOrNo(tools)} ${origin.tools}`,
    `${calls} ${origin.calls}`,
    `${yesOrNo(thinking)} ${origin.thinking}`,
    `${yesOrNo(cache)} ${origin.cache}`,
  ]);
  const [heads = "", ...rowsOfChats] = alignedRows([MODEL_HEADS, ...cells]);
  const width = Math.max(MODEL_HEADS[0].length, ...cells.map(([name = ""]) => columnsOf(name)));
  const lines = chats.map(({ configured, present, kind }, index) => {
    const missing = present === false ? "  (not on the server)" : "";
    const silent = kind === "chat" ? "" : `  (${NOT_FOR[kind]})`;
    return `${configured ? "*" : " "} ${rowsOfChats[index] ?? ""}${missing}${silent}\n`;
  });
  const last = others.map(
    ({ model, kind }) => `  ${padded(visibleLine(model), width)}  ${kind === "chat" ? "" : NOT_FOR[kind]}\n`,
  );
  return `${styleText("dim", `  ${heads}`, { stream })}\n${lines.join("")}${last.join("")}`;
}

const NOT_FOR = { embedding: "only embeds, for search; cannot chat", other: "cannot chat" } as const;

const yesOrNo = (value: boolean): string => (value ? "yes" : "no");

type AttackState = "held" | "broken" | "not shown";

interface AttackLine {
  readonly id: string;
  readonly promise: string;
  readonly text: string;
  readonly state: AttackState;
  readonly why: readonly string[];
  readonly remedy: string;
}

interface AttackLines {
  readonly ok: boolean;
  readonly engine: string;
  readonly runtime: string;
  readonly took_ms: number;
  readonly promises: readonly {
    readonly promise: string;
    readonly text: string;
    readonly state: AttackState;
  }[];
  readonly attacks: readonly AttackLine[];
}

const ATTACK_MARKS = {
  held: ["green", "held     "],
  broken: ["red", "BROKEN   "],
  "not shown": ["yellow", "not shown"],
} as const;

/** Lists the attacks below the promise that they test; below each one that is not held, the reason and the remedy. */
export function attackTable(report: AttackLines, stream: Output): string {
  const width = Math.max(...report.attacks.map(({ id }) => id.length));
  const line = ({ id, text, state, why, remedy }: AttackLine): string => {
    const [colour, mark] = ATTACK_MARKS[state];
    const more = [...why.map(visibleLine), ...(remedy === "" ? [] : [`next: ${remedy}`])];
    const below = more.map((each) => `${" ".repeat(width + 15)}${each}\n`).join("");
    return `  ${styleText(colour, mark, { stream })}  ${id.padEnd(width)}  ${text}\n${below}`;
  };
  const groups = report.promises.map(
    ({ promise, text }) =>
      `${styleText("bold", text, { stream })}\n${report.attacks
        .filter((attack) => attack.promise === promise)
        .map(line)
        .join("")}`,
  );
  return `${groups.join("")}\n${attackSummary(report)}\n`;
}

function attackSummary({ attacks, promises, ok, engine, runtime, took_ms }: AttackLines): string {
  const where = `${engine}, runtime ${runtime}, ${formatDuration(took_ms)}`;
  if (ok)
    return `all ${attacks.length} kinds of attack failed, and the allowed twin of each worked (${where})`;
  const of = (state: AttackState): string =>
    promises
      .filter((one) => one.state === state)
      .map(({ text }) => text)
      .join("; ");
  const [broken, unknown] = [of("broken"), of("not shown")];
  return [
    ...(broken === "" ? [] : [`this machine does not keep: ${broken}`]),
    ...(unknown === "" ? [] : [`not shown on this machine: ${unknown}`]),
    `(${where})`,
  ].join("\n");
}
