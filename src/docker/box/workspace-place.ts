import { Readable } from "node:stream";
import { chmod, chown, lstat, mkdir, readdir, statfs, symlink } from "node:fs/promises";
import path from "node:path";
import {
  BOX_LABEL,
  keptLabels,
  makeBoxFolder,
  markFinished,
  type Owner,
  removeBoxFolder,
} from "../../boxes/box-record.ts";
import { type Engine, engineFailure } from "../engine.ts";
import {
  type Isolation,
  type Layer,
  noteVolume,
  type WorkspaceLocation,
} from "../../boxes/workspace/layer-record.ts";
import { errorCode, EXIT, HarnessError, reasonOf } from "../../core/errors.ts";
import { topOf, unstartedContainer } from "../unstarted-container.ts";
import { changesIn, FileRefused, statIn } from "../../boxes/runner-files.ts";
import { COPY_FOLDER, emptyWork, noteImage, overlayVolume, requireCopy } from "./layer-volumes.ts";
import { archiveOf, refuseTooLarge, type Skipped } from "../../boxes/workspace/workspace-archive.ts";
import { noteBytes } from "../../boxes/workspace/session-layer.ts";
import type { RunnerClient } from "../../boxes/runner-client.ts";
import { changesOfUpper } from "../../boxes/workspace/workspace-changes.ts";
import { readMountinfo } from "../../boxes/runner-report.ts";

/** For what a box works on: the workspace itself, an overlay over it, or a copy of it in a volume of the engine. */
export interface PlaceRequest {
  readonly engine: Engine;
  readonly workspace: { readonly path: string; readonly uid: number; readonly gid: number };
  readonly stateDir: string;
  readonly session: string;
  readonly owner: Owner;
  readonly volume: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Any existing image; nothing of it is run. */
  readonly image: string;
  /** The engine's data folder, as the engine reports it. */
  readonly engineRoot: string;
  /** Where changes outlive the box; null: they do not. */
  readonly layer: Layer | null;
  readonly onWarning: (text: string) => void;
}

/** Makes what the box will work on; for `bind` that is the workspace itself. */
export function placeOf(isolation: Isolation, request: PlaceRequest): Promise<WorkspaceLocation> {
  return MAKERS[isolation](request);
}

const MAKERS: Readonly<Record<Isolation, (request: PlaceRequest) => Promise<WorkspaceLocation>>> = {
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

/** The workspace as a volume of the engine, wherever the engine is, filled by a tar stream. */
async function makeCopy(request: PlaceRequest): Promise<WorkspaceLocation> {
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

async function makeVolume(request: PlaceRequest): Promise<void> {
  const { engine, workspace, volume, layer } = request;
  await refuseTooLarge(workspace.path);
  try {
    await engine.api.createVolume({ Name: volume, Driver: "local", Labels: labelsOf(request) });
    const missing = await fill(request);
    if (layer !== null) await noteVolume(layer, { volume, missing, endpoint: engine.endpoint });
  } catch (thrown) {
    await removeVolume(request).catch(() => undefined);
    throw thrown instanceof HarnessError ? thrown : engineFailure("copying the workspace", thrown);
  }
}

const removeVolume = async ({ engine, volume }: PlaceRequest): Promise<void> => {
  await engine.api.getVolume(volume).remove();
};

/** A volume that outlives its box has no label of a box: it is removed when its session gives it up. */
function labelsOf({ labels, layer, stateDir }: PlaceRequest): Record<string, string> {
  if (layer === null) return { ...labels };
  const { [BOX_LABEL]: _, ...others } = labels;
  return { ...others, ...keptLabels(layer.session, stateDir) };
}

/** The paths that are not in the copy. */
async function fill(request: PlaceRequest): Promise<readonly string[]> {
  const { engine, workspace, volume, labels, image, layer, onWarning } = request;
  const skipped: Skipped[] = [];
  const size = { bytes: 0 };
  const top = topOf(engine, COPY_FOLDER);
  const archive = countBytes(
    archiveOf(workspace.path, top.name, (one) => skipped.push(one)),
    size,
  );
  await upload(engine, { image, labels, volume: { name: volume, target: COPY_FOLDER } }, archive, size);
  if (layer !== null) await noteBytes(layer.folder, size.bytes);
  for (const text of skippedLines(skipped)) onWarning(text);
  return skipped.map((one) => one.path);
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
  await filler.container.putArchive(body, { path: topOf(engine, COPY_FOLDER).path, abortSignal });
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

async function* countBytes(
  archive: AsyncIterable<Buffer> | Iterable<Buffer>,
  size: { bytes: number },
): AsyncGenerator<Buffer> {
  for await (const piece of archive) {
    size.bytes += piece.length;
    yield piece;
  }
}

const MAX_REPORTED = 5;

const skippedLines = (skipped: readonly Skipped[]): readonly string[] => [
  ...skipped.slice(0, MAX_REPORTED).map(({ path, why }) => `not in the copy: ${path}: ${why}`),
  ...(skipped.length > MAX_REPORTED ? [`not in the copy: ${skipped.length - MAX_REPORTED} more`] : []),
];

/** The workspace as the lower layer. The box writes to the upper layer: its session's, or its own, then lost. */
async function makeOverlay(request: PlaceRequest): Promise<WorkspaceLocation> {
  const { engine, stateDir, session, owner, volume, labels } = request;
  const folder = request.layer?.folder ?? (await makeBoxFolder(stateDir, session, owner));
  try {
    await refuseFolder(folder);
    await prepareLayers(folder, request);
    await overlayVolume(engine, folder, { name: volume, labels, lower: "lower" }).catch((thrown: unknown) => {
      throw engineFailure("making the overlay", thrown);
    });
  } catch (thrown) {
    if (request.layer === null) await removeBoxFolder({ path: folder, id: session });
    throw thrown;
  }
  return overlayIn(folder, request);
}

/** An existing overlay that is mounted in a frozen container. */
export function overlayIn(folder: string, request: PlaceRequest): WorkspaceLocation {
  const { workspace } = request;
  const upper = path.join(folder, "upper");
  return {
    disk: upper,
    snapshot: false,
    // Read from the host, because the merged tree does not show what lies in the layer: whiteouts.
    changes: (client) =>
      changesOfUpper({
        lower: workspace.path,
        upper,
        shows: (file) => isShown(client, workspace.path, file),
      }),
    faults: (mountinfo) => faultsOf(mountinfo, workspace.path, path.basename(folder)),
    remove: () => removeOverlay(folder, request),
  };
}

/** Mount options are separated by commas, layers by colons; the engine cannot quote either. */
async function refuseFolder(folder: string): Promise<void> {
  const why = /[,:\\]/.test(folder)
    ? "its path holds a comma, a colon or a backslash"
    : await unfitReason(folder);
  if (why === undefined) return;
  throw new HarnessError(EXIT.sandbox, `no overlay can be kept in ${folder}: ${why}`, COPY);
}

/** Keyed by the kernel's number for each kind of file system. */
const NO_UPPER: ReadonlyMap<number, string> = new Map([
  [0x794c7630, "an overlay itself"],
  [0x6969, "NFS"],
  [0xff534d42, "SMB"],
  [0xfe534d42, "SMB"],
  [0x65735546, "FUSE"],
  [0x01021997, "9p"],
  [0x4d44, "FAT"],
  [0xf15f, "eCryptfs"],
]);

async function unfitReason(folder: string): Promise<string | undefined> {
  if (process.platform !== "linux") return "only Linux has overlays";
  const kind = NO_UPPER.get((await statfs(folder)).type);
  return kind === undefined ? undefined : `its file system is ${kind}`;
}

/** The box sees the upper layer's own folder as the workspace, so the folder gets the workspace's mode and owner. */
async function prepareLayers(folder: string, request: PlaceRequest): Promise<void> {
  const { workspace, image, layer } = request;
  const [upper, work] = [path.join(folder, "upper"), path.join(folder, "work")];
  await noteImage(folder, image);
  await symlink(workspace.path, path.join(folder, "lower")).catch((thrown: unknown) => {
    if (layer === null || errorCode(thrown) !== "EEXIST") throw thrown;
  });
  if (layer === null) {
    await Promise.all([mkdir(upper), mkdir(work)]);
    await markFinished(folder);
  } else if ((await readdir(upper)).length > 0) return;
  await chmod(upper, (await lstat(workspace.path)).mode & 0o7777);
  if (process.getuid?.() === 0)
    await Promise.all([upper, work].map((one) => chown(one, workspace.uid, workspace.gid)));
}

async function isShown(client: RunnerClient, root: string, file: string): Promise<boolean | undefined> {
  try {
    await statIn(client, `${root}/${file}`);
    return true;
  } catch (thrown) {
    if (!(thrown instanceof FileRefused)) throw thrown;
    return thrown.code === "ENOENT" ? false : undefined;
  }
}

/** A session's layer is removed when the session gives it up. */
async function removeOverlay(folder: string, request: PlaceRequest): Promise<void> {
  const { engine, volume, labels, layer, session } = request;
  await engine.api.getVolume(volume).remove();
  if (layer !== null) return;
  await emptyWork(engine, folder, labels);
  await removeBoxFolder({ path: folder, id: session });
}

/** An engine that ignores the volume's options would give the box an empty folder. */
function faultsOf(mountinfo: string, workspace: string, session: string): readonly string[] {
  const point = readMountinfo(mountinfo).points.find(({ path: at }) => at === workspace);
  const layer = point?.superOptions.find((option) => option.startsWith("upperdir="));
  if (point?.type === "overlay" && layer?.endsWith(`/${session}/upper`) === true) return [];
  return [
    `${workspace} is ${point?.type ?? "no mount"} (${layer ?? "no layer"}), planned the overlay of this box`,
  ];
}

const COPY = "work on a copy: --isolation copy";

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
    new HarnessError(EXIT.sandbox, `${message}: ${reason}`, COPY, thrown);
  if (isolation === "bind" && NO_SOURCE.test(reason))
    return failure(`the engine does not see ${workspace}, so it may be on another machine`);
  if (isolation === "overlay" && (NO_MOUNT.test(reason) || NO_SOURCE.test(reason)))
    return failure(`the engine cannot lay an overlay over ${workspace}`);
  return undefined;
}
