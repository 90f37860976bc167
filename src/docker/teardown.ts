import { engineFailure, isMissing } from "./failure.ts";
import { answered, type Engine } from "./engine.ts";
import { SANDBOX_REPOSITORY } from "./images/inputs.ts";
import { BASE_REPOSITORY } from "./images/base.ts";
import { BOX_LABEL, UID_LABEL } from "./labels.ts";

/** Removes every sandbox container of one user; answers how many there were. */
export async function removeBoxes(engine: Engine, uid: number): Promise<number> {
  const label = [`${BOX_LABEL}=1`, `${UID_LABEL}=${uid}`];
  const boxes = await answered((abortSignal) =>
    engine.api.listContainers({ all: true, filters: { label }, abortSignal }),
  ).catch((thrown: unknown) => {
    throw engineFailure("listing sandboxes", thrown);
  });
  await Promise.all(
    boxes.map(({ Id }) => engine.api.getContainer(Id).remove({ force: true, v: true }).catch(unlessGone)),
  );
  return boxes.length;
}

/** Removes the images that harness made, and those named; answers the ones that went. */
export async function removeImages(engine: Engine, others: readonly string[]): Promise<readonly string[]> {
  const all = await engine.api.listImages().catch((thrown: unknown) => {
    throw engineFailure("listing images", thrown);
  });
  const ours = all
    .flatMap(({ RepoTags }) => RepoTags ?? [])
    .filter(
      (tag) =>
        [SANDBOX_REPOSITORY, BASE_REPOSITORY].some((name) => tag.startsWith(`${name}:`)) ||
        others.includes(tag),
    );
  for (const tag of ours) await engine.api.getImage(tag).remove({ force: true }).catch(unlessGone);
  return ours;
}

function unlessGone(thrown: unknown): void {
  if (!isMissing(thrown)) throw engineFailure("removing", thrown);
}
