import type { Change } from "../../core/ports.ts";
import type { RunnerClient } from "../runner/runner-client.ts";

/** How a box sees its workspace. */
export type Isolation = "bind" | "overlay" | "copy";

/** Where a box's workspace really lies while the box exists. */
export interface Place {
  /** The volume to mount instead of the planned one. */
  readonly volume?: string;
  /** A folder of the file system that the commands fill; undefined if the host cannot see that file system. */
  readonly disk: string | undefined;
  /** Whether the runner must record the tree first, because `changes` depends on the record. */
  readonly snapshot: boolean;
  readonly changes: (client: RunnerClient) => Promise<Changed>;
  /** How the box's own mount table deviates from this place, one line for each deviation. */
  readonly faults: (mountinfo: string) => readonly string[];
  /** Called after the container is gone. */
  readonly remove: () => Promise<void>;
}

/** Only a layer reports folders among the changes. */
export interface Changed {
  /** Ordered by path; each iteration reads the changes anew. */
  readonly changes: Iterable<Change>;
  /** A part could not be read, or a limit was reached. */
  readonly incomplete: boolean;
}
