import * as z from "zod";
import { type AnyTool, anyTool, NO_FACTS } from "../core/tool.ts";
import type { Desk } from "./tool-context.ts";
import { ok } from "./line-endings.ts";
import { forgiving } from "./forgiving-input.ts";
import { absolute, shown } from "./tool-paths.ts";
import { ripgrep } from "./ripgrep.ts";
import { globPattern } from "./edits/glob-pattern.ts";

const MOST = 300;

const input = forgiving(z.strictObject({ pattern: z.string(), path: z.string().optional() }));

export const globTool = (desk: Desk): AnyTool =>
  anyTool({
    name: "glob",
    description: "List files whose path fits a pattern like src/**/*.ts, without ignored files.",
    input,
    beside: true,
    where: "box",
    facts: ({ path = "." }) => ({ ...NO_FACTS, reads: [absolute(desk.workspace, path)] }),
    run: async ({ pattern, path = "." }, box, signal) => {
      const folder = absolute(desk.workspace, path);
      const found = await ripgrep(box, ["--files", "--glob=!.git", "--", folder], signal);
      if (found.kind !== "found") return found;
      const fits = globPattern(below(folder, pattern));
      const files = found.out.split("\0").filter((file) => file !== "" && fits(below(folder, file)));
      const lines = files.slice(0, MOST).map((file) => shown(desk.workspace, file));
      const rest = files.length > MOST ? [`[and ${files.length - MOST} more: narrow the pattern]`] : [];
      const lost = found.lost ? ["[the folder holds too many files to be seen whole: give a path]"] : [];
      const none = files.length === 0 ? [`[no file fits ${pattern}; ignored files are left out]`] : [];
      return ok([...lines, ...rest, ...none, ...lost].join("\n"));
    },
  });

const below = (folder: string, path: string): string =>
  path.startsWith(`${folder}/`) ? path.slice(folder.length + 1) : path;
