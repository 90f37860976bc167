import path from "node:path";
import { EXIT, HarnessError } from "../../core/errors.ts";

/** A path as it was typed, below the workspace: from the current folder where that lies in it, else from its top. */
export function belowWorkspace(given: string, workspace: string): string {
  const here = process.cwd();
  const inside = here === workspace || here.startsWith(`${workspace}/`);
  const below = path.relative(workspace, path.resolve(inside ? here : workspace, given));
  if (below !== "" && below !== ".." && !below.startsWith("../") && !path.isAbsolute(below)) return below;
  throw new HarnessError(
    EXIT.usage,
    `--only ${JSON.stringify(given)} is no path in ${workspace}`,
    "harness apply --dry-run   (lists what there is)",
  );
}
