import type { ContainerInfo, ContainerStats } from "dockerode";
import { EXIT, HarnessError } from "../../core/errors.ts";
import type { ListedBox } from "../../core/ports.ts";
import {
  boxFilter,
  boxOf,
  type BoxRecord,
  isOfAnother,
  liveness,
  RUNNER_LABEL,
} from "../../boxes/box-record.ts";
import { answered, type Engine, engineFailure, isBeingRemoved, isMissing } from "../engine.ts";
import { holderOf, type ParkedState } from "./parked-boxes.ts";
import { removeUnthawed } from "./container.ts";
import { BASE_REPOSITORY } from "../base-image.ts";
import { ACCOUNT_REPOSITORY, SANDBOX_REPOSITORY } from "../image-inputs.ts";

/** The boxes of one user as people see them: listed, picked and removed, in the end with all images and volumes. */

/** The length of the ids that people see elsewhere. */
export const SHORT_ID = 12;

/** Every box of one user of this machine, running or not, the oldest first. */
export async function listBoxes(engine: Engine, uid: number): Promise<readonly ListedBox[]> {
  const found = await engine.api
    .listContainers({ all: true, filters: boxFilter(uid) })
    .catch((thrown: unknown) => {
      throw engineFailure("listing boxes", thrown);
    });
  const alive = liveness();
  const boxes = found.map(async (container): Promise<readonly ListedBox[]> => {
    const record = boxOf(container.Labels);
    if (record?.uid !== uid || (record.owner !== undefined && (await isOfAnother(record.owner)))) return [];
    const standing = await holderOf(record, container.State === "paused");
    const owner = standing?.kind === "taken" ? standing.owner : record.owner;
    const living = owner === undefined ? null : { pid: owner.pid, alive: await alive(owner) };
    const parked = standing?.kind !== "parked" ? null : parkedInfo(standing);
    return [{ ...described(container, record), owner: living, parked }];
  });
  return (await Promise.all(boxes)).flat().toSorted((a, b) => a.created.localeCompare(b.created));
}

const parkedInfo = ({
  session,
  expires,
}: Extract<ParkedState, { kind: "parked" }>): NonNullable<ListedBox["parked"]> => ({
  session,
  until: new Date(expires).toISOString(),
});

const described = (container: ContainerInfo, record: BoxRecord): Omit<ListedBox, "owner" | "parked"> => ({
  id: container.Id,
  workspace: record.workspace ?? null,
  mode: record.mode ?? null,
  isolation: record.isolation ?? null,
  created: record.created ?? new Date(container.Created * 1000).toISOString(),
  state: container.State,
});

/** Bytes that each running box uses, by id; boxes that do not say are left out. */
export async function memoryOf(
  engine: Engine,
  boxes: readonly ListedBox[],
): Promise<ReadonlyMap<string, number>> {
  const running = boxes.filter(({ state }) => state === "running");
  const used = running.map(async ({ id }): Promise<readonly (readonly [string, number])[]> => {
    const ask = engine.api.getContainer(id).stats({ stream: false, "one-shot": true });
    const bytes = await ask.then(usedBytes, () => undefined);
    return bytes === undefined ? [] : [[id, bytes]];
  });
  return new Map((await Promise.all(used)).flat());
}

/** Without the file cache, which is freed when memory is needed; cgroup v1 and v2 name it differently. */
function usedBytes({ memory_stats: memory }: ContainerStats): number | undefined {
  const details = memory?.stats as Readonly<Record<string, number>> | undefined;
  const cache = details?.["total_inactive_file"] ?? details?.["inactive_file"] ?? 0;
  return memory?.usage === undefined ? undefined : Math.max(0, memory.usage - cache);
}

/** The boxes with these ids or beginnings of ids; one that fits no box or several is a mistake. */
export function pickBoxes(boxes: readonly ListedBox[], ids: readonly string[]): readonly ListedBox[] {
  const picked = ids.map((wanted) => {
    const fits = boxes.filter(({ id }) => wanted !== "" && id.startsWith(wanted));
    const [only] = fits;
    if (only !== undefined && fits.length === 1) return only;
    const several = fits.map(({ id }) => id.slice(0, SHORT_ID)).join(", ");
    throw new HarnessError(
      EXIT.usage,
      only === undefined
        ? `no box of yours has the id ${JSON.stringify(wanted)}`
        : `${wanted} is the beginning of several ids: ${several}`,
      "harness sandbox ls",
    );
  });
  return [...new Set(picked)];
}

/** False if the box was gone already, or is being removed by another process. */
export async function removeBox(engine: Engine, id: string): Promise<boolean> {
  try {
    await removeUnthawed(engine.api.getContainer(id));
    return true;
  } catch (thrown) {
    if (isMissing(thrown) || isBeingRemoved(thrown)) return false;
    throw engineFailure(`removing the box ${id.slice(0, SHORT_ID)}`, thrown);
  }
}

/** Removes every sandbox container of one user of this machine, with their volumes; returns how many containers. */
export async function removeBoxes(engine: Engine, uid: number): Promise<number> {
  const filters = boxFilter(uid);
  const boxes = await answered((abortSignal) =>
    engine.api.listContainers({ all: true, filters, abortSignal }),
  ).catch((thrown: unknown) => {
    throw engineFailure("listing sandboxes", thrown);
  });
  const own = await ofThisMachine(boxes);
  await Promise.all(own.map(({ Id }) => removeBox(engine, Id)));
  const { Volumes } = await engine.api.listVolumes({ filters });
  // The engine answers null for an empty list.
  const volumes = await ofThisMachine(Volumes ?? []);
  await Promise.all(volumes.map(({ Name }) => engine.api.getVolume(Name).remove().catch(unlessMissing)));
  return own.length;
}

/** An engine may have boxes of several machines, with users of the same number on each. */
async function ofThisMachine<T extends { readonly Labels: Readonly<Record<string, string>> | null }>(
  things: readonly T[],
): Promise<readonly T[]> {
  const others = await Promise.all(
    things.map(async ({ Labels }) => {
      const owner = boxOf(Labels)?.owner;
      return owner !== undefined && (await isOfAnother(owner));
    }),
  );
  return things.filter((_, index) => !others[index]);
}

/** Removes the images that harness made, and the named ones; returns those that were removed. */
export async function removeImages(engine: Engine, others: readonly string[]): Promise<readonly string[]> {
  const all = await engine.api.listImages().catch((thrown: unknown) => {
    throw engineFailure("listing images", thrown);
  });
  const ours = all
    .flatMap(({ RepoTags }) => RepoTags ?? [])
    .filter(
      (tag) =>
        [ACCOUNT_REPOSITORY, SANDBOX_REPOSITORY, BASE_REPOSITORY].some((name) =>
          tag.startsWith(`${name}:`),
        ) || others.includes(tag),
    );
  for (const tag of ours) await engine.api.getImage(tag).remove({ force: true }).catch(unlessMissing);
  await removeRunners(engine);
  return ours;
}

/** Removes the volumes that bring our runner into users' images. */
async function removeRunners(engine: Engine): Promise<void> {
  const { Volumes } = await engine.api.listVolumes({ filters: { label: [RUNNER_LABEL] } });
  await Promise.all(
    (Volumes ?? []).map(({ Name }) => engine.api.getVolume(Name).remove().catch(unlessMissing)),
  );
}

function unlessMissing(thrown: unknown): void {
  if (!isMissing(thrown)) throw engineFailure("removing", thrown);
}
