/** What the engine keeps of environments: volumes by the environment's id, system layers by their key. */
import { Readable } from "node:stream";
import { TAR_BLOCK, tarEnd, tarNumber, withChecksum, writeTarNumber } from "../../core/tar-archive.ts";
import { type Engine, engineFailure, isMissing } from "../engine.ts";
import { shortHash } from "../image-inputs.ts";
import { isImageThere } from "../image-progress.ts";
import { topOf, unstartedContainer } from "../unstarted-container.ts";
import {
  BLANK_LABELS,
  ENVIRONMENT_LABEL,
  ENVIRONMENT_REPOSITORY,
  isStage,
  STAGE_LABEL,
} from "./system-layer.ts";
import { RUNNER_FOLDER } from "../box-image.ts";
import type { EnvironmentRecord } from "./environment-record.ts";

const STATE_LABEL = "dev.harness.environment_state";
/** The system layer that a volume belongs to: it is in use while such a volume exists, in any state folder. */
const LAYER_LABEL = "dev.harness.environment_layer";

const labelled = (id: string): { label: string[] } => ({ label: [`${ENVIRONMENT_LABEL}=${id}`] });

/** The names of the volumes. */
export async function volumesOf({ api }: Engine, id: string): Promise<ReadonlySet<string>> {
  const { Volumes } = await api.listVolumes({ filters: labelled(id) });
  // The engine answers null for an empty list.
  return new Set((Volumes ?? []).map(({ Name }) => Name));
}

interface Owner {
  readonly uid: number;
  readonly gid: number;
}

interface NewVolume {
  readonly id: string;
  readonly stateDir: string;
  readonly name: string;
  /** The system layer's id; null for the sandbox image. */
  readonly layer: string | null;
  /** Any existing image; nothing of it is run. */
  readonly image: string;
  readonly owner: Owner;
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
  await filler.container.putArchive(streamOf([folderArchive(top.name, owner)]), { path: top.path });
}

/** A tar archive of one folder, of mode 0755. */
function folderArchive(name: string, { uid, gid }: Owner): Buffer {
  const header = Buffer.alloc(TAR_BLOCK);
  header.write(`${name}/`, 0);
  writeTarNumber(header, 100, 8, 0o755);
  writeTarNumber(header, 108, 8, uid);
  writeTarNumber(header, 116, 8, gid);
  writeTarNumber(header, 124, 12, 0);
  writeTarNumber(header, 136, 12, 0);
  header.write("5", 156);
  header.write("ustar", 257);
  header.write("00", 263);
  return Buffer.concat([withChecksum(header), tarEnd()]);
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

interface SystemImage {
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

/**
 * An environment as one image, for boxes that have no volume of this engine: the content of its volumes lies in folders
 * of the image, from which a box copies it to its place. No program runs while the image is made.
 */

const FOLDER_NAME = "environment";

/** The place in the image of the content of the volume with this number. */
export const volumeFolder = (volume: number): string => `${RUNNER_FOLDER}/${FOLDER_NAME}/${volume}`;

type BuiltEnvironment = Pick<EnvironmentRecord, "id" | "key" | "made" | "image" | "volumes">;

interface PodImageRequest {
  readonly engine: Engine;
  readonly record: BuiltEnvironment;
  /** The sandbox image: it has the runner, and it is the base of an environment without an image of its own. */
  readonly sandbox: string;
  /** The environment's own image belongs to somebody else and has no runner. */
  readonly lacksRunner: boolean;
  /** The owner of the files in the image: the box's user. */
  readonly owner: Owner;
  readonly labels: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}

/** The tag of one build: another build with the same key has other files. */
const tagOf = ({ id, made }: BuiltEnvironment): string =>
  `${tagBegin(id)}${Date.parse(made).toString(36)}-pod`;
const tagBegin = (id: string): string => `${ENVIRONMENT_REPOSITORY}:${id}-`;

/** Returns the image's tag. An existing image is reused: a push that failed left it. */
export async function podImage(wanted: PodImageRequest): Promise<string> {
  const { engine, record } = wanted;
  const tag = tagOf(record);
  if (await isImageThere(engine.api, tag)) return tag;
  try {
    await makeImage(wanted, tag);
    return tag;
  } catch (thrown) {
    wanted.signal.throwIfAborted();
    throw engineFailure("making an image of the environment", thrown);
  }
}

/** Images that were pushed, or that come from an earlier build, are of no more use here. */
export async function removePodImages(engine: Engine, id: string): Promise<void> {
  for (const { tag } of await systemImages(engine))
    if (tag.startsWith(tagBegin(id))) await removeSystemImage(engine, tag);
}

async function makeImage(wanted: PodImageRequest, tag: string): Promise<void> {
  const { engine, record, sandbox, lacksRunner, owner, labels, signal } = wanted;
  await using whole = await unstartedContainer(engine, { image: record.image ?? sandbox, labels });
  if (lacksRunner) {
    await using ours = await unstartedContainer(engine, { image: sandbox, labels });
    const runner = await ours.container.getArchive({ path: RUNNER_FOLDER });
    await whole.container.putArchive(runner, { path: RUNNER_FOLDER.replace(/\/[^/]+$/, "") });
  }
  await whole.container.putArchive(streamOf([folderArchive(FOLDER_NAME, { uid: 0, gid: 0 })]), {
    path: RUNNER_FOLDER,
  });
  for (const [at, { volume: name }] of record.volumes.entries()) {
    signal.throwIfAborted();
    const target = `/harness-environment/${at}`;
    await using from = await unstartedContainer(engine, { image: sandbox, labels, volume: { name, target } });
    const files = await from.container.getArchive({ path: target });
    await whole.container.putArchive(streamOf(belongingTo(owner, files as AsyncIterable<Buffer>)), {
      path: `${RUNNER_FOLDER}/${FOLDER_NAME}`,
    });
  }
  signal.throwIfAborted();
  const [repo, name] = tag.split(":");
  const changes = [
    ...BLANK_LABELS,
    `LABEL ${ENVIRONMENT_LABEL}=${record.key}`,
    "ENTRYPOINT []",
    'CMD ["sh"]',
  ];
  await whole.container.commit({ repo, tag: name, changes });
}

const streamOf = (parts: Iterable<Buffer> | AsyncIterable<Buffer>): Readable =>
  Readable.from(parts, { objectMode: false });

/** A tar stream in which every entry belongs to this user; everything else stays. */
export async function* belongingTo(
  { uid, gid }: Owner,
  tar: AsyncIterable<Buffer>,
): AsyncGenerator<Buffer, void> {
  let rest = Buffer.alloc(0);
  let content = 0;
  for await (const chunk of tar) {
    const data = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    let at = 0;
    while (at < data.length) {
      if (content > 0) {
        const piece = data.subarray(at, at + content);
        content -= piece.length;
        at += piece.length;
        yield piece;
        continue;
      }
      if (data.length - at < TAR_BLOCK) break;
      const header = Buffer.from(data.subarray(at, at + TAR_BLOCK));
      at += TAR_BLOCK;
      content = contentOf(header);
      yield header.every((byte) => byte === 0) ? header : withOwner(header, uid, gid);
    }
    rest = Buffer.from(data.subarray(at));
  }
  if (rest.length > 0) yield rest;
}

/** The size of the content in whole blocks. */
const contentOf = (header: Buffer): number =>
  Math.ceil(tarNumber(header.subarray(124, 136)) / TAR_BLOCK) * TAR_BLOCK;

function withOwner(header: Buffer, uid: number, gid: number): Buffer {
  writeTarNumber(header, 108, 8, uid);
  writeTarNumber(header, 116, 8, gid);
  // The names of owners would take precedence over their numbers.
  header.fill(0, 265, 329);
  return withChecksum(header);
}
