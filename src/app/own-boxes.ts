import type { BoxLog } from "../core/run-record.ts";
import { EXIT, HarnessError } from "../core/errors.ts";
import { type ExecResult, isUnstarted, type ListedBox, type OwnedBox } from "../core/ports.ts";
import { listBoxes, memoryOf, pickBoxes, removeBox, SHORT_ID } from "../docker/box/box-list.ts";
import { reap } from "../docker/box/reap.ts";
import { dropFrozen, requireEngine } from "./box-access.ts";
import { type Host, packageRoot } from "./host.ts";
import { namedCluster } from "./named-engine.ts";

/** What a user does with boxes and their image, without a model. */

export const shortId = (id: string): string => id.slice(0, SHORT_ID);

/** The boxes of this user, oldest first; with `memory`, also the memory that each one uses. */
export async function ownBoxes(host: Host, { memory }: { readonly memory: boolean }) {
  const cluster = await namedCluster(host);
  if (cluster !== undefined) {
    const boxes = await (await import("./pod-access.ts")).ownPods(host, cluster);
    return { boxes, memory: memory && boxes.length > 0 ? new Map<string, number>() : undefined };
  }
  const engine = await requireEngine(host);
  const boxes = await listBoxes(engine, host.uid);
  return { boxes, memory: memory && boxes.length > 0 ? await memoryOf(engine, boxes) : undefined };
}

export interface RemovedBoxes {
  readonly removed: readonly ListedBox[];
  /** The first failed removal, as thrown. */
  readonly failure: PromiseRejectedResult | undefined;
  /** Removes what dead runs have left; returns what stays, and why. */
  readonly sweep: () => Promise<{ readonly kept: readonly Leftover[]; readonly failed: readonly Leftover[] }>;
}

type Leftover = Pick<Awaited<ReturnType<typeof reap>>["kept"][number], "id" | "reason"> & {
  readonly kind: string;
};

/** Removes boxes by their ids, all boxes, or those of dead runs. */
export async function removeOwnBoxes(
  host: Host,
  which: readonly string[] | "all" | "dead",
): Promise<RemovedBoxes> {
  const { boxes, remove, sweep } = await placeOf(host);
  const chosen =
    which === "all"
      ? boxes
      : which === "dead"
        ? boxes.filter(({ owner, parked }) => owner?.alive === false && parked === null)
        : pickBoxes(boxes, which);
  const ended = await Promise.allSettled(
    chosen.map(async ({ id, parked }) => {
      await remove(id);
      if (parked !== null) await dropFrozen(host, parked.session);
    }),
  );
  return {
    removed: chosen.filter((_, index) => ended[index]?.status === "fulfilled"),
    failure: ended.find((one) => one.status === "rejected"),
    sweep,
  };
}

interface Place {
  readonly boxes: readonly ListedBox[];
  readonly remove: (id: string) => Promise<unknown>;
  readonly sweep: RemovedBoxes["sweep"];
}

/** Where the user's boxes are: on a container engine, or in a cluster. */
async function placeOf(host: Host): Promise<Place> {
  const cluster = await namedCluster(host);
  if (cluster !== undefined) {
    const { ownPods, removePod, sweepPods } = await import("./pod-access.ts");
    return {
      boxes: await ownPods(host, cluster),
      remove: (id) => removePod(host, cluster, id),
      sweep: async () => ({ kept: [], failed: await sweepPods(host, cluster) }),
    };
  }
  const engine = await requireEngine(host);
  return {
    boxes: await listBoxes(engine, host.uid),
    remove: (id) => removeBox(engine, id),
    sweep: () => reap(engine, { uid: host.uid, stateDir: host.places.state }),
  };
}

interface ImageBuild {
  readonly rebuild: boolean;
  readonly onLine: (line: string) => void;
}

/** Returns the build of the sandbox image; an image of the same inputs is reused unless `rebuild` is set. */
export async function buildImage(host: Host, { rebuild, onLine }: ImageBuild) {
  const [engine, { ensureImage }] = await Promise.all([
    requireEngine(host),
    import("../docker/box-image.ts"),
  ]);
  const request = { root: packageRoot, cache: host.places.cache, env: host.env, onLine };
  return (signal: AbortSignal) => ensureImage(engine, { ...request, signal }, rebuild);
}

/** The result and changes of a command, as `sandbox exec --json` prints them. */
export async function execAnswer(
  result: ExecResult,
  changes: Awaited<ReturnType<OwnedBox["changes"]>>,
  log: BoxLog,
  workspace: string,
) {
  const [{ stillThere, boxLogReport }, { execJson }, { causeOf }] = await Promise.all([
    import("../agent/ending/run-changes.ts"),
    import("../render/exec-json.ts"),
    import("../tools/shell-command.ts"),
  ]);
  const { handoff: _, ...told } = boxLogReport(log, workspace);
  const plain = execJson(result, changes, told);
  // The cause as a run names it: the box itself notices neither a full disk nor a host name that does not resolve.
  const answer = isUnstarted(result)
    ? plain
    : { ...plain, cause: causeOf(result, `${plain.stdout}\n${plain.stderr}`).cause };
  return { ...answer, changes: stillThere(answer.changes, log, workspace) };
}

/** `sandbox exec` and `shell` exit with their command's code, so a missing or lost box has an exit code of its own. */
export function asNoBox(thrown: unknown, json: boolean): never {
  if (!json && thrown instanceof HarnessError && thrown.exit === EXIT.sandbox)
    throw new HarnessError(EXIT.noBox, thrown.message, thrown.remedy, thrown);
  throw thrown;
}
