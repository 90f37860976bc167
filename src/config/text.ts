import { parse } from "jsonc-parser";
import type { SettingKey } from "./schema.ts";

const AS_WRITTEN: ReadonlySet<string> = new Set([
  "provider",
  "base_url",
  "chat_model",
  "embed_model",
  "mode",
  "on_ask",
  "isolation",
  "image",
  "memory",
  "park_timeout",
  "timeout",
  "connect_timeout",
  "first_token_timeout",
  "idle_timeout",
  "search.store",
  "search.url",
]);

/** A setting's value from one word of text: a flag, an environment variable or `config set`. */
export function valueFromText(key: SettingKey | `search.${string}`, text: string): unknown {
  if (AS_WRITTEN.has(key)) return text === "null" ? null : text;
  if (key === "allow_domains" && !text.trim().startsWith("["))
    return text
      .split(",")
      .map((entry) => entry.trim())
      .filter((entry) => entry !== "");
  const errors: unknown[] = [];
  const value: unknown = parse(text, errors as never[]);
  return errors.length > 0 ? text : value;
}

/** `{search: {store: v}}` for `search.store`, `{mode: v}` for `mode`. */
export function nested(dotted: string, value: unknown): Record<string, unknown> {
  const [head = "", ...rest] = dotted.split(".");
  return { [head]: rest.length === 0 ? value : nested(rest.join("."), value) };
}
