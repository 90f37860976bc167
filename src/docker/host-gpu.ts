import { readdir } from "node:fs/promises";
import type Docker from "dockerode";

/** A graphics card that a container can be given, or why an existing card cannot be given. */
export type FoundGpu =
  | { readonly kind: "nvidia" }
  | { readonly kind: "dri"; readonly devices: readonly string[] }
  /** There is a card, but the engine has no runtime to pass it on. */
  | { readonly kind: "not-handed-on" }
  | { readonly kind: "none" };

/** The part of a card that a sidecar is given. */
export type Gpu = Extract<FoundGpu, { readonly kind: "nvidia" | "dri" }>;

export const isGpu = (found: FoundGpu): found is Gpu => found.kind === "nvidia" || found.kind === "dri";

export const describeGpu = ({ kind }: Gpu): string =>
  kind === "nvidia" ? "the NVIDIA graphics card" : "the graphics card behind /dev/dri";

/**
 * Asks the engine and looks at the devices of this machine. NVIDIA's cards need a runtime of the engine; others are
 * passed on as devices, which are known only for an engine on this machine. Never throws: what cannot be found out
 * counts as missing.
 */
export async function findGpu(api: Docker, host: string, devices = "/dev"): Promise<FoundGpu> {
  const info = (await api.info().catch(() => ({}))) as {
    readonly Runtimes?: Readonly<Record<string, unknown>> | null;
  };
  if (Object.hasOwn(info.Runtimes ?? {}, "nvidia")) return { kind: "nvidia" };
  if (!host.startsWith("unix:")) return { kind: "none" };
  const [top, cards] = await Promise.all([namesIn(devices), namesIn(`${devices}/dri`)]);
  // Its device in /dev/dri is of no use to a container without NVIDIA's own libraries.
  if (top.includes("nvidia0")) return { kind: "not-handed-on" };
  if (!cards.some((name) => name.startsWith("renderD"))) return { kind: "none" };
  return {
    kind: "dri",
    devices: ["dri", ...(top.includes("kfd") ? ["kfd"] : [])].map((name) => `${devices}/${name}`),
  };
}

const namesIn = (folder: string): Promise<readonly string[]> => readdir(folder).catch(() => []);
