import { boxFilter, boxOf, RUNNER_LABEL } from "../boxes/box-labels.ts";
import { isOfAnother } from "../boxes/life/owner.ts";
import { engineFailure, isMissing } from "./engine-failure.ts";
import { answered, type Engine } from "./engine.ts";
import { BASE_REPOSITORY } from "./images/base-image.ts";
import { ACCOUNT_REPOSITORY, SANDBOX_REPOSITORY } from "./images/image-inputs.ts";
import { removeBox } from "./life/box-list.ts";

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
  await Promise.all(volumes.map(({ Name }) => engine.api.getVolume(Name).remove().catch(unlessGone)));
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
  for (const tag of ours) await engine.api.getImage(tag).remove({ force: true }).catch(unlessGone);
  await removeRunners(engine);
  return ours;
}

/** Removes the volumes that bring our runner into users' images. */
async function removeRunners(engine: Engine): Promise<void> {
  const { Volumes } = await engine.api.listVolumes({ filters: { label: [RUNNER_LABEL] } });
  await Promise.all((Volumes ?? []).map(({ Name }) => engine.api.getVolume(Name).remove().catch(unlessGone)));
}

function unlessGone(thrown: unknown): void {
  if (!isMissing(thrown)) throw engineFailure("removing", thrown);
}
