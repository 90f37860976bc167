import { formatDuration, formatSize } from "../core/bounds.ts";

/** A setting's value as a person would write it. */
export function printable(key: string, value: unknown): string {
  if (value === null) return "(decided at run time)";
  if (typeof value === "number" && key === "timeout") return formatDuration(value);
  if (typeof value === "number" && key === "memory") return formatSize(value);
  return typeof value === "string" ? value : JSON.stringify(value);
}
