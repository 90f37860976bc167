import { isWithin } from "../mounts.ts";

/** Folders that a box must not hold; all of them absolute and without links. */
export interface Places {
  readonly homes: readonly string[];
  readonly stateDir: string;
  /** Our own settings: who writes them decides what the next run may do. */
  readonly settings: readonly string[];
  readonly engineRoots: readonly string[];
}

/** The system's own; what lies below is the system's, too, but for the rooms that people work in. */
const SYSTEM = ["proc", "sys", "dev", "run", "boot", "etc", "usr", "bin", "sbin", "var"].map(
  (name) => `/${name}`,
);
const LIBRARIES = /^\/lib(32|64|x32|exec)?(\/|$)/;

/** Below these people do keep projects: web roots, build servers, sources, volumes that a desktop mounts. */
const ROOMS = [
  "/var/tmp",
  "/var/www",
  "/var/home",
  "/var/srv",
  "/var/opt",
  "/var/lib/jenkins/workspace",
  "/var/jenkins_home/workspace",
  "/usr/src",
  "/usr/local/src",
  "/run/media",
];

/** Shared by everybody: projects are inside, never the whole of it. */
const SHARED: ReadonlySet<string> = new Set(["/tmp", "/home", "/opt", "/media", ...ROOMS]);

/** Why no box can stand over this path (absolute, without links), or undefined. */
export function refusedPlace(real: string, places: Places): string | undefined {
  const holds = (inner: string): boolean => isWithin(inner, real);
  if (real === "/") return "it is the root of the file system";
  if (isWithin(real, places.stateDir)) return "it belongs to the harness's own state";
  if (places.settings.some((one) => isWithin(real, one))) return "it belongs to the harness's own settings";
  if (places.engineRoots.some((one) => isWithin(real, one)))
    return "it belongs to the container engine's data";
  if (places.homes.includes(real)) return "it is a home directory";
  if (SHARED.has(real)) return "it is shared by every project in it";
  if (isSystem(real)) return "it belongs to the system";
  if (places.homes.some(holds)) return "a home directory is inside";
  if (holds(places.stateDir)) return "the harness's own state is inside";
  if (places.settings.some(holds)) return "the harness's own settings are inside";
  if (places.engineRoots.some(holds)) return "the container engine's data is inside";
  return undefined;
}

const isSystem = (real: string): boolean =>
  (SYSTEM.some((one) => isWithin(real, one)) || LIBRARIES.test(real)) &&
  !ROOMS.some((room) => isWithin(real, room));
