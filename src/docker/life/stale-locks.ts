import { unlink } from "node:fs/promises";
import path from "node:path";
import { filesIn, locksIn, ownerOf } from "./lock-files.ts";
import { liveness } from "./owner.ts";

/** Locks of the dead. They count for nothing, and are removed so that they do not pile up. */
export async function staleLocks(
  stateDir: string,
): Promise<readonly { readonly id: string; readonly remove: () => Promise<void> }[]> {
  const folder = locksIn(stateDir);
  const alive = liveness();
  const stale = (await filesIn(folder)).map(async (file) => {
    const owner = ownerOf(file)?.owner;
    return owner === undefined || (await alive(owner))
      ? []
      : [{ id: file, remove: () => unlink(path.join(folder, file)) }];
  });
  return (await Promise.all(stale)).flat();
}
