import * as z from "zod";
import { formatSize } from "../../core/text/bounds.ts";
import type { ToolResult } from "../../core/tool.ts";
import { visible, visibleLine } from "../../core/text/visible.ts";

/**
 * A server's answer as text for the model. It is untrusted: parts that are not text are named but not passed on,
 * invisible characters are made visible, and everything is bounded. The caller may shorten it further.
 */

/** UTF-16 units of all parts together. */
const MOST_TEXT = 512 * 1024;
const MOST_PARTS = 200;
/** Values nested deeper are not written out. */
const DEEPEST = 64;

const text = z.string();
const answer = z.looseObject({
  content: z.array(z.unknown()).optional(),
  contents: z.array(z.unknown()).optional(),
  structuredContent: z.unknown().optional(),
  isError: z.boolean().optional(),
});

export function toolResult(given: unknown): ToolResult {
  const read = answer.safeParse(given);
  if (!read.success)
    return { kind: "failed", cause: "program", text: "The server's answer is not a valid MCP result." };
  const { isError } = read.data;
  const whole = visible(linesOf(read.data).join("\n").toWellFormed());
  const shown = whole.length > MOST_TEXT ? `${whole.slice(0, MOST_TEXT)}\n[the rest is left out]` : whole;
  if (isError === true)
    return { kind: "failed", cause: "program", text: shown || "It failed without a message." };
  return { kind: "ok", text: shown || "(nothing)" };
}

function linesOf(given: z.infer<typeof answer>): readonly string[] {
  const { content, contents, structuredContent: value } = given;
  const parts = content ?? contents;
  if (parts === undefined && value === undefined) return [json(given)];
  const lines = (parts ?? []).slice(0, MOST_PARTS).map(partText);
  if (value !== undefined && value !== null && !repeats(lines, value)) lines.push(json(value));
  const left = (parts ?? []).length - MOST_PARTS;
  return left > 0 ? [...lines, `[${left} further parts are left out]`] : lines;
}

const contentPart = z.union([
  z.looseObject({ type: z.literal("text"), text }),
  z.looseObject({ type: z.enum(["image", "audio"]), data: text, mimeType: text.optional() }),
  z.looseObject({ type: z.literal("resource"), resource: z.looseObject({}) }),
  z.looseObject({ type: z.literal("resource_link"), uri: text, name: text.optional() }),
]);
const textResource = z.looseObject({ uri: text, text });
const blobResource = z.looseObject({ uri: text, blob: text, mimeType: text.optional() });

function partText(given: unknown): string {
  const read = contentPart.safeParse(given);
  if (!read.success) return resourceText(given) ?? "[a part of an unknown kind]";
  const found = read.data;
  switch (found.type) {
    case "text":
      return found.text;
    case "image":
    case "audio":
      return `[${found.type} ${visibleLine(found.mimeType ?? "")}, ${sizeOf(found.data)}: not passed on]`;
    case "resource":
      return resourceText(found.resource) ?? "[a resource that cannot be read]";
    case "resource_link":
      return `[resource ${visibleLine(found.uri)} ${visibleLine(found.name ?? "")}]`;
  }
}

function resourceText(given: unknown): string | undefined {
  const written = textResource.safeParse(given);
  if (written.success) return `[${visibleLine(written.data.uri)}]\n${written.data.text}`;
  const blob = blobResource.safeParse(given);
  if (!blob.success) return undefined;
  const { uri, mimeType = "", blob: data } = blob.data;
  return `[${visibleLine(uri)} ${visibleLine(mimeType)}, ${sizeOf(data)}: not passed on]`;
}

/** The size of Base64 data. */
const sizeOf = (data: string): string => formatSize(Math.floor((data.length * 3) / 4));

/**
 * Servers also send structured content as text, for clients that know nothing else: as the whole value, as the only
 * value in it, or, if that is a list, perhaps with each item on its own.
 */
function repeats(lines: readonly string[], value: unknown): boolean {
  if (isDeeper(value, DEEPEST)) return false;
  const inner: readonly unknown[] = typeof value === "object" && value !== null ? Object.values(value) : [];
  const [only] = inner.length === 1 ? inner : [];
  if (only === lines.join("\n")) return true;
  const jsonLines = lines.map(asJson);
  const wholes = new Set<string | undefined>([value, only].map((each) => JSON.stringify(each)));
  if (jsonLines.some((line) => line !== undefined && wholes.has(line))) return true;
  const items: readonly unknown[] = Array.isArray(only) ? only : [];
  const each = items.length === lines.length ? items : [];
  return (
    each.length > 0 && each.every((item, at) => item === lines[at] || JSON.stringify(item) === jsonLines[at])
  );
}

/** Normalized for comparison; undefined if the line is not JSON. */
function asJson(line: string): string | undefined {
  try {
    return JSON.stringify(JSON.parse(line));
  } catch {
    return undefined;
  }
}

function json(value: unknown): string {
  if (isDeeper(value, DEEPEST)) return "[a value that is nested too deep]";
  return JSON.stringify(value, null, 1) ?? "";
}

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  return levels === 0 || Object.values(value).some((inner) => isDeeper(inner, levels - 1));
}
