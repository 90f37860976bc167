import { createHash } from "node:crypto";
import path from "node:path";

export interface StorePlace {
  readonly stateDir: string;
  /** Absolute and resolved; the folder may no longer exist. */
  readonly workspace: string;
}

/** For all workspaces of this state folder. */
export const checkpointsIn = (stateDir: string): string => path.join(stateDir, "checkpoints");

export const storeFolder = ({ stateDir, workspace }: StorePlace): string =>
  path.join(checkpointsIn(stateDir), createHash("sha256").update(workspace).digest("hex").slice(0, 24));

/** For all workspaces together; a single run may not store more either. */
export const QUOTA_BYTES = 5 * 2 ** 30;
