import { lstat, realpath } from "node:fs/promises";
import path from "node:path";
import { errorCode, EXIT, HarnessError, reasonOf } from "../../core/errors.ts";
import type { Settings } from "../../config/settings-schema.ts";
import { type Connection, isPreset } from "../../core/network.ts";
import type { OwnedBox } from "../../core/ports.ts";
import { ROOT_OWNED } from "../../boxes/workspace/box-workspace.ts";
import { openBoxFor } from "../boxes/box-access.ts";
import type { Advance } from "../../render/tty/live-lines.ts";
import type { Host } from "../host.ts";

/**
 * What a user wants vetted, and the boxes in which it is fetched, unpacked and tried: with the user's settings, and none
 * of the repository's.
 */

/** What a user named: a folder, an archive, or a git repository that must first be cloned. */
export type Subject =
  | { readonly kind: "folder"; readonly path: string }
  | { readonly kind: "archive"; readonly path: string }
  | {
      readonly kind: "git";
      readonly from: { readonly url: URL } | { readonly path: string };
      /** A branch, a tag or a commit; null for the current one. */
      readonly ref: string | null;
    };

const EXAMPLES = "harness vet FOLDER   (or an archive, or https://HOST/OWNER/NAME)";

export async function subjectNamed(name: string): Promise<Subject> {
  if (name.trim() === "") throw new HarnessError(EXIT.usage, "the name of the repository is empty", EXAMPLES);
  const [address, ref] = cutRef(name);
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(address) || /^git\+/i.test(address)) return remote(address, ref);
  const stats = await lstat(name).catch(() => undefined);
  if (stats === undefined && /^(?:[\w.-]+@)?[\w.-]+:(?!\/\/)[^\s]+$/.test(name) && !name.startsWith("."))
    throw noSsh(name);
  const real = await realpath(name).catch(async (thrown: unknown) => {
    if (ref !== null && (await isThere(address))) return null;
    throw new HarnessError(
      EXIT.usage,
      `${name}: ${errorCode(thrown) === "ENOENT" ? "there is no such file or folder" : reasonOf(thrown)}`,
      EXAMPLES,
      thrown,
    );
  });
  if (real === null) return { kind: "git", from: { path: await realpath(address) }, ref };
  const found = await lstat(real);
  if (found.isFile()) return { kind: "archive", path: real };
  if (!found.isDirectory())
    throw new HarnessError(EXIT.usage, `${name} is neither a folder nor an archive`, EXAMPLES);
  return (await isBare(real))
    ? { kind: "git", from: { path: real }, ref: null }
    : { kind: "folder", path: real };
}

const isThere = async (file: string): Promise<boolean> =>
  (await lstat(file).catch(() => undefined)) !== undefined;

/** Splits `ADDRESS#REF`. */
function cutRef(name: string): readonly [address: string, ref: string | null] {
  const hash = name.lastIndexOf("#");
  if (hash < 1) return [name, null];
  const ref = name.slice(hash + 1);
  if (!/^(?!-)[\w./@+-]{1,200}$/.test(ref) || ref.includes("..")) return [name, null];
  return [name.slice(0, hash), ref];
}

function remote(address: string, ref: string | null): Subject {
  const text = address.replace(/^git\+/i, "");
  const url = URL.parse(text);
  if (url === null) throw new HarnessError(EXIT.usage, `${address} is not an address`, EXAMPLES);
  if (url.protocol === "file:") {
    if (url.host !== "" && url.host !== "localhost")
      throw new HarnessError(EXIT.usage, `${address} names a file on another machine`, EXAMPLES);
    return { kind: "git", from: { path: filePath(url) }, ref };
  }
  if (["ssh:", "git+ssh:"].includes(url.protocol)) throw noSsh(address);
  if (url.protocol !== "https:" && url.protocol !== "http:")
    throw new HarnessError(
      EXIT.usage,
      `${url.protocol}// is not supported: it does not prove who answers`,
      `harness vet https://${url.host}${url.pathname}`,
    );
  if (url.username !== "" || url.password !== "")
    throw new HarnessError(
      EXIT.usage,
      "the address contains a user name or password, and secrets never go into a box",
      "clone it yourself, without running anything of it (git clone --no-checkout), and vet its .git folder",
    );
  return { kind: "git", from: { url }, ref };
}

function filePath(url: URL): string {
  try {
    return path.resolve(decodeURIComponent(url.pathname));
  } catch {
    return path.resolve(url.pathname);
  }
}

const noSsh = (name: string): HarnessError =>
  new HarnessError(
    EXIT.usage,
    `${name}: ssh is not supported: it needs your keys, and keys never go into a box`,
    "use its https:// address, or clone it yourself: git clone --no-checkout, then vet its .git folder",
  );

/** Whether git would take the folder as a bare repository: objects and references lie in the folder itself. */
export async function isBare(folder: string): Promise<boolean> {
  const parts = await Promise.all(
    ["HEAD", "objects", "refs"].map((name) => lstat(path.join(folder, name)).catch(() => undefined)),
  );
  return parts[0]?.isFile() === true && parts.slice(1).every((part) => part?.isDirectory() === true);
}

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
const MAX_PIDS = 256;

export const mostPids = ({ pids }: Pick<Settings, "pids">): number => Math.min(pids, MAX_PIDS);

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
export const stepsBox = (
  options: VetOptions,
  workspace: string,
  onConnection: (connection: Connection) => void,
  signal: AbortSignal,
): Promise<OwnedBox> => {
  const { settings, runtime } = options;
  const shape: Partial<Settings> = { env: settings.env ?? "none", pids: mostPids(settings) };
  const opening = { workspace, runtime, watchChanges: true, keep: null, onConnection };
  return openLayered(options, shape, opening, signal);
};

interface Staging {
  readonly workspace: string;
  readonly keep: string;
  readonly granted: readonly string[];
  readonly onConnection: (connection: Connection) => void;
}

/** A box over an empty folder, whose layer is kept: it holds what the box unpacks or clones. */
export const stagingBox = (
  options: VetOptions,
  { granted, ...staging }: Staging,
  signal: AbortSignal,
): Promise<OwnedBox> => {
  const shape: Partial<Settings> = {
    env: "none",
    image: null,
    allow_domains: [...granted],
    install_scripts: [],
  };
  return openLayered(options, shape, { ...staging, runtime: null, watchChanges: false }, signal);
};

type Opening = Parameters<typeof openBoxFor>[0];

/** A box whose changes stay in a layer of bounded size, without the user's secrets. */
function openLayered(
  { host, settings, warn }: VetOptions,
  shape: Partial<Settings>,
  opening: Pick<Opening, "workspace" | "runtime" | "watchChanges" | "keep" | "onConnection">,
  signal: AbortSignal,
): Promise<OwnedBox> {
  const layered: Settings = {
    ...settings,
    mode: "workspace-write",
    isolation: settings.isolation === "copy" ? "copy" : "overlay",
    secrets: {},
    ...shape,
  };
  return openBoxFor({ ...opening, host, settings: layered, budget: BUDGET, warn: quietOfRoot(warn) }, signal);
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
