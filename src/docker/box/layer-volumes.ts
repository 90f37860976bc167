import { mkdir, readFile, rmdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { Buffer } from "node:buffer";
import type { Readable } from "node:stream";
import type { Container, VolumeInspectInfo } from "dockerode";
import { allLayers, type FoundLayer, type Layer, noteLeftOut } from "../../boxes/workspace/layer-record.ts";
import { errorCode, EXIT, HarnessError } from "../../core/errors.ts";
import { type Engine, engineFailure, isMissing, unlessGone } from "../engine.ts";
import { unstartedContainer } from "../unstarted-container.ts";
import { makeFolder } from "../../platform/folders.ts";
import { bytesOfText } from "../../core/raw-data.ts";
import { untar } from "../../core/tar-archive.ts";
import type { LayerChanges } from "../../core/ports.ts";
import { liveness, ownerLabels, ownerOfKept, removeTree, thisProcess } from "../../boxes/box-record.ts";
import { SANDBOX_REPOSITORY } from "../image-inputs.ts";
import {
  changesOfCopy,
  changesOfUpper,
  closeAgain,
  type OpenedFolder,
} from "../../boxes/workspace/workspace-changes.ts";
import { type ArchiveLimits, unpack } from "../../boxes/workspace/workspace-archive.ts";

/**
 * What a session works on while no box does: the layers of an overlay, which the engine mounts as a volume, and the
 * volume of a copy. Their changes are read, and what was given up is removed.
 */

type Labels = Readonly<Record<string, string>>;

interface ReadOptions {
  /** Called only if the layer alone does not tell. */
  readonly engine: () => Promise<Engine>;
  readonly uid: number;
  /** A volume that already mounts the layers of an overlay. */
  readonly mounted?: string | undefined;
}

/**
 * How a layer that no box works on differs from the current workspace. Folders that its commands closed are open until
 * this is disposed of.
 */
export async function changesOfLayer(
  layer: Layer,
  { engine, uid, mounted }: ReadOptions,
): Promise<LayerChanges & Disposable> {
  if (layer.isolation === "copy") {
    const changes = await changesOfCopy(layer, await bringCopy(layer, { engine, uid }));
    return { ...changes, [Symbol.dispose]: () => undefined };
  }
  const { folder, workspace, made } = layer;
  const upper = path.join(folder, "upper");
  await using stack = new AsyncDisposableStack();
  const cached: { shown?: Promise<ReturnType<typeof mergedViewOf>> } = {};
  const open = async () => {
    const labels = ownerLabels(uid, await thisProcess());
    return stack.use(mergedViewOf(await engine(), { folder, labels, mounted }));
  };
  const shows = async (file: string): Promise<boolean | undefined> =>
    (await (cached.shown ??= open())).shows(file);
  const opened: OpenedFolder[] = [];
  const close = (): void => closeAgain(upper, opened);
  try {
    const layers = { lower: workspace, upper, shows };
    // Nothing is changed in the layers of a box that will continue.
    const { changes, incomplete } = await changesOfUpper(
      mounted === undefined ? { ...layers, opened } : layers,
    );
    return { changes: [...changes], incomplete, content: upper, since: made, [Symbol.dispose]: close };
  } catch (thrown) {
    close();
    throw thrown;
  }
}

/** Brings the tree of a copy into its layer and returns its folder. */
export async function bringCopy(
  layer: Layer,
  { engine: find, uid, most }: ReadOptions & { readonly most?: ArchiveLimits },
): Promise<string> {
  const engine = await find();
  const labels = ownerLabels(uid, await thisProcess());
  const content = path.join(layer.folder, "tree");
  if (layer.volume !== null) await requireCopy(engine, { ...layer, volume: layer.volume });
  await removeTree(content);
  await mkdir(content, { mode: 0o700 });
  if (layer.volume === null) return content;
  const image = await anyImage(engine, undefined);
  const volume = { name: layer.volume, target: COPY_FOLDER };
  try {
    await using copy = await unstartedContainer(engine, { image, labels, volume });
    const archive = (await copy.container.getArchive({ path: COPY_FOLDER })) as Readable;
    try {
      await noteLeftOut(layer.folder, await unpack(archive, content, most));
    } finally {
      // There may be more after the archive's end, and a connection that waits for its reader keeps the process alive.
      archive.destroy();
    }
  } catch (thrown) {
    throw engineFailure("reading the copy", thrown);
  }
  return content;
}

interface MergedView extends AsyncDisposable {
  /** Whether the merged layers have this path. */
  readonly shows: (path: string) => Promise<boolean>;
}

interface Layers extends Pick<ReadOptions, "mounted"> {
  readonly folder: string;
  readonly labels: Labels;
}

/** Asks the engine, which alone can merge the layers; no program runs. The container is made for the first question. */
function mergedViewOf(engine: Engine, layers: Layers): MergedView {
  const stack = new AsyncDisposableStack();
  const cached: { container?: ReturnType<typeof mountLayers> } = {};
  return {
    shows: async (path) => {
      const container = await (cached.container ??= mountLayers(engine, layers, stack));
      if (!path.isWellFormed()) return isListed(container, path);
      try {
        const answer = (await container.infoArchive({ path: `${PLACE}/${path}` })) as NodeJS.ReadableStream;
        answer.resume();
        return true;
      } catch (thrown) {
        if (isMissing(thrown)) return false;
        // The engine cannot look up a link that leads to itself.
        return isListed(container, path).catch(() => {
          throw engineFailure("looking into the layer", thrown);
        });
      }
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

/** The engine takes no path that is not text, but its archives hold such names, and links as they are. */
async function isListed(container: Container, path: string): Promise<boolean> {
  const names = path.split("/");
  const first = names.findIndex((name) => !name.isWellFormed());
  const odd = first === -1 ? names.length - 1 : first;
  const from = [PLACE, ...names.slice(0, odd)].join("/");
  const wanted = bytesOfText(names.slice(odd).join("/"));
  const archive = (await container.getArchive({ path: from })) as Readable;
  try {
    for await (const entry of untar(archive)) {
      if (Buffer.isBuffer(entry)) continue;
      const slash = entry.name.indexOf("/");
      if (slash !== -1 && trimmed(entry.name.subarray(slash + 1)).equals(wanted)) return true;
    }
    return false;
  } finally {
    archive.destroy();
  }
}

const trimmed = (name: Buffer): Buffer => (name.at(-1) === 0x2f ? name.subarray(0, -1) : name);

async function mountLayers(
  engine: Engine,
  { folder, labels, mounted: there }: Layers,
  stack: AsyncDisposableStack,
) {
  const name = there ?? (await overlayVolume(engine, folder, { labels, lower: "lower" }));
  if (there === undefined) stack.defer(() => engine.api.getVolume(name).remove());
  const image = await anyImage(engine, await notedImage(folder));
  const volume = { name, target: PLACE };
  return stack.use(await unstartedContainer(engine, { image, labels, volume })).container;
}

/** The noted image may have been removed since; nothing of the image is run. */
async function anyImage(engine: Engine, noted: string | undefined): Promise<string> {
  const there =
    noted === undefined
      ? undefined
      : await engine.api
          .getImage(noted)
          .inspect()
          .catch(() => undefined);
  if (noted !== undefined && there !== undefined) return noted;
  const images = await engine.api.listImages();
  const ours = images.find(({ RepoTags }) =>
    RepoTags?.some((tag) => tag.startsWith(`${SANDBOX_REPOSITORY}:`)),
  );
  if (ours !== undefined) return ours.Id;
  throw new HarnessError(
    EXIT.sandbox,
    "reading the session's changes requires the sandbox image",
    "harness setup",
  );
}

/** One user of this machine, and one state folder of theirs. */
export interface UserState {
  readonly uid: number;
  readonly stateDir: string;
}

export interface Leftover {
  readonly id: string;
  readonly remove: () => Promise<unknown>;
}

/** Longer than making any layer takes. */
const BEGUN_MS = 3_600_000;

/** Layers that were given up, or never finished being made. */
export async function layersToRemove(
  engine: Engine,
  { uid, stateDir }: UserState,
): Promise<readonly Leftover[]> {
  const found = await allLayers(stateDir);
  const here = ({ at }: FoundLayer): boolean => at === undefined || at === engine.endpoint.host;
  // A copy on another engine is removed when that engine is asked next: no other engine knows of it.
  return found
    .filter((each) => isDone(each) && here(each))
    .map((each) => ({
      id: path.basename(each.folder),
      remove: () => removeLayer(engine, uid, each),
    }));
}

/** What cannot be removed now is left to the next box. */
export async function clearGivenUp(engine: Engine, of: UserState): Promise<void> {
  const all = await layersToRemove(engine, of).catch(() => []);
  await Promise.all(all.map(({ remove }) => remove().catch(() => undefined)));
}

const isDone = ({ state, changed }: FoundLayer): boolean =>
  state === "given-up" || (state === "begun" && Date.now() - changed > BEGUN_MS);

/** The folder goes last: only it knows of the volume. */
async function removeLayer(
  engine: Engine,
  uid: number,
  { folder, volume, engine: kind }: FoundLayer,
): Promise<void> {
  if (kind !== undefined) return removeTree(folder);
  if (volume !== null) await engine.api.getVolume(volume).remove().catch(unlessGone);
  else await emptyWork(engine, folder, ownerLabels(uid)).catch(unlessGone);
  await removeTree(folder);
}

/** Copies of dead runs that no layer of this state folder knows: the runs were killed before the copy was complete. */
export async function copiesToRemove(
  engine: Engine,
  volumes: readonly VolumeInspectInfo[],
  stateDir: string,
): Promise<readonly Leftover[]> {
  const known = new Set((await allLayers(stateDir)).map(({ volume }) => volume));
  const alive = liveness();
  const left: Leftover[] = [];
  for (const { Name, Labels } of volumes) {
    const owner = ownerOfKept(Labels, stateDir);
    if (known.has(Name) || owner === undefined || (await alive(owner))) continue;
    left.push({ id: Name, remove: () => engine.api.getVolume(Name).remove() });
  }
  return left;
}

interface VolumeWanted {
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

const notedImage = (folder: string): Promise<string> => readFile(path.join(folder, "image"), "utf8");

/**
 * The places of a copy, and of the layers of an overlay, in containers that never start. The engine leaves the top folder
 * of an archive that it unpacks as it is, so a copy is not at the top of its place.
 */
export const COPY_FOLDER = "/harness-copy/tree";
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
