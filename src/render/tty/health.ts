import type { Health } from "../../core/health.ts";
import { type Output, styleText } from "./output.ts";

const MARKS = { ok: ["green", "ok  "], warn: ["yellow", "warn"], fail: ["red", "fail"] } as const;

/** One line a check, with the command that mends it below. */
export function healthTable(checks: readonly Health[], stream: Output): string {
  const width = Math.max(...checks.map(({ id }) => id.length));
  return checks
    .map(({ id, state, detail, remedy }) => {
      const [colour, mark] = MARKS[state];
      const head = `${styleText(colour, mark, { stream })}  ${id.padEnd(width)}  ${detail}\n`;
      return remedy === ""
        ? head
        : `${head}${" ".repeat(width + 8)}${styleText("bold", "next:", { stream })} ${remedy}\n`;
    })
    .join("");
}
