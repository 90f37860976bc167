import { createHash } from "node:crypto";
import path from "node:path";

export interface StorePlace {
  readonly stateDir: string;
  /** Absolute and resolved; it need not be there any more. */
  readonly workspace: string;
}

/** Of all workspaces of this state folder. */
export const checkpointsIn = (stateDir: string): string => path.join(stateDir, "checkpoints");

export const storeFolder = ({ stateDir, workspace }: StorePlace): string =>
  path.join(checkpointsIn(stateDir), createHash("sha256").update(workspace).digest("hex").slice(0, 24));

/** Of all workspaces together; one run alone may not keep more either. */
export const QUOTA_BYTES = 5 * 2 ** 30;
