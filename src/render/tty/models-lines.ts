import type { Capabilities } from "../../core/model-provider.ts";
import { visible } from "../../core/visible.ts";
import { type Output, styleText } from "./output.ts";

export interface ModelRow {
  readonly model: string;
  /** The one that a run would use. */
  readonly configured: boolean;
  /** On the server; null where it gave no list. */
  readonly present: boolean | null;
  readonly assumed: Capabilities;
}

const HEADS = ["model", "window", "native tools", "thinking", "cache"] as const;

/** One model a line, each value with where it comes from. */
export function modelTable(rows: readonly ModelRow[], stream: Output): string {
  const cells = rows.map(({ model, assumed: { context, origin, tools, thinking, cache } }) => [
    visible(model),
    `${context.toLocaleString("en-US")} ${origin.context}`,
    `${yes(tools)} ${origin.tools}`,
    `${yes(thinking)} ${origin.thinking}`,
    `${yes(cache)} ${origin.cache}`,
  ]);
  const widths = HEADS.map((head, column) =>
    Math.max(head.length, ...cells.map((row) => row[column]?.length ?? 0)),
  );
  const line = (row: readonly string[]): string =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join("  ")
      .trimEnd();
  const lines = rows.map(({ configured, present }, index) => {
    const missing = present === false ? "  (not on the server)" : "";
    return `${configured ? "*" : " "} ${line(cells[index] ?? [])}${missing}\n`;
  });
  return `${styleText("dim", `  ${line(HEADS)}`, { stream })}\n${lines.join("")}`;
}

const yes = (value: boolean): string => (value ? "yes" : "no");
