import path from "node:path";
import * as z from "zod";
import { asSeenFrom } from "../core/file-names.ts";
import type { ExecRequest, ExecResult, FileResult, PatternSearch, SearchResult } from "../core/ports.ts";
import { textOfBytes } from "../core/raw-data.ts";

/** A search for a pattern, which ripgrep does in the box. */

/** Text in ripgrep's JSON: plain, or base64 if it is not UTF-8. */
const ripgrepText = z.union([z.object({ text: z.string() }), z.object({ bytes: z.string() })]);
const ripgrepMatch = z.object({
  type: z.literal("match"),
  data: z.object({ path: ripgrepText, lines: ripgrepText, line_number: z.number() }),
});

const SEARCH_OUTPUT_BYTES = 16 * 2 ** 20;
const SEARCH_MS = 60_000;
const NO_PROGRAM = 127;
/** ripgrep exits with 1 when no line matches and with 2 for an error. */
const RIPGREP_ERROR = 2;

/** The ripgrep command line of a search. Paths in its output are relative to the folder it runs in. */
export const searchCommand = ({ pattern, limit }: PatternSearch, folder: string): ExecRequest => ({
  words: ["rg", "--json", "--hidden", "--glob=!.git", `--max-count=${limit + 1}`, "--sort=path"].concat([
    "-e",
    pattern,
    "--",
    ".",
  ]),
  folder,
  timeoutMs: SEARCH_MS,
  keep: { head: SEARCH_OUTPUT_BYTES, tail: 4096 },
});

/** ripgrep's output. Paths inside the workspace are relative to it. */
export function searchResult(
  { limit }: PatternSearch,
  { workspace, folder }: { readonly workspace: string; readonly folder: string },
  { exit_code, stdout, stderr, reason }: ExecResult,
): FileResult<SearchResult> {
  if (exit_code >= RIPGREP_ERROR) {
    const message = Buffer.from(stderr.head).toString("utf8").trim().split("\n").at(-1) ?? "";
    const code = exit_code === NO_PROGRAM ? "ENOSYS" : "EINVAL";
    const why = message === "" ? reason : message;
    return {
      kind: "failed",
      cause: "filesystem",
      code,
      path: folder,
      reason: `${folder}: search: ${code}: ${why}`,
    };
  }
  const found = Buffer.from(stdout.head)
    .toString("utf8")
    .split("\n")
    .flatMap(lineOf)
    .map(({ file, ...line }) => ({ path: asSeenFrom(workspace, path.join(folder, file)), ...line }));
  return {
    kind: "ok",
    value: { lines: found.slice(0, limit), more: found.length > limit || stdout.lost > 0 },
  };
}

const textOf = (value: z.infer<typeof ripgrepText>): string =>
  "text" in value ? value.text : textOfBytes(Buffer.from(value.bytes, "base64"));

function lineOf(
  text: string,
): readonly { readonly file: string; readonly line: number; readonly text: string }[] {
  if (!text.startsWith('{"type":"match"') || !text.endsWith("}")) return [];
  const { data } = ripgrepMatch.parse(JSON.parse(text));
  return [
    { file: textOf(data.path), line: data.line_number, text: textOf(data.lines).replace(/\r?\n$/, "") },
  ];
}
