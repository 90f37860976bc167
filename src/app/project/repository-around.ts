import { realpath } from "node:fs/promises";
import path from "node:path";
import { topAbove } from "../../boxes/workspace/box-workspace.ts";
import type { Host } from "../host.ts";

/** The repository that contains a workspace. */
export interface RepositoryAround {
  readonly top: string;
  /** From the top down to the parent of the workspace. */
  readonly folders: readonly string[];
}

/** Undefined if the workspace is itself the top, or if no box would see the repository. */
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
