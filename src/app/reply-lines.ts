import { createInterface } from "node:readline";
import { withoutMark } from "../core/raw-data.ts";
import type { OfferedTool, TextReading } from "../models/text-calls/text-protocol.ts";
import { readCalls } from "../models/text-calls/text-call-stream.ts";

export interface UnreadLine {
  readonly error: string;
}

/** Reads one reply per line, in order; a malformed line gets an answer too. */
export async function* parsedLines(input: NodeJS.ReadableStream): AsyncGenerator<TextReading | UnreadLine> {
  const lines = createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY });
  let number = 0;
  for await (const line of lines) {
    number += 1;
    const read = readLine(line);
    yield typeof read === "string" ? { error: `line ${number}: ${read}` } : readCalls(read.text, read.tools);
  }
}

interface ReplyRequest {
  readonly text: string;
  readonly tools: readonly OfferedTool[];
}

/** The request, or why it cannot be read. */
function readLine(line: string): ReplyRequest | string {
  let parsed: unknown;
  try {
    parsed = JSON.parse(withoutMark(line));
  } catch {
    return 'not valid JSON; expected {"text": "…", "tools": ["read_file"]}';
  }
  if (typeof parsed !== "object" || parsed === null || !("text" in parsed) || typeof parsed.text !== "string")
    return 'expected an object with a string "text", as in {"text": "…", "tools": ["read_file"]}';
  const tools: unknown = "tools" in parsed ? parsed.tools : undefined;
  if (!Array.isArray(tools) || !tools.every((tool) => isTool(tool)))
    return '"tools" must be a list of names, or of {"name", "parameters"}';
  return { text: parsed.text, tools };
}

const isTool = (tool: unknown): tool is OfferedTool =>
  typeof tool === "string" ||
  (typeof tool === "object" &&
    tool !== null &&
    ("name" in tool ? typeof tool.name === "string" : "function" in tool));

/** For people: the calls, what could not be read, and the text. */
export function readingText(reading: TextReading | UnreadLine): string {
  if ("error" in reading) return `error      ${reading.error}`;
  return [
    ...reading.calls.map((call) => `call       ${call.name} ${JSON.stringify(call.args)}`),
    ...reading.malformed.map((each) => `malformed  ${JSON.stringify(each.name)}: ${each.reason}`),
    ...reading.missed.map((each) => `missed     ${JSON.stringify(each.name)}: ${each.reason}`),
    `prose      ${JSON.stringify(reading.prose)}`,
  ].join("\n");
}
