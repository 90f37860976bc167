import { textOf } from "../../sessions/checkpoints/contents.ts";
import type { Entry } from "../../sessions/checkpoints/entry.ts";
import type { CheckpointStore } from "../../sessions/checkpoints/store.ts";
import type { ChangedPath } from "../../policy/handoff/handoff.ts";

interface Op {
  readonly path: string;
  readonly from: Entry | null;
  readonly to: Entry | null;
}

/** What the classifier wants to know of each path that would be moved. */
export const factsOf = (ops: readonly Op[], { packs }: CheckpointStore): readonly ChangedPath[] =>
  ops.map(({ path, from, to }) => {
    const isPackage = /(^|\/)package\.json$/i.test(path);
    return {
      path,
      what: to === null ? "deleted" : from === null ? "added" : "modified",
      kind: kindOf(to ?? from),
      mode: modeOf(to),
      oldMode: from?.kind === "file" ? from.mode : 0,
      ...(to?.kind === "link" ? { target: to.target } : {}),
      ...(isPackage ? { text: { before: textIn(packs, from), after: textIn(packs, to) } } : {}),
    };
  });

const kindOf = (entry: Entry | null): ChangedPath["kind"] =>
  entry === null || entry.kind === "unkept" ? "file" : entry.kind;

const modeOf = (entry: Entry | null): number | undefined =>
  entry === null || entry.kind === "link" ? undefined : entry.mode;

const textIn = (packs: CheckpointStore["packs"], entry: Entry | null): string | undefined =>
  entry?.kind === "file" ? textOf(packs, entry) : undefined;
