import { Readable } from "node:stream";
import { isMissing } from "../engine-failure.ts";
import type { Engine } from "../engine.ts";
import { shortHash } from "../images/image-inputs.ts";
import { isImageThere } from "../images/image-progress.ts";
import { topOf, unstartedContainer } from "../unstarted-container.ts";
import { ENVIRONMENT_LABEL, ENVIRONMENT_REPOSITORY, isStage, STAGE_LABEL } from "./system-layer.ts";

/** What the engine keeps of environments: volumes by the environment's id, system layers by their key. */

const STATE_LABEL = "dev.harness.environment_state";
/** The system layer that a volume belongs to: it is in use while such a volume exists, in any state folder. */
const LAYER_LABEL = "dev.harness.environment_layer";

export const imageIsThere = (engine: Engine, image: string): Promise<boolean> =>
  isImageThere(engine.api, image);

const labelled = (id: string): { label: string[] } => ({ label: [`${ENVIRONMENT_LABEL}=${id}`] });

/** The names of the volumes. */
export async function volumesOf({ api }: Engine, id: string): Promise<ReadonlySet<string>> {
  const { Volumes } = await api.listVolumes({ filters: labelled(id) });
  // The engine answers null for an empty list.
  return new Set((Volumes ?? []).map(({ Name }) => Name));
}

export interface NewVolume {
  readonly id: string;
  readonly stateDir: string;
  readonly name: string;
  /** The system layer's id; null for the sandbox image. */
  readonly layer: string | null;
  /** Any existing image; nothing of it is run. */
  readonly image: string;
  readonly owner: { readonly uid: number; readonly gid: number };
}

const TREE = "/harness-environment/tree";

/** Makes an empty volume that belongs to the user whose commands fill it. */
export async function makeVolume(
  engine: Engine,
  { id, stateDir, name, layer, image, owner }: NewVolume,
): Promise<void> {
  const labels = { [ENVIRONMENT_LABEL]: id, [STATE_LABEL]: stateDir, [LAYER_LABEL]: layer ?? "" };
  await engine.api.createVolume({ Name: name, Driver: "local", Labels: labels });
  const volume = { name, target: TREE };
  const top = topOf(engine, TREE);
  await using filler = await unstartedContainer(engine, { image, labels, volume });
  await filler.container.putArchive(Readable.from([folderArchive(top.name, owner)], { objectMode: false }), {
    path: top.path,
  });
}

const octal = (value: number, length: number): string => `${value.toString(8).padStart(length - 1, "0")}\0`;

/** A tar archive of one folder, of mode 0755. */
export function folderArchive(name: string, { uid, gid }: NewVolume["owner"]): Buffer {
  const header = Buffer.alloc(512);
  header.write(`${name}/`, 0);
  header.write(octal(0o755, 8), 100);
  header.write(octal(uid, 8), 108);
  header.write(octal(gid, 8), 116);
  header.write(octal(0, 12), 124);
  header.write(octal(0, 12), 136);
  header.write(" ".repeat(8), 148);
  header.write("5", 156);
  header.write("ustar", 257);
  header.write("00", 263);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  return Buffer.concat([header, Buffer.alloc(1024)]);
}

export async function removeVolume({ api }: Engine, name: string): Promise<void> {
  await api
    .getVolume(name)
    .remove()
    .catch((thrown: unknown) => {
      if (!isMissing(thrown)) throw thrown;
    });
}

interface MeasuredVolumes {
  readonly Volumes:
    | readonly { readonly Name: string; readonly UsageData?: { readonly Size: number } | null }[]
    | null;
}

/**
 * Sizes in bytes, by name; volumes that the engine does not measure are left out. All are left out if measuring fails,
 * as it does if a volume is removed meanwhile.
 */
export async function volumeSizes({ api }: Engine): Promise<ReadonlyMap<string, number>> {
  const { Volumes } = await (api.df() as Promise<MeasuredVolumes>).catch(() => ({ Volumes: null }));
  const known = (Volumes ?? []).filter(({ UsageData }) => (UsageData?.Size ?? -1) >= 0);
  return new Map(known.map(({ Name, UsageData }) => [Name, UsageData?.Size ?? 0]));
}

export interface SystemImage {
  readonly id: string;
  readonly tag: string;
  /** The whole size: how much of it the base image shares is not known. */
  readonly bytes: number;
}

export async function systemImages({ api }: Engine): Promise<readonly SystemImage[]> {
  const all = await api.listImages();
  return all.flatMap(({ Id, RepoTags, Size }) =>
    (RepoTags ?? [])
      .filter((tag) => tag.startsWith(`${ENVIRONMENT_REPOSITORY}:`))
      .map((tag) => ({ id: Id, tag, bytes: Size })),
  );
}

/** Images of stages that builds of this state folder left behind. */
export async function stagesOfState({ api }: Engine, stateDir: string): Promise<readonly string[]> {
  const label = [`${STAGE_LABEL}=${shortHash(stateDir)}`];
  const left = await api.listImages({ filters: { label } });
  return left.flatMap(({ RepoTags }) => RepoTags ?? []).filter(isStage);
}

/** The volumes of this state folder, whatever its records say. */
export async function volumesOfState({ api }: Engine, stateDir: string): Promise<readonly string[]> {
  const { Volumes } = await api.listVolumes({ filters: { label: [`${STATE_LABEL}=${stateDir}`] } });
  return (Volumes ?? []).map(({ Name }) => Name);
}

export async function isLayerUsed({ api }: Engine, image: string): Promise<boolean> {
  const { Volumes } = await api.listVolumes({ filters: { label: [`${LAYER_LABEL}=${image}`] } });
  return (Volumes ?? []).length > 0;
}

/** An image that a box uses stays. */
export async function removeSystemImage({ api }: Engine, tag: string): Promise<boolean> {
  return api
    .getImage(tag)
    .remove()
    .then(
      () => true,
      () => false,
    );
}
