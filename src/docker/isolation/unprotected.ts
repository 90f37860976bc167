import path from "node:path";
import { followPointer } from "../protect/pointer.ts";
import type { Protection } from "../protect/scan.ts";
import { look } from "../protect/solid.ts";
import type { Isolation } from "./place.ts";

const NOTHING: Protection = {
  readOnly: [],
  pinned: [],
  absent: [],
  warnings: [],
  outside: [],
  complete: true,
};

/**
 * What a box over a layer or a copy needs of protection: nothing inside, as nothing inside reaches the repository
 * by itself. A git directory outside that the workspace leads to is seen through the layer's box, read-only.
 */
export async function protectOutside(
  isolation: Exclude<Isolation, "bind">,
  { path: root, uid }: { readonly path: string; readonly uid: number },
): Promise<Protection> {
  const pointer = path.join(root, ".git");
  if ((await look(pointer))?.isFile() !== true) return NOTHING;
  const lead = await followPointer(pointer, root, uid);
  const broken = (why: string): Protection => ({
    ...NOTHING,
    warnings: [`git does not work in the box: ${why}`],
  });
  switch (lead.kind) {
    case "inside":
      return NOTHING;
    case "unsafe":
      return broken(`${pointer} is not followed: ${lead.why}`);
    case "outside":
      return isolation === "overlay"
        ? { ...NOTHING, outside: [lead.mount] }
        : broken(`${lead.gitDir} lies outside the workspace and is not copied`);
  }
}
