import { realpath } from "node:fs/promises";
import path from "node:path";
import { topAbove } from "../../boxes/box-workspace.ts";
import type { Host } from "../host.ts";

/** The repository that a workspace is a folder of. */
export interface RepositoryAround {
  readonly top: string;
  /** From the top down to the one above the workspace. */
  readonly folders: readonly string[];
}

/** Undefined for a workspace that is a top itself, and where no box would see that repository. */
export async function repositoryAround(
  { places }: Pick<Host, "places">,
  workspace: string,
): Promise<RepositoryAround | undefined> {
  const { home, state: stateDir } = places;
  const top = await topAbove(workspace, { home, stateDir });
  if (top === undefined) return undefined;
  const folders: string[] = [];
  for (let up = await realpath(workspace); up !== top;) {
    up = path.dirname(up);
    folders.unshift(up);
  }
  return { top, folders };
}
