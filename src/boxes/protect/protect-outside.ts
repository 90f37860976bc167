import path from "node:path";
import type { Isolation } from "../layers/place.ts";
import { followPointer } from "./git-pointer.ts";
import { NOTHING, type Protection, reachedIn } from "./scan.ts";
import { look } from "./solid.ts";

/**
 * The protection of a box over a layer or a copy. Nothing inside is protected, because nothing inside reaches the
 * repository by itself, and a socket or FIFO of the lower layer leads to nobody. A git directory outside that the
 * workspace leads to is visible through the layer's box, read-only and at its own path: what could be reached there is
 * covered.
 */
export async function protectOutside(
  isolation: Exclude<Isolation, "bind">,
  { path: root, uid, gid }: { readonly path: string; readonly uid: number; readonly gid: number },
  signal?: AbortSignal,
): Promise<Protection> {
  const pointer = path.join(root, ".git");
  if ((await look(pointer))?.isFile() !== true) return NOTHING;
  const lead = await followPointer(pointer, root, uid);
  if (lead.kind === "inside") return NOTHING;
  if (lead.kind === "unsafe") return broken(`${pointer} is not followed: ${lead.why}`);
  if (isolation === "overlay") {
    const outside = [lead.mount];
    return {
      ...NOTHING,
      outside,
      ...(await reachedIn(root, [], { away: outside, top: { uid, gid }, signal })),
    };
  }
  return broken(`${lead.gitDir} lies outside the workspace and is not copied`);
}

/** Protects nothing, and says why git sees no repository. */
export const broken = (why: string): Protection => ({
  ...NOTHING,
  warnings: [`git does not work in the box: ${why}`],
});
