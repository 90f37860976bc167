import type { Box } from "../core/ports.ts";
import type { ToolResult } from "../core/tool.ts";
import { textOfBytes } from "../core/text/bytes.ts";
import { cutShort, failed } from "./tool-results.ts";

const SEARCH_MS = 60_000;
const KEPT = 8 * 2 ** 20;
const NO_PROGRAM = 127;
const MISTAKE = 2;

export interface Found {
  readonly kind: "found";
  readonly out: string;
  /** The output was cut. */
  readonly lost: boolean;
  /** What could not be searched, in ripgrep's words; empty without errors. */
  readonly trouble: string;
}

/** Runs ripgrep in the box. A repository's ripgrep configuration is ignored. */
export async function ripgrep(
  box: Box,
  words: readonly string[],
  signal: AbortSignal,
): Promise<Found | Exclude<ToolResult, { readonly kind: "ok" }>> {
  const asked = ["rg", "--no-config", "--hidden", "--null", "--color=never", "--sort=path", ...words];
  const result = await box.exec(
    { words: asked, timeoutMs: SEARCH_MS, keep: { head: KEPT, tail: 0 } },
    signal,
  );
  const cut = cutShort(result, "searching");
  if (cut !== undefined) return cut as Exclude<ToolResult, { readonly kind: "ok" }>;
  const [out, said] = [textOfBytes(result.stdout.head), textOfBytes(result.stderr.head).trim()];
  const mistaken = result.exit_code >= MISTAKE && out === "";
  const lost = result.stdout.total > KEPT;
  if (!mistaken) return { kind: "found", out: lost ? wholePart(out) : out, lost, trouble: said };
  const why = result.exit_code === NO_PROGRAM ? "ripgrep is not in this image; use bash" : said;
  return failed(why === "" ? result.reason : why) as Exclude<ToolResult, { readonly kind: "ok" }>;
}

/** Removes the entry that was cut. */
const wholePart = (out: string): string =>
  out.slice(0, Math.max(out.lastIndexOf("\n"), out.lastIndexOf("\0"), 0));
