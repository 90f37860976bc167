import { maskSecrets } from "../../core/secrets.ts";
import { sha256 } from "./chain.ts";

/** Readers of the file take lines of up to a million characters. */
const LONGEST_TEXT = 200_000;

/** Every text of it, however deep, without what looks like a secret; a longer one is cut and told by its hash. */
export function maskedEntry(entry: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(entry).map(([key, value]) => [key, masked(value)]));
}

function masked(value: unknown): unknown {
  if (typeof value === "string") return cut(maskSecrets(value));
  if (Array.isArray(value)) return value.map(masked);
  if (typeof value !== "object" || value === null) return value;
  return maskedEntry({ ...value });
}

function cut(text: string): string {
  if (text.length <= LONGEST_TEXT) return text;
  const head = text.slice(0, LONGEST_TEXT).toWellFormed();
  return `${head}… [${text.length - LONGEST_TEXT} more characters; sha256 of all: ${sha256(text)}]`;
}
