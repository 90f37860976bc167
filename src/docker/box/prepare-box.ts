import { randomBytes } from "node:crypto";
import { lstat, open, readFile, realpath, rm } from "node:fs/promises";
import path from "node:path";
import type { Mode } from "../../core/decision.ts";
import { EXIT, HarnessError, reasonOf } from "../../core/errors.ts";
import { type BoxIdentity, boxLabels, type Owner, ownerLabels, thisProcess } from "../../boxes/box-record.ts";
import type { BoxPlan, HostFacts } from "../container-spec.ts";
import { type Engine, hostFacts, isPodman, readSeccomp } from "../engine.ts";
import type { PlaceRequest } from "./workspace-place.ts";
import { checkWorkspace, withEnclosing, type Workspace } from "../../boxes/workspace/box-workspace.ts";
import {
  brokenRepository,
  findProtected,
  findReached,
  NOTHING,
  type Protection,
  protectOutside,
} from "../../boxes/workspace/protection.ts";
import { accountFor, folderForMounts } from "./account.ts";
import { boxImage, RUNNER } from "../box-image.ts";
import { networkPlace, type NetworkRequest } from "../egress/box-network.ts";
import type { DiskBudget } from "../../boxes/disk-budget.ts";
import { outsideOf, type BoxEnvironment } from "../environments/environment-mounts.ts";
import type { Isolation } from "../../boxes/workspace/layer-record.ts";
import { makeFolder } from "../../platform/folders.ts";

export interface BoxRequest {
  readonly workspace: string;
  readonly mode: Mode;
  /** The user's own image; null for ours. */
  readonly image: string | null;
  readonly limits: BoxPlan["limits"];
  /** Another runtime of the engine, such as gVisor's runsc. */
  readonly runtime: string | null;
  /** Whether `changes` will be requested. */
  readonly watchChanges: boolean;
  readonly isolation: Isolation;
  /** The session whose changes in an overlay or a copy outlive the box and are continued; null: they do not. */
  readonly keep: string | null;
  /** A second box beside one of this process that holds the workspace: if it only reads, it takes no lock. */
  readonly beside?: boolean;
  /** Only our own programs run in the box: no socket has to be covered, and a FIFO remains visible as one. */
  readonly ownOnly?: boolean;
  /** Limits of disk space; the defaults when left out. */
  readonly budget?: DiskBudget;
  /** Milliseconds for which the box is kept frozen once it is parked; left out, it is never parked. Requires `keep`. */
  readonly parks?: number;
  /**
   * Resumes the frozen box of the session `keep`, if one exists that matches what would be made now. The value says
   * until when it was promised to be kept, in milliseconds since 1970.
   */
  readonly takesUp?: number;
  /** What the box may reach; left out, the box has no network. */
  readonly network?: NetworkRequest;
  /** What the box starts from besides its image. */
  readonly environment?: BoxEnvironment;
}

/** What starting boxes needs. */
export interface BoxMaker {
  readonly engine: Engine;
  /** The folder of the installed package. */
  readonly root: string;
  readonly uid: number;
  readonly home: string;
  readonly stateDir: string;
  /** Receives warnings that need no action. */
  readonly onWarning: (text: string) => void;
}

export interface PreparedBox {
  readonly plan: BoxPlan;
  readonly workspace: Workspace;
  readonly protection: Protection;
  readonly owner: Owner;
  readonly place: Omit<PlaceRequest, "engine" | "stateDir" | "layer" | "onWarning">;
}

/** Checks engine, image and workspace, and plans the box. The box itself is not made yet. */
export async function prepare(
  maker: BoxMaker,
  request: BoxRequest,
  signal?: AbortSignal,
): Promise<PreparedBox> {
  const { engine, root, uid, home, stateDir } = maker;
  const own = request.environment?.image ?? request.image;
  const image = boxImage(engine, root, own);
  const fixed = Promise.all([image, readSeccomp(root), thisProcess()]);
  fixed.catch(() => undefined);
  const host = await hostFacts(engine);
  refuseUnknownRuntime(request.runtime, host.runtimes);
  const workspace = await checkWorkspace({
    path: request.workspace,
    callerUid: uid,
    stateDir,
    home,
    engineRoot: host.root,
  });
  const mounts = await folderForMounts(uid, stateDir);
  const account = fixed.then(([{ id }, , owner]) =>
    accountFor({
      engine,
      folder: mounts,
      image: id,
      own: own === null,
      user: { uid: workspace.uid, gid: workspace.gid },
      labels: ownerLabels(uid, owner),
    }),
  );
  account.catch(() => undefined);
  const protection = withoutCovered(request, await protectionOf(request, workspace, signal));
  for (const warning of [...workspace.warnings, ...protection.warnings]) maker.onWarning(warning);
  const [{ id, volumes }, seccomp, owner] = await fixed;
  const session = randomBytes(8).toString("hex");
  const volume = `harness-${session}`;
  const parks = isPodman(engine) ? warnNoParking(request, maker) : parking(request, stateDir);
  const network = isGranted(request) ? await networkPlace(engine, mounts, session) : undefined;
  const cover = protection.covered.length === 0 ? null : await keptFile(mounts, "empty", "");
  const hosts = hasOwnHosts(engine, request) ? await keptFile(mounts, "hosts", HOSTS) : undefined;
  const named = await account;
  const parts = {
    workspace,
    protection,
    cover,
    host,
    account: named.account,
    id: named.image ?? id,
    volumes,
    seccomp,
    owner,
    uid,
    session,
    volume,
    parks,
    network,
    hosts,
  };
  const plan = planOf(request, parts);
  const { labels } = plan;
  const place = { workspace, session, owner, volume, labels, image: id, engineRoot: host.root };
  return { plan, workspace, protection, owner, place };
}

/** Podman's own hosts file names hosts of this machine; an engine on another machine can mount nothing from here. */
const hasOwnHosts = (engine: Engine, { mode }: BoxRequest): boolean =>
  isPodman(engine) || (engine.endpoint.host.startsWith("unix:") && mode !== "danger-full-access");

/** With full access the box has a network that nothing filters. */
const isGranted = ({ network, mode }: BoxRequest): boolean =>
  network !== undefined && mode !== "danger-full-access";

const parking = ({ parks, keep }: BoxRequest, stateDir: string): PlanParts["parks"] =>
  parks === undefined || keep === null ? undefined : { session: keep, stateDir };

/** Podman ends a box's input when the connection of its harness ends, and a box ends with its input. */
function warnNoParking({ parks, keep }: BoxRequest, { onWarning }: BoxMaker): undefined {
  if (parks !== undefined && keep !== null)
    onWarning(
      "on Podman a box cannot wait for an answer: the run continues in a new one, over the same workspace",
    );
}

function refuseUnknownRuntime(runtime: string | null, known: readonly string[]): void {
  if (runtime === null || known.includes(runtime)) return;
  const there = known.filter((name) => !name.startsWith("io.containerd.")).join(", ");
  throw new HarnessError(
    EXIT.sandbox,
    `the engine has no runtime ${runtime}; it has ${there}`,
    "leave out --runtime, or add it to the engine (for gVisor: runsc install)",
  );
}

/** Below an environment's mounts nothing of the host is visible, so nothing has to be protected there. */
function withoutCovered({ environment }: BoxRequest, protection: Protection): Protection {
  const targets = (environment?.volumes ?? []).map(({ target }) => target);
  if (targets.length === 0) return protection;
  const [readOnly, pinned, covered] = [protection.readOnly, protection.pinned, protection.covered].map(
    (paths) => outsideOf(targets, paths),
  );
  return { ...protection, readOnly: readOnly ?? [], pinned: pinned ?? [], covered: covered ?? [] };
}

/** With full access nothing is protected; if everything is read-only, some things can still be reached. */
async function protectionOf(
  request: BoxRequest,
  workspace: Workspace,
  signal: AbortSignal | undefined,
): Promise<Protection> {
  const { isolation, mode, ownOnly } = request;
  if (ownOnly === true && mode === "read-only" && isolation === "bind") return NOTHING;
  const { enclosing, path: root } = workspace;
  const within = await protectionWithin(request, workspace, signal);
  if (isolation === "copy" && enclosing.kind === "found")
    return {
      ...within,
      ...brokenRepository(`the repository ${enclosing.top} lies above the workspace and is not copied`),
    };
  const around = await withEnclosing(enclosing, within, { root, user: workspace, signal });
  if (isolation === "bind" || mode === "read-only" || around.above.length === 0) return around;
  return { ...around, warnings: [...around.warnings, NO_COMMITS(around.above[0] ?? "")] };
}

const NO_COMMITS = (top: string): string =>
  `git shows ${top} but makes no commits in this overlay, which covers only a folder of it: to commit, start at the top`;

async function protectionWithin(
  { isolation, mode }: BoxRequest,
  workspace: Workspace,
  signal: AbortSignal | undefined,
): Promise<Protection> {
  if (isolation !== "bind") return protectOutside(isolation, workspace, signal);
  if (mode === "danger-full-access") return NOTHING;
  return mode === "workspace-write"
    ? findProtected(workspace.path, signal)
    : findReached(workspace.path, signal);
}

/** All host names of a box. `localhost` is one address: a server there is found with any family that a client tries. */
const HOSTS = "127.0.0.1 localhost\n::1 ip6-localhost ip6-loopback\n127.0.0.1 sandbox\n";

/** Nothing writes to the file: whatever has become of it, it holds this text and is read-only when a box is planned. */
async function keptFile(folder: string, name: string, text: string): Promise<string> {
  try {
    makeFolder(folder);
    const file = path.join(await realpath(folder), name);
    if (await isKept(file, text)) return file;
    await rm(file, { recursive: true, force: true });
    await using made = await open(file, "wx", 0o444);
    await made.writeFile(text);
    await made.chmod(0o444);
    return file;
  } catch (thrown) {
    const message = `a file that boxes mount (${name}) cannot be stored in ${folder}: ${reasonOf(thrown)}`;
    throw new HarnessError(EXIT.sandbox, message, "make that folder writable", thrown);
  }
}

async function isKept(file: string, text: string): Promise<boolean> {
  const stats = await lstat(file).catch(() => undefined);
  if (stats?.isFile() !== true || stats.nlink !== 1 || (stats.mode & 0o777) !== 0o444) return false;
  return stats.size === Buffer.byteLength(text) && (text === "" || (await readFile(file, "utf8")) === text);
}

interface PlanParts {
  /** The empty file that covers what must not be reached. */
  readonly cover: string | null;
  readonly account: BoxPlan["account"];
  readonly workspace: Workspace;
  readonly protection: Protection;
  readonly host: HostFacts;
  readonly id: string;
  readonly volumes: BoxPlan["volumes"];
  readonly seccomp: string;
  readonly owner: Owner;
  readonly uid: number;
  readonly session: string;
  readonly volume: string;
  readonly parks: BoxIdentity["parks"];
  readonly network: BoxPlan["network"];
  readonly hosts: string | undefined;
}

const planOf = (request: BoxRequest, parts: PlanParts): BoxPlan => ({
  image: parts.id,
  argv: [RUNNER],
  mode: request.mode,
  user: { uid: parts.workspace.uid, gid: parts.workspace.gid },
  workspace: {
    path: parts.workspace.path,
    ...(request.isolation === "bind" ? {} : { volume: parts.volume }),
  },
  ...(parts.protection.above.length === 0 ? {} : { above: parts.protection.above }),
  readOnly: [...parts.protection.readOnly, ...parts.protection.outside],
  pinned: parts.protection.pinned,
  ...(parts.cover === null ? {} : { covered: { by: parts.cover, paths: parts.protection.covered } }),
  volumes: parts.volumes,
  ...(parts.account === undefined ? {} : { account: parts.account }),
  ...(parts.network === undefined ? {} : { network: parts.network }),
  ...(parts.hosts === undefined ? {} : { hosts: parts.hosts }),
  limits: request.limits,
  host: { ...parts.host, runtime: request.runtime },
  seccomp: parts.seccomp,
  stdin: true,
  ...(parts.parks === undefined ? {} : { lease: true }),
  labels: boxLabels({
    workspace: parts.workspace.path,
    uid: parts.uid,
    owner: parts.owner,
    session: parts.session,
    created: new Date().toISOString(),
    isolation: request.isolation,
    mode: request.mode,
    ...(parts.parks === undefined ? {} : { parks: parts.parks }),
  }),
});
