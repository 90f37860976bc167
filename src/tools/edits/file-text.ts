import { textOfBytes } from "../../core/text/bytes.ts";

export const BOM = "\uFEFF";
export const WITH_BOM = "starts with a BOM";
export const CRLF = "CRLF line ends";

/** A text's lines, and remarks about the text. */
export interface TextAbout {
  /** Lines without their ends; none for an empty text. */
  readonly lines: readonly string[];
  readonly notes: readonly string[];
}

/** The text as it is shown: without byte order mark and without carriage returns at line ends. */
export function textAbout(bytes: Uint8Array): TextAbout {
  const text = textOfBytes(bytes);
  const bom = text.startsWith(BOM);
  const lines = (bom ? text.slice(1) : text).split("\n");
  const ended = lines.at(-1) === "";
  if (ended) lines.pop();
  const returns = lines.filter((line) => line.endsWith("\r")).length;
  const notes = [
    ...(bom ? [WITH_BOM] : []),
    ...(returns === 0 ? [] : [returns >= lines.length - (ended ? 0 : 1) ? CRLF : "mixed line ends"]),
    ...(ended || lines.length === 0 ? [] : ["no newline at the end"]),
    ...(text.isWellFormed() ? [] : ["bytes that are not UTF-8 are shown as \uFFFD"]),
  ];
  return {
    lines: lines.map((line) => (line.endsWith("\r") ? line.slice(0, -1) : line).toWellFormed()),
    notes,
  };
}

export const numbered = (lines: readonly string[], first: number): string =>
  lines.map((line, index) => `${first + index}\t${line}`).join("\n");

const MAGIC: readonly (readonly [string, string])[] = [
  ["89504e47", "PNG image"],
  ["ffd8ff", "JPEG image"],
  ["474946383", "GIF image"],
  ["424d", "BMP image"],
  ["25504446", "PDF document"],
  ["504b0304", "ZIP archive"],
  ["1f8b", "gzip archive"],
  ["7f454c46", "ELF program"],
  ["fffe", "UTF-16 text"],
  ["feff", "UTF-16 text"],
];

/** The kind of a file that is not UTF-8 text; undefined for text. */
export function binaryKind(bytes: Uint8Array, name: string): string | undefined {
  const start = Buffer.from(bytes.subarray(0, 12));
  if (start.toString("latin1", 0, 4) === "RIFF" && start.toString("latin1", 8) === "WEBP")
    return "WebP image";
  const hex = start.toString("hex");
  const known = MAGIC.find(([magic]) => hex.startsWith(magic))?.[1];
  if (bytes.includes(0)) return known ?? "binary file";
  return /\.(png|jpe?g|gif|webp|bmp)$/i.test(name) ? known : undefined;
}
