import { EXIT, HarnessError, reasonOf } from "../../core/errors.ts";
import type { Isolation } from "./place.ts";

const NO_SOURCE =
  /bind source path does not exist|mounts denied|(statfs|stat) \S.*: no such file or directory/i;
const NO_MOUNT = /failed to mount local volume|error while mounting volume|mount(ing)? .*\boverlay\b/i;

/** What the engine says when it cannot give a box its workspace, with the way round it; undefined for all else. */
export function unseen(isolation: Isolation, workspace: string, thrown: unknown): HarnessError | undefined {
  const reason = reasonOf(thrown);
  const failure = (message: string): HarnessError =>
    new HarnessError(EXIT.sandbox, `${message}: ${reason}`, "work on a copy: --isolation copy", thrown);
  if (isolation === "bind" && NO_SOURCE.test(reason))
    return failure(`the engine does not see ${workspace}, so it may be on another machine`);
  if (isolation === "overlay" && (NO_MOUNT.test(reason) || NO_SOURCE.test(reason)))
    return failure(`the engine cannot lay an overlay over ${workspace}`);
  return undefined;
}
