import { Buffer } from "node:buffer";
import { mkdir } from "node:fs/promises";
import path from "node:path";
import type { Readable } from "node:stream";
import type { Container } from "dockerode";
import { bytesOfText } from "../../core/text/bytes.ts";
import { EXIT, HarnessError } from "../../core/errors.ts";
import type { LayerChanges } from "../../core/layer-port.ts";
import { untar } from "../../core/text/untar.ts";
import { ownerLabels } from "../../boxes/box-labels.ts";
import { engineFailure, isMissing } from "../engine-failure.ts";
import type { Engine } from "../engine.ts";
import { SANDBOX_REPOSITORY } from "../images/image-inputs.ts";
import { thisProcess } from "../../boxes/life/owner.ts";
import { unstartedContainer } from "../unstarted-container.ts";
import { changesOfCopy, type UnpackLimits, unpack } from "../../boxes/layers/copy-changes.ts";
import { removeTree } from "../../boxes/life/workspace-folders.ts";
import type { Layer } from "../../boxes/layers/layer-record.ts";
import { notedImage, overlayVolume, requireCopy } from "./layer-volumes.ts";
import { changesOfUpper } from "../../boxes/layers/upper-changes.ts";

interface ReadOptions {
  /** Called only if the layer alone does not tell. */
  readonly engine: () => Promise<Engine>;
  readonly uid: number;
  /** A volume that already mounts the layers of an overlay. */
  readonly mounted?: string | undefined;
}

/** How a layer that no box works on differs from the current workspace. */
export async function changesOfLayer(
  layer: Layer,
  { engine, uid, mounted }: ReadOptions,
): Promise<LayerChanges> {
  if (layer.isolation === "copy") return changesInCopy(layer, { engine, uid });
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
  const { changes, incomplete } = await changesOfUpper({ lower: workspace, upper, shows });
  return { changes: [...changes], incomplete, content: upper, since: made };
}

async function changesInCopy(layer: Layer, reading: ReadOptions): Promise<LayerChanges> {
  return changesOfCopy(layer, await bringCopy(layer, reading));
}

/** Brings the tree of a copy into its layer and returns its folder. */
export async function bringCopy(
  layer: Layer,
  { engine: find, uid, most }: ReadOptions & { readonly most?: UnpackLimits },
): Promise<string> {
  const engine = await find();
  const labels = ownerLabels(uid, await thisProcess());
  const content = path.join(layer.folder, "tree");
  if (layer.volume !== null) await requireCopy(engine, { ...layer, volume: layer.volume });
  await removeTree(content);
  await mkdir(content, { mode: 0o700 });
  if (layer.volume !== null)
    await unpackVolume(
      { engine, labels, image: await anyImage(engine, undefined), most },
      layer.volume,
      content,
    );
  return content;
}

interface CopySource {
  readonly engine: Engine;
  readonly labels: Readonly<Record<string, string>>;
  /** Any image; nothing of it is run. */
  readonly image: string;
  readonly most: UnpackLimits | undefined;
}

async function unpackVolume(
  { engine, labels, image, most }: CopySource,
  volume: string,
  content: string,
): Promise<void> {
  try {
    const target = "/harness-copy/tree";
    const wanted = { image, labels, volume: { name: volume, target } };
    await using copy = await unstartedContainer(engine, wanted);
    const archive = (await copy.container.getArchive({ path: target })) as Readable;
    try {
      await unpack(archive, content, most);
    } finally {
      // There may be more after the archive's end, and a connection that waits for its reader keeps the process alive.
      archive.destroy();
    }
  } catch (thrown) {
    throw engineFailure("reading the copy", thrown);
  }
}

/** The place of the layers in a container that never starts. */
const PLACE = "/layers";

interface MergedView extends AsyncDisposable {
  /** Whether the merged layers have this path. */
  readonly shows: (path: string) => Promise<boolean>;
}

interface Layers {
  readonly folder: string;
  readonly labels: Readonly<Record<string, string>>;
  /** A volume that already mounts them. */
  readonly mounted?: string | undefined;
}

/** Asks the engine, which alone can merge the layers; no program runs. The container is made for the first question. */
function mergedViewOf(engine: Engine, layers: Layers): MergedView {
  const stack = new AsyncDisposableStack();
  const cached: { container?: ReturnType<typeof mountLayers> } = {};
  return {
    shows: async (path) => {
      const container = await (cached.container ??= mountLayers(engine, { ...layers, stack }));
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

interface MountedLayers extends Layers {
  readonly stack: AsyncDisposableStack;
}

async function mountLayers(engine: Engine, { folder, labels, mounted: there, stack }: MountedLayers) {
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
