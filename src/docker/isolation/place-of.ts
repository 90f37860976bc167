import { makeCopy } from "./copy.ts";
import { makeOverlay } from "./overlay.ts";
import type { Isolation, Place, VolumeRequest } from "./place.ts";
import { changesIn } from "../runner/files.ts";

/** Makes what the box is to work on; for `bind` that is the workspace, which is there. */
export async function placeOf(isolation: Isolation, request: VolumeRequest): Promise<Place> {
  switch (isolation) {
    case "bind":
      return {
        disk: request.workspace.path,
        snapshot: true,
        changes: changesIn,
        faults: () => [],
        remove: async () => undefined,
      };
    case "overlay":
      return makeOverlay(request);
    case "copy":
      return makeCopy(request);
  }
}
