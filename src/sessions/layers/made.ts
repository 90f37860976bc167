import type { LayerChanges } from "../../core/layer.ts";
import type { ContentReader } from "../checkpoints/content.ts";
import { type Entry, sameEntry } from "../checkpoints/entry.ts";
import type { CheckpointStore } from "../checkpoints/store.ts";
import { baseOf } from "./base.ts";
import { standingAt, isPassedOver } from "../checkpoints/passed-over.ts";

/** What a session has made of a path in its layer, from what was there when it began. */
export interface Made {
  readonly path: string;
  readonly base: Entry | undefined;
  readonly after: Entry | undefined;
  /** Somebody changed it since, and what it was like when the session began is not known any more. */
  readonly unsure: boolean;
}

/** File systems count time coarsely. */
const COARSE_MS = 20;

/** By path, contents put by. What is as it was when the session began is no change. */
export function madeIn(
  store: CheckpointStore,
  reader: ContentReader,
  { session, layer }: { readonly session: string; readonly layer: LayerChanges },
): readonly Made[] {
  const base = baseOf(store, session);
  // A folder that became a file is among them twice; what it is now comes last.
  const made = new Map<string, Made>();
  for (const { path, what } of layer.changes) {
    const after = what === "deleted" ? undefined : standingAt(reader, layer.content, path)?.entry;
    made.set(path, { path, after, ...before(path) });
  }
  store.packs.flush();
  return [...made.values()].filter((each) => each.unsure || !sameEntry(each.base, each.after));

  function before(path: string): Pick<Made, "base" | "unsure"> {
    const known = base?.get(path);
    if (known !== undefined) return { base: known, unsure: false };
    if (base !== undefined && !isPassedOver(path)) return { base: undefined, unsure: false };
    const now = standingAt(reader, store.workspace, path);
    return now === undefined || now.changed < layer.since - COARSE_MS
      ? { base: now?.entry, unsure: false }
      : { base: undefined, unsure: true };
  }
}
