import { makeCopy } from "./copy.ts";
import { makeOverlay } from "./overlay.ts";
import type { Isolation, Place, VolumeRequest } from "./place.ts";
import { changesIn } from "../runner/files.ts";

/** Makes what the box is to work on; for `bind` that is the workspace, which is there. */
export function placeOf(isolation: Isolation, request: VolumeRequest): Promise<Place> {
  return MAKERS[isolation](request);
}

const MAKERS: Readonly<Record<Isolation, (request: VolumeRequest) => Promise<Place>>> = {
  bind: ({ workspace }) =>
    Promise.resolve({
      disk: workspace.path,
      snapshot: true,
      changes: changesIn,
      faults: () => [],
      remove: () => Promise.resolve(),
    }),
  overlay: makeOverlay,
  copy: makeCopy,
};
