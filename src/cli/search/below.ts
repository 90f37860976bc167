import { realpath } from "node:fs/promises";
import path from "node:path";
import { EXIT, errorCode, HarnessError, reasonOf } from "../../core/errors.ts";

/**
 * What a search is narrowed to, as paths of the index are written; null for all of it. A name counts from the workspace,
 * one that begins with a dot from the current folder too.
 */
export async function belowOf(
  given: string | undefined,
  workspace: string,
  current: string,
): Promise<string | null> {
  if (given === undefined || given === "") return null;
  const from = /^\.\.?(?:\/|$)/.test(given) ? [current, workspace] : [workspace];
  const real = await firstThere(
    from.map((folder) => path.resolve(folder, given)),
    workspace,
    given,
  );
  const below = path.relative(workspace, real);
  return below === "" ? null : below;
}

async function firstThere(places: readonly string[], workspace: string, given: string): Promise<string> {
  let failure = usage(`--below ${given} lies outside of ${workspace}`);
  for (const place of places)
    try {
      const real = await realpath(place);
      if (isWithin(workspace, real)) return real;
    } catch (thrown) {
      if (!isWithin(workspace, place)) continue;
      const why = errorCode(thrown) === "ENOENT" ? "" : `: ${reasonOf(thrown)}`;
      failure = usage(`there is no ${given} in ${workspace}${why}`);
    }
  throw failure;
}

const isWithin = (folder: string, place: string): boolean => {
  const rest = path.relative(folder, place);
  return rest !== ".." && !rest.startsWith("../");
};

const usage = (message: string): HarnessError =>
  new HarnessError(EXIT.usage, message, 'harness search --below FOLDER "…", with a folder of the workspace');
