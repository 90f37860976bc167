import path from "node:path";
import type { Container, MountSettings } from "dockerode";
import { type Engine, isPodman } from "./engine.ts";
import { isBeingRemoved, isMissing } from "./engine-failure.ts";

interface Wanted {
  /** Any that is there; nothing of it is run. */
  readonly image: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Mounted while the engine reads or writes an archive of the container. */
  readonly volume?: { readonly name: string; readonly target: string };
}

interface Unstarted extends AsyncDisposable {
  readonly container: Container;
}

/** The engine would else fill an empty volume with what the image has there. */
const NO_COPY: NonNullable<MountSettings["VolumeOptions"]> = {
  NoCopy: true,
  Labels: {},
  DriverConfig: { Name: "local", Options: {} },
};

/**
 * A container that is never started: the engine reads and writes files of its image and of a volume through it, and no
 * program runs. Disposing removes it, the volume stays.
 */
export async function unstartedContainer(
  { api }: Engine,
  { image, labels, volume }: Wanted,
): Promise<Unstarted> {
  const container = await api.createContainer({
    Image: image,
    // The engine wants one, and an image may have none.
    Entrypoint: ["none"],
    Labels: { ...labels },
    NetworkDisabled: true,
    HostConfig: { NetworkMode: "none", Mounts: volume === undefined ? [] : [mountOf(volume)] },
  });
  // Somebody else may have cleared it away: it is told by its labels as any box is.
  const remove = (): Promise<void> =>
    container.remove({ force: true }).catch((thrown: unknown) => {
      if (!isMissing(thrown) && !isBeingRemoved(thrown)) throw thrown;
    });
  return { container, [Symbol.asyncDispose]: remove };
}

/**
 * Where an archive is put that becomes a volume mounted at `target`, and what its top is called. To Podman a path leads
 * into a volume from its own place on only; to others the top has the volume's owner and mode from above it alone.
 */
export const topOf = (engine: Engine, target: string): { readonly path: string; readonly name: string } =>
  isPodman(engine)
    ? { path: target, name: "." }
    : { path: path.posix.dirname(target), name: path.posix.basename(target) };

const mountOf = ({ name, target }: NonNullable<Wanted["volume"]>): MountSettings => ({
  Type: "volume",
  Source: name,
  Target: target,
  VolumeOptions: NO_COPY,
});
