import { readdir } from "node:fs/promises";
import type Docker from "dockerode";

/** A graphics card that a container can be given, or why the one that is there cannot be. */
export type FoundGpu =
  | { readonly kind: "nvidia" }
  | { readonly kind: "dri"; readonly devices: readonly string[] }
  /** The card is there, and the engine has nothing to hand it on with. */
  | { readonly kind: "not-handed-on" }
  | { readonly kind: "none" };

/** What a sidecar is given of a card. */
export type Gpu = Extract<FoundGpu, { readonly kind: "nvidia" | "dri" }>;

export const isGpu = (found: FoundGpu): found is Gpu => found.kind === "nvidia" || found.kind === "dri";

export const describeGpu = ({ kind }: Gpu): string =>
  kind === "nvidia" ? "the NVIDIA graphics card" : "the graphics card behind /dev/dri";

/**
 * What the engine and the devices of this machine say. NVIDIA's cards need a runtime of the engine's; others are handed on
 * as devices, which are known only of an engine on this machine. Never throws: what cannot be found out is not there.
 */
export async function findGpu(api: Docker, host: string, devices = "/dev"): Promise<FoundGpu> {
  const info = (await api.info().catch(() => ({}))) as {
    readonly Runtimes?: Readonly<Record<string, unknown>> | null;
  };
  if (Object.hasOwn(info.Runtimes ?? {}, "nvidia")) return { kind: "nvidia" };
  if (!host.startsWith("unix:")) return { kind: "none" };
  const [top, cards] = await Promise.all([namesIn(devices), namesIn(`${devices}/dri`)]);
  // Its device in /dev/dri is of no use to a container that lacks NVIDIA's own libraries.
  if (top.includes("nvidia0")) return { kind: "not-handed-on" };
  if (!cards.some((name) => name.startsWith("renderD"))) return { kind: "none" };
  return {
    kind: "dri",
    devices: ["dri", ...(top.includes("kfd") ? ["kfd"] : [])].map((name) => `${devices}/${name}`),
  };
}

const namesIn = (folder: string): Promise<readonly string[]> => readdir(folder).catch(() => []);
