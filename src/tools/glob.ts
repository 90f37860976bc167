import * as z from "zod";
import { asSeenFrom } from "../core/text/file-paths.ts";
import { type AnyTool, anyTool, NO_FACTS } from "../core/tool.ts";
import { forgiving } from "./forgiving-input.ts";
import { ripgrep } from "./ripgrep.ts";
import { absolute, type ToolContext, shown } from "./tool-context.ts";
import { ok } from "./tool-results.ts";

const MAX_COUNT = 300;

const input = forgiving(z.strictObject({ pattern: z.string(), path: z.string().optional() }));

export const globTool = (context: ToolContext): AnyTool =>
  anyTool({
    name: "glob",
    description: "List files whose path fits a pattern like src/**/*.ts, without ignored files.",
    input,
    concurrent: true,
    where: "box",
    facts: ({ path = "." }) => ({ ...NO_FACTS, reads: [absolute(context.workspace, path)] }),
    run: async ({ pattern, path = "." }, box, signal) => {
      const folder = absolute(context.workspace, path);
      const found = await ripgrep(box, ["--files", "--glob=!.git", "--", folder], signal);
      if (found.kind !== "found") return found;
      const fits = globPattern(asSeenFrom(folder, pattern));
      const files = found.out.split("\0").filter((file) => file !== "" && fits(asSeenFrom(folder, file)));
      const lines = files.slice(0, MAX_COUNT).map((file) => shown(context.workspace, file));
      const rest =
        files.length > MAX_COUNT ? [`[and ${files.length - MAX_COUNT} more: narrow the pattern]`] : [];
      const lost = found.lost ? ["[the folder holds too many files to be seen whole: give a path]"] : [];
      const none = files.length === 0 ? [`[no file fits ${pattern}; ignored files are left out]`] : [];
      return ok([...lines, ...rest, ...none, ...lost].join("\n"));
    },
  });

/**
 * Patterns of paths: `*` and `?` within a name, `**` across folders, `[a-z]`, `{a,b}`. A pattern without a slash
 * matches the name at any depth. Every pattern is fast: only the last star is tried again.
 */
export function globPattern(pattern: string): (path: string) => boolean {
  const forms = alternatives(pattern.replace(/^(?:\.?\/)+/, "")).map(segmentsOf);
  return (path) => {
    const names = path.split("/");
    return forms.some((segments) => fits(segments, names, (segment, name) => fitsName(segment, name)));
  };
}

type Part<T> = "star" | T;
type Test = (character: string) => boolean;
type Segment = readonly Part<Test>[];

function segmentsOf(pattern: string): readonly Part<Segment>[] {
  const whole = pattern.endsWith("/") ? `${pattern}**` : pattern;
  const segments = (whole.includes("/") ? whole : `**/${whole}`).split("/");
  return segments.map((segment) => (segment === "**" ? "star" : partsOf(segment)));
}

const fitsName = (segment: Segment, name: string): boolean =>
  fits(segment, Array.from(name), (test, character) => test(character));

/** Whether the parts match the items; a star matches any number of them. */
function fits<T, I>(
  parts: readonly Part<T>[],
  items: readonly I[],
  one: (part: T, item: I) => boolean,
): boolean {
  let [part, item, star, from] = [0, 0, -1, 0];
  while (item < items.length) {
    const next = parts[part];
    if (next === "star") {
      star = part;
      from = item;
      part += 1;
    } else if (next !== undefined && one(next, items[item] as I)) {
      part += 1;
      item += 1;
    } else if (star >= 0) {
      part = star + 1;
      from += 1;
      item = from;
    } else return false;
  }
  return parts.slice(part).every((rest) => rest === "star");
}

const TOKEN = /\*+|\?|\[(!|\^)?(\]?[^\]]*)\]|\\?([\s\S])/gu;

function partsOf(segment: string): Segment {
  return Array.from(segment.matchAll(TOKEN), ([token, not, set, literal = ""]): Part<Test> => {
    if (token.startsWith("*")) return "star";
    if (token === "?") return () => true;
    if (set === undefined) return (character) => character === literal;
    return (character) => inSet(set, character) === (not === undefined);
  });
}

function inSet(set: string, character: string): boolean {
  return Array.from(set.matchAll(/([\s\S])-([\s\S])|([\s\S])/gu)).some(([, low, high, single]) =>
    low === undefined || high === undefined ? single === character : low <= character && character <= high,
  );
}

const MAX_FORMS = 200;

/** Expands `{a,b}`. Braces without a comma, or too many of them, are literal. */
function alternatives(pattern: string): readonly string[] {
  let forms = [pattern];
  for (;;) {
    const next = forms.flatMap(expandBraces);
    if (next.length === forms.length || next.length > MAX_FORMS) return forms;
    forms = next;
  }
}

/** Innermost braces come first. */
function expandBraces(pattern: string): readonly string[] {
  const braces = /\{([^{}]*,[^{}]*)\}/.exec(pattern);
  if (braces === null) return [pattern];
  const [all, inner = ""] = braces;
  const [before, after] = [pattern.slice(0, braces.index), pattern.slice(braces.index + all.length)];
  return inner.split(",").map((one) => before + one + after);
}
