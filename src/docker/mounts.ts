import type { ContainerCreateOptions } from "dockerode";
import type { BoxPlan } from "./spec.ts";

type Mount = NonNullable<NonNullable<ContainerCreateOptions["HostConfig"]>["Mounts"]>[number];
type Placed = Pick<
  BoxPlan,
  "mode" | "workspace" | "over" | "covered" | "readOnly" | "pinned" | "volumes" | "account"
>;

/** What of the host a container sees, and the order matters: whoever comes later covers. */
export function mountsOf(plan: Placed): Mount[] {
  const { workspace } = plan;
  const extra = [
    ...plan.volumes.map(({ volume, target }) => fromVolume(volume, target, true)),
    ...Object.entries(plan.account ?? {}).map(([name, file]) => bound(file, `/etc/${name}`, true)),
  ];
  if (plan.over !== undefined) {
    const own = plan.over.map(({ path, writable }) => overItself(path, !writable));
    return [
      ...own,
      ...covers(
        plan,
        plan.over.map(({ path }) => path),
      ),
      ...extra,
    ];
  }
  if (workspace === undefined) return extra;
  const { path, volume } = workspace;
  const frozen = plan.mode === "read-only" || protectedPaths(plan).includes(path);
  const base = volume === undefined ? overItself(path, frozen) : fromVolume(volume, path, frozen);
  const over = protectedPaths(plan).filter((one) => one !== path);
  const pins = pinnedPaths(plan).filter((one) => one !== path);
  return [
    base,
    ...pins.map((one) => overItself(one, false)),
    ...over.map((one) => overItself(one, true)),
    ...covers(plan, [path, ...over]),
    ...extra,
  ];
}

/** The full-access mode protects nothing. */
const protectedPaths = ({ mode, readOnly }: Placed): readonly string[] =>
  mode === "danger-full-access" ? [] : [...new Set(readOnly)];

/** A pin makes its path writable, so there is none in a read-only box, and none on or below a protected path. */
function pinnedPaths(plan: Placed): readonly string[] {
  if (plan.mode !== "workspace-write") return [];
  const guarded = protectedPaths(plan);
  return [...new Set(plan.pinned)].filter((pin) => !guarded.some((path) => isWithin(pin, path)));
}

/** Whether a path is another or lies below it; both are absolute and normal. */
export const isWithin = (path: string, parent: string): boolean =>
  path === parent || path.startsWith(parent === "/" ? "/" : `${parent}/`);

/** Whoever comes later covers: these lie in all of the others. What no mount shows needs none. */
function covers({ mode, covered }: Placed, shown: readonly string[]): readonly Mount[] {
  if (covered === undefined || mode === "danger-full-access") return [];
  const { by, paths } = covered;
  const seen = paths.filter((one) => shown.some((folder) => isWithin(one, folder)));
  return seen.map((one) => ({ ...overItself(one, true), Source: by }));
}

/** Not recursive: a read-only bind of older engines would leave what is mounted below writable. */
const overItself = (path: string, readOnly: boolean): Mount => bound(path, path, readOnly);

const bound = (file: string, target: string, readOnly: boolean): Mount => ({
  Type: "bind",
  Source: file,
  Target: target,
  ReadOnly: readOnly,
  BindOptions: { Propagation: "rprivate", NonRecursive: true } as NonNullable<Mount["BindOptions"]>,
});

const fromVolume = (volume: string, target: string, readOnly: boolean): Mount => ({
  Type: "volume",
  Source: volume,
  Target: target,
  ReadOnly: readOnly,
  VolumeOptions: { NoCopy: true } as NonNullable<Mount["VolumeOptions"]>,
});
