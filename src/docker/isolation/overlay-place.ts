import { chmod, chown, lstat, mkdir, readdir, statfs, symlink } from "node:fs/promises";
import path from "node:path";
import { errorCode, EXIT, HarnessError } from "../../core/errors.ts";
import { engineFailure } from "../engine-failure.ts";
import { makeBoxFolder, markFinished, removeBoxFolder } from "../../boxes/life/workspace-folders.ts";
import type { RunnerClient } from "../../boxes/runner/runner-client.ts";
import { FileRefused, statIn } from "../../boxes/runner/runner-files.ts";
import { emptyWork, noteImage, overlayVolume } from "./layer-volumes.ts";
import { changesOfUpper } from "../../boxes/layers/upper-changes.ts";
import type { VolumeRequest } from "./workspace-place.ts";
import type { Place } from "../../boxes/layers/place.ts";
import { readMountinfo } from "../../boxes/runner/mountinfo.ts";

const COPY = "work on a copy: --isolation copy";

/** The workspace as the lower layer. The box writes to the upper layer: its session's, or its own, then lost. */
export async function makeOverlay(request: VolumeRequest): Promise<Place> {
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
export function overlayIn(folder: string, request: VolumeRequest): Place {
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
async function prepareLayers(folder: string, request: VolumeRequest): Promise<void> {
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
async function removeOverlay(folder: string, request: VolumeRequest): Promise<void> {
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
