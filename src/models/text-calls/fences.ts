import type { OfferedTools } from "./names.ts";
import type { Outcome } from "./reading.ts";
import { readFenced } from "./weak.ts";

const OPENER = /(`{3,}|~{3,})[ \t]*([^\n`]*)\n/y;
const OPENING = /^(?:`{1,}|~{1,})[^\n`]*$/;
const LANGUAGES: ReadonlySet<string> = new Set(["", "json", "tool_code", "tool_call", "tool_calls"]);

/** A fence with all that it holds; undefined where none begins. */
export function readFence(
  text: string,
  at: number,
  tools: OfferedTools,
  final: boolean,
): Outcome | undefined {
  OPENER.lastIndex = at;
  const opener = OPENER.exec(text);
  const marks = opener?.[1];
  if (opener === null || marks === undefined)
    return !final && OPENING.test(text.slice(at, at + 200)) ? { kind: "more" } : undefined;
  const body = OPENER.lastIndex;
  const language = (opener[2] ?? "").trim();
  const close = closing(text, body, marks);
  if (LANGUAGES.has(language)) {
    const read = readFenced(text, body, language, tools);
    if (read.kind === "calls") return fencedCalls(text, read, { marks, final, close });
  }
  if (close === undefined) return final ? { kind: "text", end: text.length } : { kind: "more" };
  return { kind: "text", end: close };
}

interface Fence {
  readonly marks: string;
  readonly final: boolean;
  readonly close: number | undefined;
}

function fencedCalls(text: string, read: Extract<Outcome, { kind: "calls" }>, fence: Fence): Outcome {
  if (!fence.final && (read.cut || fence.close === undefined)) return { kind: "more" };
  if (read.cut) return { ...read, end: text.length };
  const end = closing(text, lineBegin(text, read.end), fence.marks) ?? text.length;
  const between = text.slice(read.end, end).replaceAll(fence.marks, "").trim();
  return between === "" ? { ...read, end } : { kind: "text", end };
}

const lineBegin = (text: string, at: number): number => text.lastIndexOf("\n", at - 1) + 1;

/** Behind the line that closes a fence. */
function closing(text: string, from: number, marks: string): number | undefined {
  let at = from;
  while (at < text.length) {
    const next = text.indexOf("\n", at);
    const end = next === -1 ? text.length : next;
    if (closes(text, at, end, marks)) return end;
    at = end + 1;
  }
  return undefined;
}

function closes(text: string, from: number, end: number, marks: string): boolean {
  let at = from;
  while (text[at] === " " || text[at] === "\t") at += 1;
  if (!text.startsWith(marks, at) || end - at > 100) return false;
  const line = text.slice(at, end).trim();
  return line.replaceAll(marks[0] ?? "", "") === "";
}
