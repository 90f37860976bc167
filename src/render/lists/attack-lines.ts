import { formatDuration } from "../../core/wording.ts";
import { visibleLine } from "../../core/visible.ts";
import { type Output, styleText } from "../tty/output.ts";

type State = "held" | "broken" | "not shown";

interface AttackLine {
  readonly id: string;
  readonly promise: string;
  readonly text: string;
  readonly state: State;
  readonly why: readonly string[];
  readonly remedy: string;
}

interface AttackLines {
  readonly ok: boolean;
  readonly engine: string;
  readonly runtime: string;
  readonly took_ms: number;
  readonly promises: readonly { readonly promise: string; readonly text: string; readonly state: State }[];
  readonly attacks: readonly AttackLine[];
}

const MARKS = {
  held: ["green", "held     "],
  broken: ["red", "BROKEN   "],
  "not shown": ["yellow", "not shown"],
} as const;

/** Lists the attacks below the promise that they test; below each one that is not held, the reason and the remedy. */
export function attackTable(report: AttackLines, stream: Output): string {
  const width = Math.max(...report.attacks.map(({ id }) => id.length));
  const line = ({ id, text, state, why, remedy }: AttackLine): string => {
    const [colour, mark] = MARKS[state];
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
  return `${groups.join("")}\n${summary(report)}\n`;
}

function summary({ attacks, promises, ok, engine, runtime, took_ms }: AttackLines): string {
  const where = `${engine}, runtime ${runtime}, ${formatDuration(took_ms)}`;
  if (ok)
    return `all ${attacks.length} kinds of attack failed, and the allowed twin of each worked (${where})`;
  const of = (state: State): string =>
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
