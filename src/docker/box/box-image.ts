import { EXIT, HarnessError } from "../../core/errors.ts";
import { visible } from "../../core/text/visible.ts";
import { RUNNER_LABEL } from "../../boxes/box-labels.ts";
import type { BoxPlan } from "../container-spec.ts";
import { engineFailure, isMissing } from "../engine-failure.ts";
import { type Engine, isPodman } from "../engine.ts";
import { quoted } from "../environments/dockerfile-words.ts";
import { wantedImage } from "../images/build-image.ts";
import { topOf, unstartedContainer } from "../unstarted-container.ts";

/** What a box starts from: an image by its id, and the source of its runner. */
export interface BoxImage {
  readonly id: string;
  readonly volumes: BoxPlan["volumes"];
}

export const RUNNER_FOLDER = "/usr/local/lib/harness";
export const RUNNER = `${RUNNER_FOLDER}/runner`;

/** Our own image, or the user's with our runner mounted into it. Neither image is run to find out. */
export async function boxImage(engine: Engine, root: string, own: string | null): Promise<BoxImage> {
  const { tag } = await wantedImage(engine, root);
  const ours = await inspect(engine, tag);
  if (ours === undefined) throw notBuilt(tag);
  if (own === null) return { id: ours.Id, volumes: [] };
  const theirs = await inspect(engine, own);
  if (theirs === undefined) throw new AbsentImage(engine, own);
  refuseVolumes(own, Object.keys(theirs.Config.Volumes ?? {}));
  if (theirs.Architecture !== ours.Architecture)
    throw refuse(own, `is for ${theirs.Architecture}, but this engine runs ${ours.Architecture}`);
  const volume = await runnerVolume(engine, tag);
  return { id: theirs.Id, volumes: [{ volume, target: RUNNER_FOLDER }] };
}

interface Image {
  readonly Id: string;
  readonly Architecture: string;
  readonly Config: { readonly Volumes?: Readonly<Record<string, object>> | null };
}

async function inspect(engine: Engine, name: string): Promise<Image | undefined> {
  try {
    return await engine.api.getImage(name).inspect();
  } catch (thrown) {
    if (isMissing(thrown)) return undefined;
    throw engineFailure(`looking for the image ${name}`, thrown);
  }
}

const notBuilt = (tag: string): HarnessError =>
  new HarnessError(EXIT.sandbox, `the sandbox image ${tag} is not built`, "harness sandbox build");

/** A named image that the engine does not have. */
export class AbsentImage extends HarnessError {
  readonly image: string;

  constructor(engine: Engine, image: string) {
    const shown = visible(image);
    // The name may come from a repository's Dockerfile, and a person types this command.
    const pull = `${isPodman(engine) ? "podman" : "docker"} pull ${quoted(shown)}`;
    super(EXIT.sandbox, `the image ${shown} is not on this engine`, pull);
    this.image = shown;
  }
}

const refuse = (name: string, why: string): HarnessError =>
  new HarnessError(EXIT.sandbox, `the image ${name} ${why}`, "harness config set image null");

function refuseVolumes(name: string, volumes: readonly string[]): void {
  if (volumes.length === 0) return;
  throw refuse(name, `declares volumes (${volumes.join(", ")}): what is written there would have no limit`);
}

/**
 * The runner of our image as a volume. Docker fills the volume when it creates the first container that mounts it;
 * Podman only when such a container starts, and none of ours does.
 */
async function runnerVolume(engine: Engine, tag: string): Promise<string> {
  const name = tag.replace(":", "-runner-");
  try {
    if (await isFilled(engine, name)) return name;
    await engine.api.createVolume({ Name: name, Labels: { [RUNNER_LABEL]: tag } });
    if (isPodman(engine)) {
      await copyRunner(engine, tag, name);
      return name;
    }
    const Mounts = [{ Type: "volume", Source: name, Target: RUNNER_FOLDER }] as const;
    const filler = await engine.api.createContainer({
      Image: tag,
      Labels: { [RUNNER_LABEL]: name },
      HostConfig: { Mounts: [...Mounts], NetworkMode: "none" },
    });
    await filler.remove({ force: true });
    return name;
  } catch (thrown) {
    throw engineFailure("preparing the runner for another image", thrown);
  }
}

async function copyRunner(engine: Engine, tag: string, name: string): Promise<void> {
  const filling = { image: tag, labels: { [RUNNER_LABEL]: name } };
  await using ours = await unstartedContainer(engine, filling);
  await using filler = await unstartedContainer(engine, {
    ...filling,
    volume: { name, target: RUNNER_FOLDER },
  });
  const archive = await ours.container.getArchive({ path: `${RUNNER_FOLDER}/.` });
  await filler.container.putArchive(archive, { path: topOf(engine, RUNNER_FOLDER).path });
}

/** A volume is filled while a container is created. Without a leftover container of that step it is complete. */
async function isFilled(engine: Engine, name: string): Promise<boolean> {
  const [volumes, fillers] = await Promise.all([
    engine.api.listVolumes({ filters: { name: [name] } }),
    engine.api.listContainers({ all: true, filters: { label: [`${RUNNER_LABEL}=${name}`] } }),
  ]);
  const there = (volumes.Volumes ?? []).some(({ Name }) => Name === name);
  return there && fillers.length === 0;
}
