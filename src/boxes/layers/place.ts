import type { Change } from "../../core/changes.ts";
import type { RunnerClient } from "../runner/runner-client.ts";

/** How a box sees its workspace. */
export type Isolation = "bind" | "overlay" | "copy";

/** Where a box's workspace really is, for as long as the box is. */
export interface Place {
  /** In the planned one's stead. */
  readonly volume?: string;
  /** In the file system that its commands fill; undefined where that is not the host's to see. */
  readonly disk: string | undefined;
  /** Whether the runner has to note the tree first, for `changes` to tell anything. */
  readonly snapshot: boolean;
  readonly changes: (client: RunnerClient) => Promise<Changed>;
  /** What the box's own table of mounts says against this place; a line for each deviation. */
  readonly faults: (mountinfo: string) => readonly string[];
  /** After the container is gone. */
  readonly remove: () => Promise<void>;
}

/** Folders among the changes are told of only by a layer. */
export interface Changed {
  /** Ordered by path; read out anew each time. */
  readonly changes: Iterable<Change>;
  /** A part could not be read, or a bound was reached. */
  readonly incomplete: boolean;
}
