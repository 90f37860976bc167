import { formatSize } from "../core/bounds.ts";
import type { Box } from "../core/ports.ts";
import type { ToolResult } from "../core/tool.ts";
import { cutShort, failed, ok } from "./line-endings.ts";
import { WHOLE } from "./seen-content.ts";
import { numbered, textAbout } from "./edits/file-text.ts";
import type { Desk } from "./tool-context.ts";
import { shown } from "./tool-paths.ts";

export interface Place {
  readonly desk: Desk;
  readonly box: Box;
  readonly signal: AbortSignal;
  /** Absolute. */
  readonly path: string;
}

export interface Lines {
  /** From 1. */
  readonly first: number;
  readonly most: number;
}

interface Paged {
  readonly first: number;
  readonly shown: number;
  readonly total: number;
  readonly notes: readonly string[];
}

export function pageNote({ first, shown, total, notes }: Paged): string {
  const last = first + shown - 1;
  const which =
    shown === total ? (total === 1 ? "1 line" : `all ${total} lines`) : `lines ${first}-${last} of ${total}`;
  const next = last < total ? [`go on with offset ${last + 1}`] : [];
  return `[${[which, ...next, ...notes].join("; ")}]`;
}

const SCAN_MS = 60_000;

/** Lines of a file that is too large to be brought whole: they are found inside the box. */
export async function largePage(
  { desk, box, path, signal }: Place,
  { first, most }: Lines,
  size: number,
): Promise<ToolResult> {
  const last = first + most - 1;
  const ask = (words: readonly string[]) =>
    box.exec({ words, env: { LC_ALL: "C" }, timeoutMs: SCAN_MS, keep: { head: WHOLE, tail: 0 } }, signal);
  const [page, counted] = await Promise.all([
    ask(["sed", "-n", `${first},${last}p;${last}q`, "--", path]),
    ask(["grep", "-ac", "", "--", path]),
  ]);
  const name = shown(desk.workspace, path);
  const cut = cutShort(page, `reading ${name}`) ?? cutShort(counted, `counting the lines of ${name}`);
  if (cut !== undefined) return cut;
  const total = Number(Buffer.from(counted.stdout.head).toString("utf8"));
  if (page.exit_code !== 0 || !(total > 0)) return failed(`${name}: could not be read: ${page.reason}`);
  if (first > total) return failed(`${name}: offset ${first} is behind its end, line ${total}`);
  const { lines, notes } = textAbout(page.stdout.head);
  const lost = page.stdout.total - page.stdout.head.length;
  const rest =
    lost === 0
      ? []
      : [`the last line shown is cut: ${formatSize(lost)} follow; use a smaller limit, or bash`];
  const about = [formatSize(size), ...rest, ...notes.filter((note) => !note.startsWith("no newline"))];
  return ok(`${numbered(lines, first)}\n${pageNote({ first, shown: lines.length, total, notes: about })}`);
}
