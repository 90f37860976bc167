import { Readable } from "node:stream";
import { EXIT, HarnessError, reasonOf } from "../../core/errors.ts";
import { BOX_LABEL, keptLabels } from "../../boxes/box-labels.ts";
import { engineFailure } from "../engine-failure.ts";
import type { Engine } from "../engine.ts";
import { topOf, unstartedContainer } from "../unstarted-container.ts";
import { noteVolume } from "../../boxes/layers/layer-record.ts";
import { changesIn } from "../../boxes/runner/runner-files.ts";
import { requireCopy } from "./layer-volumes.ts";
import { makeOverlay } from "./overlay-place.ts";
import { archiveOf, refuseTooLarge, type Skipped } from "../../boxes/layers/workspace-archive.ts";
import type { VolumeRequest } from "./workspace-place.ts";
import { noteBytes } from "../../boxes/layers/hold-layer.ts";
import type { Isolation, Place } from "../../boxes/layers/place.ts";

const NO_SOURCE =
  /bind source path does not exist|mounts denied|(statfs|stat) \S.*: no such file or directory/i;
const NO_MOUNT = /failed to mount local volume|error while mounting volume|mount(ing)? .*\boverlay\b/i;

/** The error if the engine cannot give a box its workspace, with the way round it; undefined for any other failure. */
export function workspaceUnseen(
  isolation: Isolation,
  workspace: string,
  thrown: unknown,
): HarnessError | undefined {
  const reason = reasonOf(thrown);
  const failure = (message: string): HarnessError =>
    new HarnessError(EXIT.sandbox, `${message}: ${reason}`, "work on a copy: --isolation copy", thrown);
  if (isolation === "bind" && NO_SOURCE.test(reason))
    return failure(`the engine does not see ${workspace}, so it may be on another machine`);
  if (isolation === "overlay" && (NO_MOUNT.test(reason) || NO_SOURCE.test(reason)))
    return failure(`the engine cannot lay an overlay over ${workspace}`);
  return undefined;
}

/** In the container that fills the volume and never starts: the engine leaves the archive's own top folder as it is. */
const TREE = "/harness-copy/tree";

/** The workspace as a volume of the engine, wherever the engine is, filled by a tar stream. */
async function makeCopy(request: VolumeRequest): Promise<Place> {
  const { engine, layer } = request;
  const kept = layer?.volume ?? undefined;
  if (layer === null || kept === undefined) await makeVolume(request);
  else await requireCopy(engine, { ...layer, volume: kept });
  return {
    ...(kept === undefined ? {} : { volume: kept }),
    disk: engine.endpoint.host.startsWith("unix://") ? request.engineRoot : undefined,
    snapshot: true,
    changes: changesIn,
    faults: () => [],
    remove: layer === null ? () => removeVolume(request) : async () => undefined,
  };
}

async function makeVolume(request: VolumeRequest): Promise<void> {
  const { engine, workspace, volume, layer } = request;
  await refuseTooLarge(workspace.path);
  try {
    await engine.api.createVolume({ Name: volume, Driver: "local", Labels: labelsOf(request) });
    await fill(request);
    if (layer !== null) await noteVolume(layer, volume, engine.endpoint);
  } catch (thrown) {
    await removeVolume(request).catch(() => undefined);
    throw thrown instanceof HarnessError ? thrown : engineFailure("copying the workspace", thrown);
  }
}

const removeVolume = async ({ engine, volume }: VolumeRequest): Promise<void> => {
  await engine.api.getVolume(volume).remove();
};

/** A volume that outlives its box has no label of a box: it is removed when its session gives it up. */
function labelsOf({ labels, layer, stateDir }: VolumeRequest): Record<string, string> {
  if (layer === null) return { ...labels };
  const { [BOX_LABEL]: _, ...others } = labels;
  return { ...others, ...keptLabels(layer.session, stateDir) };
}

async function fill(request: VolumeRequest): Promise<void> {
  const { engine, workspace, volume, labels, image, layer, onWarning } = request;
  const skipped: Skipped[] = [];
  const size = { bytes: 0 };
  const top = topOf(engine, TREE);
  const archive = counted(
    archiveOf(workspace.path, top.name, (one) => skipped.push(one)),
    size,
  );
  await upload(engine, { image, labels, volume: { name: volume, target: TREE } }, archive, size);
  if (layer !== null) await noteBytes(layer.folder, size.bytes);
  for (const text of skippedLines(skipped)) onWarning(text);
}

async function upload(
  engine: Engine,
  into: Parameters<typeof unstartedContainer>[1],
  archive: AsyncIterable<Buffer>,
  size: { readonly bytes: number },
): Promise<void> {
  await using filler = await unstartedContainer(engine, into);
  using stalled = whenStalled(size);
  const { signal: abortSignal } = stalled;
  const body = Readable.from(archive, { objectMode: false });
  await filler.container.putArchive(body, { path: topOf(engine, TREE).path, abortSignal });
}

const STALLED_MS = 60_000;

/** Fires if nothing more was taken for a while. */
function whenStalled(size: { readonly bytes: number }): Disposable & { readonly signal: AbortSignal } {
  const controller = new AbortController();
  let lastBytes = -1;
  const timer = setInterval(() => {
    if (size.bytes === lastBytes) controller.abort(new Error("the engine stopped accepting the copy"));
    lastBytes = size.bytes;
  }, STALLED_MS).unref();
  return { signal: controller.signal, [Symbol.dispose]: () => clearInterval(timer) };
}

async function* counted(
  archive: AsyncIterable<Buffer> | Iterable<Buffer>,
  size: { bytes: number },
): AsyncGenerator<Buffer> {
  for await (const piece of archive) {
    size.bytes += piece.length;
    yield piece;
  }
}

const MOST_REPORTED = 5;

const skippedLines = (skipped: readonly Skipped[]): readonly string[] => [
  ...skipped.slice(0, MOST_REPORTED).map(({ path, why }) => `not in the copy: ${path}: ${why}`),
  ...(skipped.length > MOST_REPORTED ? [`not in the copy: ${skipped.length - MOST_REPORTED} more`] : []),
];

/** Makes what the box will work on; for `bind` that is the workspace itself. */
export function placeOf(isolation: Isolation, request: VolumeRequest): Promise<Place> {
  return MAKERS[isolation](request);
}

const MAKERS: Readonly<Record<Isolation, (request: VolumeRequest) => Promise<Place>>> = {
  bind: ({ workspace }) =>
    Promise.resolve({
      disk: workspace.path,
      snapshot: true,
      changes: changesIn,
      faults: () => [],
      remove: () => Promise.resolve(),
    }),
  overlay: makeOverlay,
  copy: makeCopy,
};
