import type { Settings } from "../../config/settings-schema.ts";
import { type Connection, isPreset } from "../../core/network.ts";
import type { OwnedBox } from "../../core/ports.ts";
import { EXIT, HarnessError } from "../../core/errors.ts";
import { ROOT_OWNED } from "../../boxes/workspace/box-workspace.ts";
import { openBoxFor } from "../box-access.ts";
import type { Advance } from "../../render/tty/progress-line.ts";
import type { Host } from "../host.ts";

/**
 * The boxes in which a repository is fetched, unpacked and tried: with the user's settings, and none of the
 * repository's.
 */

export interface VetOptions {
  readonly host: Host;
  /** The user's own settings, with the flags applied; only the flags can grant anything. */
  readonly settings: Settings;
  readonly runtime: string | null;
  /** For all steps together. */
  readonly maxMs: number;
  readonly warn: (text: string) => void;
  /** Shows what is being done. */
  readonly onProgress: (far: Advance) => void;
}

const GiB = 2 ** 30;
/** How much of the disk a step may fill, and how much must stay free. */
export const BUDGET = { growth: 4 * GiB, floor: GiB, inodes: 50_000 };
/** Enough for compilers; a fork bomb ends sooner. */
const MOST_PIDS = 256;

export const mostPids = ({ pids }: Pick<Settings, "pids">): number => Math.min(pids, MOST_PIDS);

const NO_GIT_PRESET = "git";

export function refuseGrants({ allow_domains: granted }: Pick<Settings, "allow_domains">): void {
  if (!granted.includes(NO_GIT_PRESET)) return;
  throw new HarnessError(
    EXIT.usage,
    "--allow-domain git means the remotes that the repository itself names",
    "name the host: --allow-domain git=github.com",
  );
}

/** A box with a layer over the folder: the folder stays as it is. */
export function stepsBox(
  { host, settings, runtime, warn }: VetOptions,
  workspace: string,
  onConnection: (connection: Connection) => void,
  signal: AbortSignal,
): Promise<OwnedBox> {
  const shape: Settings = {
    ...settings,
    mode: "workspace-write",
    isolation: settings.isolation === "copy" ? "copy" : "overlay",
    secrets: {},
    env: settings.env ?? "none",
    pids: mostPids(settings),
  };
  const opening = {
    host,
    settings: shape,
    workspace,
    runtime,
    watchChanges: true,
    keep: null,
    budget: BUDGET,
  };
  return openBoxFor({ ...opening, warn: quietOfRoot(warn), onConnection }, signal);
}

/** A box over an empty folder, whose layer is kept: it holds what the box unpacks or clones. */
export function stagingBox(
  { host, settings, warn }: VetOptions,
  {
    workspace,
    keep,
    granted,
    onConnection,
  }: {
    readonly workspace: string;
    readonly keep: string;
    readonly granted: readonly string[];
    readonly onConnection: (connection: Connection) => void;
  },
  signal: AbortSignal,
): Promise<OwnedBox> {
  const shape: Settings = {
    ...settings,
    mode: "workspace-write",
    isolation: settings.isolation === "copy" ? "copy" : "overlay",
    secrets: {},
    env: "none",
    image: null,
    allow_domains: [...granted],
    install_scripts: [],
  };
  const opening = {
    host,
    settings: shape,
    workspace,
    runtime: null,
    watchChanges: false,
    keep,
    budget: BUDGET,
  };
  return openBoxFor({ ...opening, warn: quietOfRoot(warn), onConnection }, signal);
}

/** Presets among the grants. */
export const presetsIn = ({ allow_domains: granted }: Pick<Settings, "allow_domains">): ReadonlySet<string> =>
  new Set(
    granted.flatMap((text) => {
      const [word = ""] = text.split("=");
      return isPreset(word) ? [word] : [];
    }),
  );

const quietOfRoot =
  (warn: (text: string) => void) =>
  (text: string): void =>
    text === ROOT_OWNED ? undefined : warn(text);
