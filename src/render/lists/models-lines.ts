import type { Capabilities } from "../../core/model-provider.ts";
import { visibleLine } from "../../core/visible.ts";
import { alignedRows } from "../tty/columns.ts";
import { type Output, styleText } from "../tty/output.ts";
import { formatCount } from "../../core/wording.ts";

export interface ModelRow {
  readonly model: string;
  /** The model that a run would use. */
  readonly configured: boolean;
  /** Whether the server has it; null if the server gave no list. */
  readonly present: boolean | null;
  readonly kind: "chat" | "embedding" | "other";
  readonly assumed: Capabilities;
}

const HEADS = ["model", "window", "native tools", "calls", "thinking", "cache"] as const;

/** One line per model, each value with its source. Models that cannot chat come last, without these values. */
export function modelTable(rows: readonly ModelRow[], stream: Output): string {
  const chats = rows.filter(({ kind, configured }) => kind === "chat" || configured);
  const others = rows.filter((row) => !chats.includes(row));
  const cells = chats.map(({ model, assumed: { context, origin, tools, calls, thinking, cache } }) => [
    visibleLine(model),
    `${formatCount(context)} ${origin.context}`,
    `${yes(tools)} ${origin.tools}`,
    `${calls} ${origin.calls}`,
    `${yes(thinking)} ${origin.thinking}`,
    `${yes(cache)} ${origin.cache}`,
  ]);
  const [heads = "", ...rowsOfChats] = alignedRows([HEADS, ...cells]);
  const width = Math.max(HEADS[0].length, ...cells.map(([name = ""]) => name.length));
  const lines = chats.map(({ configured, present, kind }, index) => {
    const missing = present === false ? "  (not on the server)" : "";
    const silent = kind === "chat" ? "" : `  (${NOT_FOR[kind]})`;
    return `${configured ? "*" : " "} ${rowsOfChats[index] ?? ""}${missing}${silent}\n`;
  });
  const last = others.map(
    ({ model, kind }) => `  ${visibleLine(model).padEnd(width)}  ${kind === "chat" ? "" : NOT_FOR[kind]}\n`,
  );
  return `${styleText("dim", `  ${heads}`, { stream })}\n${lines.join("")}${last.join("")}`;
}

const NOT_FOR = { embedding: "only embeds, for search; cannot chat", other: "cannot chat" } as const;

const yes = (value: boolean): string => (value ? "yes" : "no");
