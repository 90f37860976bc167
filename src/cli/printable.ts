import { writtenDuration, writtenSize } from "../core/bounds.ts";

/** A setting's value as `config set` takes it. */
export function printable(key: string, value: unknown): string {
  if (typeof value === "number" && key.endsWith("timeout")) return writtenDuration(value);
  if (typeof value === "number" && key === "memory") return writtenSize(value);
  return typeof value === "string" ? value : JSON.stringify(value);
}
