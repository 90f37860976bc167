import path from "node:path";
import * as z from "zod";
import type { ExecRequest, ExecResult, FileResult, SearchRequest, SearchResult } from "../../core/ports.ts";
import { textOfBytes } from "../../core/byte-text.ts";

/** How ripgrep gives a text: as it is, or in base64 where it is not UTF-8. */
const given = z.union([z.object({ text: z.string() }), z.object({ bytes: z.string() })]);
const match = z.object({
  type: z.literal("match"),
  data: z.object({ path: given, lines: given, line_number: z.number() }),
});

const HEAD = 16 * 2 ** 20;
const SEARCH_MS = 60_000;
const NO_PROGRAM = 127;
/** ripgrep ends with 1 when no line fits and with 2 for a mistake. */
const MISTAKE = 2;

/** ripgrep's call for a search; paths come out below the folder it runs in. */
export const searchCommand = ({ pattern, limit }: SearchRequest, folder: string): ExecRequest => ({
  words: ["rg", "--json", "--hidden", "--glob=!.git", `--max-count=${limit + 1}`, "--sort=path"].concat([
    "-e",
    pattern,
    "--",
    ".",
  ]),
  folder,
  timeoutMs: SEARCH_MS,
  keep: { head: HEAD, tail: 4096 },
});

/** What ripgrep said, as paths below the workspace where they lie there. */
export function searchResult(
  { limit }: SearchRequest,
  { workspace, folder }: { readonly workspace: string; readonly folder: string },
  { exit_code, stdout, stderr, reason }: ExecResult,
): FileResult<SearchResult> {
  if (exit_code >= MISTAKE) {
    const said = Buffer.from(stderr.head).toString("utf8").trim().split("\n").at(-1) ?? "";
    const code = exit_code === NO_PROGRAM ? "ENOSYS" : "EINVAL";
    const why = said === "" ? reason : said;
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
    .map(({ file, ...line }) => ({ path: shown(workspace, path.join(folder, file)), ...line }));
  return {
    kind: "ok",
    value: { lines: found.slice(0, limit), more: found.length > limit || stdout.lost > 0 },
  };
}

const textOf = (value: z.infer<typeof given>): string =>
  "text" in value ? value.text : textOfBytes(Buffer.from(value.bytes, "base64"));

function lineOf(
  text: string,
): readonly { readonly file: string; readonly line: number; readonly text: string }[] {
  if (!text.startsWith('{"type":"match"') || !text.endsWith("}")) return [];
  const { data } = match.parse(JSON.parse(text));
  return [
    { file: textOf(data.path), line: data.line_number, text: textOf(data.lines).replace(/\r?\n$/, "") },
  ];
}

const shown = (workspace: string, file: string): string =>
  file.startsWith(`${workspace}/`) ? file.slice(workspace.length + 1) : file;
