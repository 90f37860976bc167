import { readFile, rmdir, writeFile } from "node:fs/promises";
import path from "node:path";
import type { Layer } from "../../boxes/layers/layer-record.ts";
import { errorCode, EXIT, HarnessError } from "../../core/errors.ts";
import { engineFailure, isMissing } from "../engine-failure.ts";
import type { Engine } from "../engine.ts";
import { unstartedContainer } from "../unstarted-container.ts";
import { makeFolder } from "../../platform/folders.ts";

type Labels = Readonly<Record<string, string>>;

export interface VolumeWanted {
  /** Left out, the engine chooses a name. */
  readonly name?: string;
  readonly labels: Labels;
  /** The name of the lower layer in the folder. */
  readonly lower: string;
}

/**
 * A volume that the engine mounts when a container with it starts, and unmounts when the container ends. Without
 * redirects a renamed folder is a new one with its content, so that the upper layer alone tells what changed.
 */
export async function overlayVolume(engine: Engine, folder: string, wanted: VolumeWanted): Promise<string> {
  const { name, labels, lower } = wanted;
  const layer = (part: string): string => path.join(folder, part);
  const options = [
    `lowerdir=${layer(lower)},upperdir=${layer("upper")},workdir=${layer("work")}`,
    "redirect_dir=nofollow,index=off,metacopy=off",
  ];
  const volume = await engine.api.createVolume({
    ...(name === undefined ? {} : { Name: name }),
    Driver: "local",
    DriverOpts: { type: "overlay", device: "overlay", o: options.join(",") },
    Labels: { ...labels },
  });
  return volume.name;
}

/**
 * Called before a copy is mounted: for a missing copy the engine would make an empty one of that name, as if all of it
 * had been deleted.
 */
export async function requireCopy(
  { api, endpoint }: Engine,
  { session, volume, at, context }: Pick<Layer, "session" | "at" | "context"> & { readonly volume: string },
): Promise<void> {
  try {
    await api.getVolume(volume).inspect();
  } catch (thrown) {
    if (!isMissing(thrown)) throw engineFailure("looking for the copy", thrown);
    if (at !== undefined && at !== endpoint.host)
      throw new HarnessError(
        EXIT.usage,
        `the changes of the session ${session} are in a copy on the engine at ${at}, but the one at ${endpoint.host} was asked`,
        `use --engine ${context ?? at}`,
        thrown,
      );
    throw new HarnessError(
      EXIT.sandbox,
      `the copy that the session ${session} has worked on is gone: the engine at ${endpoint.host} has no volume ${volume}`,
      `${at === undefined ? "name the engine that has it: --engine ADDRESS; or " : ""}discard it: harness sessions rm ${session}`,
      thrown,
    );
  }
}

/** Notes an image for a container that only mounts these layers again. */
export const noteImage = (folder: string, image: string): Promise<void> =>
  writeFile(path.join(folder, "image"), image, { mode: 0o600 });

export const notedImage = (folder: string): Promise<string> => readFile(path.join(folder, "image"), "utf8");

/** The place of the layers in a container that never starts. */
const PLACE = "/layers";

/**
 * The kernel keeps a root-owned folder in `work`, and only root can remove what a deletion leaves in it. The kernel
 * empties that folder whenever the layers are mounted, so this asks for a mount, with nothing below; no program runs.
 */
export async function emptyWork(engine: Engine, folder: string, labels: Labels): Promise<void> {
  const inner = path.join(folder, "work", "work");
  if (!(await isStuck(inner))) return;
  const image = await notedImage(folder);
  const none = path.join(folder, "none");
  makeFolder(none, 0o777);
  const name = await overlayVolume(engine, folder, { labels, lower: "none" });
  try {
    await mountOnce(engine, { image, labels, name });
  } finally {
    await engine.api.getVolume(name).remove();
  }
  await Promise.all([rmdir(inner), rmdir(none)]);
}

async function mountOnce(
  engine: Engine,
  { image, labels, name }: { readonly image: string; readonly labels: Labels; readonly name: string },
): Promise<void> {
  await using mounted = await unstartedContainer(engine, { image, labels, volume: { name, target: PLACE } });
  const answer = (await mounted.container.infoArchive({ path: PLACE })) as NodeJS.ReadableStream;
  answer.resume();
}

async function isStuck(inner: string): Promise<boolean> {
  try {
    await rmdir(inner);
    return false;
  } catch (thrown) {
    return errorCode(thrown) === "ENOTEMPTY" && process.getuid?.() !== 0;
  }
}
