import { Readable } from "node:stream";
import { HarnessError } from "../../core/errors.ts";
import { engineFailure } from "../failure.ts";
import { BOX_LABEL } from "../labels.ts";
import { changesIn } from "../runner/files.ts";
import { archiveOf, refuseTooLarge, type Skipped } from "./archive.ts";
import { NO_COPY } from "./layers.ts";
import type { Place, VolumeRequest } from "./place.ts";

/** In the container that fills the volume and never starts: the engine leaves the archive's own top folder as it is. */
const [ABOVE, NAME] = ["/harness-copy", "tree"];

/** On a volume that is to outlive its box. It is not labelled as a box's, so that no reaper takes it. */
const KEPT_LABEL = "dev.harness.kept";

/** The workspace as a volume of the engine's, wherever that is, filled by a tar stream. */
export async function makeCopy(request: VolumeRequest): Promise<Place> {
  const { engine, workspace, volume, keep } = request;
  await refuseTooLarge(workspace.path);
  const remove = async (): Promise<void> => {
    await engine.api.getVolume(volume).remove();
  };
  try {
    await engine.api.createVolume({ Name: volume, Driver: "local", Labels: labelsOf(request) });
    await fill(request);
  } catch (thrown) {
    await remove().catch(() => undefined);
    throw thrown instanceof HarnessError ? thrown : engineFailure("copying the workspace", thrown);
  }
  return {
    disk: engine.endpoint.host.startsWith("unix://") ? request.engineRoot : undefined,
    snapshot: true,
    changes: changesIn,
    faults: () => [],
    remove: keep ? async () => undefined : remove,
  };
}

function labelsOf({ labels, keep }: VolumeRequest): Record<string, string> {
  if (!keep) return { ...labels };
  const { [BOX_LABEL]: _, ...others } = labels;
  return { ...others, [KEPT_LABEL]: "1" };
}

async function fill({ engine, workspace, volume, labels, image, onWarning }: VolumeRequest): Promise<void> {
  const skipped: Skipped[] = [];
  const archive = archiveOf(workspace.path, NAME, (one) => skipped.push(one));
  const filler = await engine.api.createContainer({
    Image: image,
    Entrypoint: ["none"],
    Labels: { ...labels },
    NetworkDisabled: true,
    HostConfig: {
      NetworkMode: "none",
      Mounts: [{ Type: "volume", Source: volume, Target: `${ABOVE}/${NAME}`, VolumeOptions: NO_COPY }],
    },
  });
  try {
    await filler.putArchive(Readable.from(archive, { objectMode: false }), { path: ABOVE });
  } finally {
    await filler.remove({ force: true });
  }
  for (const text of told(skipped)) onWarning(text);
}

const TOLD = 5;

const told = (skipped: readonly Skipped[]): readonly string[] => [
  ...skipped.slice(0, TOLD).map(({ path, why }) => `not in the copy: ${path}: ${why}`),
  ...(skipped.length > TOLD ? [`not in the copy: ${skipped.length - TOLD} more`] : []),
];
