import path from "node:path";
import type { Container, MountSettings } from "dockerode";
import { type Engine, isPodman, unlessGone } from "./engine.ts";

interface UnstartedRequest {
  /** Any existing image; nothing of it is run. */
  readonly image: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Mounted while the engine reads or writes an archive of the container. */
  readonly volume?: { readonly name: string; readonly target: string };
}

interface Unstarted extends AsyncDisposable {
  readonly container: Container;
}

/** Otherwise the engine would fill an empty volume with what the image has there. */
const NO_COPY: NonNullable<MountSettings["VolumeOptions"]> = {
  NoCopy: true,
  Labels: {},
  DriverConfig: { Name: "local", Options: {} },
};

/**
 * A container that is never started: through it the engine reads and writes files of its image and of a volume, and no
 * program runs. Disposing removes the container; the volume stays.
 */
export async function unstartedContainer(
  { api }: Engine,
  { image, labels, volume }: UnstartedRequest,
): Promise<Unstarted> {
  const container = await api.createContainer({
    Image: image,
    // The engine wants an entrypoint, and an image may have none.
    Entrypoint: ["none"],
    Labels: { ...labels },
    NetworkDisabled: true,
    HostConfig: { NetworkMode: "none", Mounts: volume === undefined ? [] : [mountOf(volume)] },
  });
  // Another process may have removed the container, because it is labelled like any box.
  const remove = (): Promise<void> => container.remove({ force: true }).catch(unlessGone);
  return { container, [Symbol.asyncDispose]: remove };
}

/**
 * Where to put an archive that becomes a volume mounted at `target`, and the name of the archive's top folder. For
 * Podman a path leads into a volume only from the volume's own place; for other engines the top gets the volume's owner
 * and mode only from an archive above that place.
 */
export const topOf = (engine: Engine, target: string): { readonly path: string; readonly name: string } =>
  isPodman(engine)
    ? { path: target, name: "." }
    : { path: path.posix.dirname(target), name: path.posix.basename(target) };

const mountOf = ({ name, target }: NonNullable<UnstartedRequest["volume"]>): MountSettings => ({
  Type: "volume",
  Source: name,
  Target: target,
  VolumeOptions: NO_COPY,
});
