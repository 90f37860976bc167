import { type Row, TABLE } from "./table.ts";

/**
 * A model's name as the table writes it: in lower case, without the registry, owner and maker in front, the version
 * joined to the word before it. `hf.co/unsloth/Qwen3-8B-GGUF:Q4_K_M` is `qwen3-8b-gguf:q4_k_m`, `Meta-Llama-3.1-8B` is
 * `llama3.1-8b`.
 */
export function familyName(model: string): string {
  const lower = model.trim().toLowerCase();
  const last = lower.slice(lower.lastIndexOf("/") + 1);
  return last.replace(/^(?:meta|nvidia|ibm|google|microsoft|c4ai)[-_]/, "").replace(VERSION, "$1$2");
}

/** The first number, unless it is a size: `gpt-oss-20b`, `mistral-7b`. */
const VERSION = /^([a-z]+(?:-[a-z]+)*?)[-_](\d+(?:\.\d+)?)(?![\d.]*[bmx])/;

/** The row with the longest prefix of the name. */
export const rowOf = (model: string): Row | undefined => longest(TABLE, [familyName(model)]);

/** Among the user's rows: they may write the name as the server does, or as the family is called. */
export const ownRowOf = <T extends { readonly prefix: string }>(
  rows: readonly T[],
  model: string,
): T | undefined => {
  const whole = model.trim().toLowerCase();
  const names = [whole, whole.slice(whole.lastIndexOf("/") + 1), familyName(model)];
  return longest(rows, names);
};

function longest<T extends { readonly prefix: string }>(
  rows: readonly T[],
  names: readonly string[],
): T | undefined {
  let best: T | undefined;
  for (const row of rows) {
    const prefix = row.prefix.toLowerCase();
    // Of two rows alike the later counts.
    if (prefix.length >= (best?.prefix.length ?? 0) && names.some((name) => name.startsWith(prefix)))
      best = row;
  }
  return best;
}
