import * as z from "zod";
import { type AnyTool, anyTool, NO_FACTS } from "../core/tool.ts";
import { type ToolContext, absolute, shown } from "./tool-context.ts";
import { ok } from "./tool-results.ts";
import { count, flag, forgiving } from "./forgiving-input.ts";
import { type Found, ripgrep } from "./ripgrep.ts";

const MAX_COUNT = 200;
const MAX_LENGTH = 400;
const MAX_CONTEXT = 20;

const input = forgiving(
  z.strictObject({
    pattern: z.string(),
    path: z.string().optional(),
    glob: z.string().optional(),
    ignore_case: flag.optional(),
    context: count.optional(),
  }),
);

export const grepTool = (context: ToolContext): AnyTool =>
  anyTool({
    name: "grep",
    description: "Search file contents with a regular expression (ripgrep), without ignored files.",
    input,
    concurrent: true,
    where: "box",
    facts: ({ path = "." }) => ({ ...NO_FACTS, reads: [absolute(context.workspace, path)] }),
    run: async ({ path = ".", ...wanted }, box, signal) => {
      const place = absolute(context.workspace, path);
      const found = await ripgrep(box, [...ripgrepOptions(wanted), "--", place], signal);
      return found.kind === "found" ? ok(resultText(context, found)) : found;
    },
  });

type SearchInput = Omit<z.infer<typeof input>, "path">;

const ripgrepOptions = ({
  pattern,
  glob = "",
  ignore_case = false,
  context = 0,
}: SearchInput): readonly string[] => [
  "--line-number",
  "--with-filename",
  "--no-heading",
  "--crlf",
  `--max-columns=${MAX_LENGTH}`,
  "--max-columns-preview",
  ...(ignore_case ? ["--ignore-case"] : []),
  ...(context > 0 ? [`--context=${Math.min(Math.floor(context), MAX_CONTEXT)}`] : []),
  // ripgrep takes a pattern that matches everything as a request for ignored files too.
  ...(/^[*/]*$/.test(glob) ? [] : [`--glob=${glob}`]),
  "--glob=!.git",
  "-e",
  pattern,
];

interface Line {
  readonly file: string;
  readonly text: string;
  readonly match: boolean;
}

/** A line of ripgrep's output with --null: path, NUL, number, `:` for a match or `-` for context. */
const LINE = /^([^\0]*)\0(\d+)([:-])([\s\S]*)$/;

function resultText(context: ToolContext, { out, lost, trouble }: Found): string {
  const lines = out.split("\n").flatMap((text): readonly Line[] => {
    const [all, file = "", number, mark, rest = ""] = LINE.exec(text) ?? [];
    if (all === undefined) return [];
    return [{ file, text: `${number}${mark}${rest.replace(/\r$/, "").toWellFormed()}`, match: mark === ":" }];
  });
  const matches = lines.filter(({ match }) => match).length;
  const kept = firstMatches(lines);
  const keptMatches = kept.filter(({ match }) => match).length;
  const rest =
    matches > keptMatches
      ? [`[and ${matches - keptMatches}${lost ? " or more" : ""} more matches: narrow the search]`]
      : [];
  const none = matches === 0 ? ["[no matches; ignored and binary files are left out]"] : [];
  return [
    ...grouped(context, kept),
    ...rest,
    ...none,
    ...(trouble === "" ? [] : [`[${trouble.split("\n", 1)[0]}]`]),
  ].join("\n");
}

function firstMatches(lines: readonly Line[]): readonly Line[] {
  let matches = 0;
  const end = lines.findIndex(({ match }) => match && (matches += 1) > MAX_COUNT);
  return end < 0 ? lines : lines.slice(0, end);
}

/** Groups lines by file, with each file's name once above them. */
function grouped(context: ToolContext, lines: readonly Line[]): readonly string[] {
  return lines.flatMap(({ file, text }, index) =>
    lines[index - 1]?.file === file ? [text] : [shown(context.workspace, file), text],
  );
}
