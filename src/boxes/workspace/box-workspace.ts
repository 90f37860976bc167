import type { Stats } from "node:fs";
import { lstat, readdir, readFile, realpath, statfs } from "node:fs/promises";
import path from "node:path";
import { quote } from "shell-quote";
import { errorCode, EXIT, HarnessError, reasonOf } from "../../core/errors.ts";
import { isInside } from "../../core/file-names.ts";
import { followPointer, isGitDir } from "./git-directory.ts";
import { outermostPaths } from "./protected-mounts.ts";
import { type Protection, reachedIn } from "./protection.ts";
import { lstatIfThere } from "./safe-paths.ts";

interface WorkspaceRequest {
  readonly path: string;
  readonly callerUid: number;
  readonly stateDir: string;
  readonly home: string;
  /** The engine's data folder, as the engine reports it. */
  readonly engineRoot: string;
}

export interface Workspace {
  /** With all links resolved, so that the path that was judged is the path that is mounted. */
  readonly path: string;
  readonly uid: number;
  readonly gid: number;
  readonly dev: string;
  readonly ino: string;
  readonly enclosing: Enclosing;
  readonly warnings: readonly string[];
}

/** Checks that a box may use this folder as its workspace. The answer is for the real folder, not for a link to it. */
export async function checkWorkspace(request: WorkspaceRequest): Promise<Workspace> {
  const real = await realpath(request.path).catch((thrown: unknown) => unusable(request.path, thrown));
  const stat = await lstat(real, { bigint: true }).catch((thrown: unknown) => unusable(real, thrown));
  if (!stat.isDirectory())
    throw new HarnessError(EXIT.usage, `${request.path} is not a directory`, "name a directory: --cwd DIR");
  const places = await placesOf(request);
  const reason = refusedPlace(real, places);
  if (reason !== undefined)
    throw new HarnessError(EXIT.sandbox, `${real} cannot be the workspace of a box: ${reason}`, ELSEWHERE);
  const [uid, gid] = [Number(stat.uid), Number(stat.gid)];
  checkOwner(real, uid, request.callerUid);
  if ((Number(stat.mode) & 0o500) !== 0o500)
    throw new HarnessError(EXIT.usage, `${real} cannot be read by its owner`, `chmod u+rx ${quote([real])}`);
  const warnings = [...(uid === 0 ? [ROOT_OWNED] : []), ...(await fileSystemWarnings(real))];
  const enclosing = await enclosingOf({ path: real, uid }, (top) => refusedPlace(top, places));
  return { path: real, uid, gid, dev: String(stat.dev), ino: String(stat.ino), enclosing, warnings };
}

/** The top of the repository around a folder below that top, if a box over the folder would see the repository. */
export async function topAbove(
  folder: string,
  facts: Pick<WorkspaceRequest, "home" | "stateDir">,
): Promise<string | undefined> {
  const real = await realpath(folder).catch(() => undefined);
  const uid = real === undefined ? undefined : (await lstat(real)).uid;
  if (real === undefined || uid === undefined) return undefined;
  const places = await placesOf({ ...facts, engineRoot: "/var/lib/docker" });
  const enclosing = await enclosingOf({ path: real, uid }, (top) => refusedPlace(top, places));
  return enclosing.kind === "found" ? enclosing.top : undefined;
}

const ELSEWHERE = "name the folder of one project: --cwd DIR";
/** The warning for a workspace that belongs to root. */
export const ROOT_OWNED = "commands run as uid 0 without capabilities";

/** Pods never run as root: a workspace owned by root belongs to this user in a pod. */
const POD_USER_ID = 1000;

interface Ownership {
  readonly uid: number;
  readonly gid: number;
}

export const podUserOf = ({ uid, gid }: Ownership): Ownership => ({
  uid: uid === 0 ? POD_USER_ID : uid,
  gid: gid === 0 ? POD_USER_ID : gid,
});

function unusable(name: string, thrown: unknown): never {
  const code = errorCode(thrown);
  const what =
    code === "ENOENT"
      ? "does not exist"
      : code === "ENOTDIR"
        ? "is not a directory"
        : `cannot be read: ${reasonOf(thrown)}`;
  throw new HarnessError(EXIT.usage, `${name} ${what}`, "name a directory: --cwd DIR", thrown);
}

function checkOwner(real: string, uid: number, callerUid: number): void {
  if (callerUid === 0 || uid === callerUid) return;
  throw new HarnessError(
    EXIT.sandbox,
    `${real} belongs to uid ${uid}, and you are uid ${callerUid}: a box runs as the owner of its workspace`,
    `work on a copy of your own: cp -r ${quote([real])} ~/   (or: chown it to you)`,
  );
}

async function placesOf({
  home,
  stateDir,
  engineRoot,
}: Pick<WorkspaceRequest, "home" | "stateDir" | "engineRoot">): Promise<ForbiddenPlaces> {
  const real = (names: readonly string[]): Promise<string[]> => Promise.all(names.map(resolveLinks));
  const homes = [home, "/root", ...(await childrenOf("/home")), ...(await passwdHomes())];
  return {
    homes: [...homes, ...(await real(homes))],
    stateDir: await resolveLinks(stateDir),
    settings: await real([path.join(home, ".config", "harness"), path.join(home, ".harness")]),
    engineRoots: await real([engineRoot, "/var/lib/docker", "/var/lib/containers", "/var/lib/containerd"]),
  };
}

const childrenOf = async (folder: string): Promise<string[]> =>
  (await readdir(folder).catch(() => [])).map((name) => path.join(folder, name));

/** Home folders of root and of people, whose user ids start where distributions start them. */
async function passwdHomes(): Promise<string[]> {
  const text = await readFile("/etc/passwd", "utf8").catch(() => "");
  return text.split("\n").flatMap((line) => {
    const [, , id, , , home = ""] = line.split(":");
    const uid = Number(id);
    return path.isAbsolute(home) && (uid === 0 || (uid >= 1000 && uid < 65_534))
      ? [path.normalize(home)]
      : [];
  });
}

/** The path with links resolved. For a path that does not exist yet, its nearest parent is resolved. */
async function resolveLinks(name: string): Promise<string> {
  const absolute = path.resolve(name);
  const parent = path.dirname(absolute);
  return realpath(absolute).catch(async () =>
    parent === absolute ? absolute : path.join(await resolveLinks(parent), path.basename(absolute)),
  );
}

/** Keyed by the kernel's magic number of the file system. */
const KINDS: ReadonlyMap<number, string> = new Map([
  [0x6969, "NFS"],
  [0xff534d42, "SMB"],
  [0xfe534d42, "SMB"],
  [0x65735546, "FUSE"],
  [0x01021997, "9p"],
  [0x4d44, "FAT"],
]);

async function fileSystemWarnings(real: string): Promise<readonly string[]> {
  const kind = KINDS.get((await statfs(real).catch(() => undefined))?.type ?? 0);
  return kind === undefined
    ? []
    : [`${real} is on ${kind}, where file owners, locks and protected paths may not be reliable`];
}

/** Folders that a workspace must not contain; all are absolute, with links resolved. */
export interface ForbiddenPlaces {
  readonly homes: readonly string[];
  readonly stateDir: string;
  /** The harness's own settings: whoever can write them decides what the next run may do. */
  readonly settings: readonly string[];
  readonly engineRoots: readonly string[];
}

/** System folders. Everything below them belongs to the system too, except for the folders in which people work. */
const SYSTEM = ["proc", "sys", "dev", "run", "boot", "etc", "usr", "bin", "sbin", "var"].map(
  (name) => `/${name}`,
);
const LIBRARIES = /^\/lib(32|64|x32|exec)?(\/|$)/;

/** People keep projects below these folders: web roots, build servers, sources, volumes mounted by a desktop. */
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

/** Shared folders: a project may be inside one, but is never the whole folder. */
const SHARED: ReadonlySet<string> = new Set(["/tmp", "/home", "/opt", "/media", ...ROOMS]);

/** Why this path (absolute, links resolved) cannot be a workspace, or undefined. */
export function refusedPlace(real: string, places: ForbiddenPlaces): string | undefined {
  const holds = (inner: string): boolean => isInside(real, inner);
  if (real === "/") return "it is the root of the file system";
  if (isInside(places.stateDir, real)) return "it belongs to the harness's own state";
  if (places.settings.some((one) => isInside(one, real))) return "it belongs to the harness's own settings";
  if (places.engineRoots.some((one) => isInside(one, real)))
    return "it belongs to the container engine's data";
  if (places.homes.includes(real)) return "it is a home directory";
  if (SHARED.has(real)) return "it is shared by every project in it";
  if (isSystem(real)) return "it belongs to the system";
  if (places.homes.some(holds)) return "it contains a home directory";
  if (holds(places.stateDir)) return "it contains the harness's own state";
  if (places.settings.some(holds)) return "it contains the harness's own settings";
  if (places.engineRoots.some(holds)) return "it contains the container engine's data";
  return undefined;
}

const isSystem = (real: string): boolean =>
  (SYSTEM.some((one) => isInside(one, real)) || LIBRARIES.test(real)) &&
  !ROOMS.some((room) => isInside(room, real));

/** The repository around a workspace, as git finds it when it searches upwards. */
type Enclosing =
  /** The workspace is the top of a repository itself, or lies in none. */
  | { readonly kind: "none" }
  /** `mounts` is all that git needs: the top, and a git directory elsewhere if the top's .git leads to one. */
  | { readonly kind: "found"; readonly top: string; readonly mounts: readonly string[] }
  /** No box may see the repository. */
  | { readonly kind: "refused"; readonly top: string; readonly why: string };

const NONE: Enclosing = { kind: "none" };

interface Root {
  /** With all links resolved. */
  readonly path: string;
  readonly uid: number;
}

/** `refusal` says why no box may see a folder; undefined if a box may. */
async function enclosingOf(
  { path: root, uid }: Root,
  refusal: (top: string) => string | undefined,
): Promise<Enclosing> {
  if ((await lookQuietly(path.join(root, ".git"))) !== undefined) return NONE;
  const { dev } = await lstat(root);
  for (let top = root; top !== path.dirname(top);) {
    top = path.dirname(top);
    const folder = await lookQuietly(top);
    // Git does not cross file systems either.
    if (folder?.dev !== dev) return NONE;
    const dotGit = await repositoryIn(top, root);
    if (dotGit === undefined) continue;
    const why = refusal(top) ?? unfitReason([folder, dotGit], uid);
    if (why !== undefined) return { kind: "refused", top, why };
    return followedFrom(top, dotGit.isFile(), { path: root, uid });
  }
  return NONE;
}

/** The .git entry that git would use there, followed or not; undefined for a workspace inside that git directory. */
async function repositoryIn(top: string, root: string): Promise<Stats | undefined> {
  const file = path.join(top, ".git");
  const dotGit = await lookQuietly(file);
  if (dotGit === undefined || isInside(file, root)) return undefined;
  return dotGit.isDirectory() && !(await isGitDir(file)) ? undefined : dotGit;
}

function unfitReason(stats: readonly [Stats, Stats], uid: number): string | undefined {
  if (stats.some((each) => each.uid !== uid)) return "it belongs to somebody else";
  const [, dotGit] = stats;
  return dotGit.isDirectory() || dotGit.isFile() ? undefined : "its .git is neither a folder nor a file";
}

const lookQuietly = (file: string): ReturnType<typeof lstatIfThere> =>
  lstatIfThere(file).catch(() => undefined);

async function followedFrom(top: string, pointed: boolean, { path: root, uid }: Root): Promise<Enclosing> {
  if (!pointed) return { kind: "found", top, mounts: [top] };
  try {
    const lead = await followPointer(path.join(top, ".git"), top, uid);
    if (lead.kind === "unsafe") return { kind: "refused", top, why: lead.why };
    if (isInside(lead.gitDir, root)) return NONE;
    return { kind: "found", top, mounts: lead.kind === "inside" ? [top] : [top, lead.mount] };
  } catch (thrown) {
    return { kind: "refused", top, why: reasonOf(thrown) };
  }
}

/**
 * Extends the protection of a workspace by the repository around it: read-only in every mode, sockets and FIFOs
 * covered. If that is impossible, git does not work, but the box still starts.
 */
export async function withEnclosing(
  enclosing: Enclosing,
  protection: Protection,
  { root, user, signal }: EnclosingContext,
): Promise<Protection> {
  if (enclosing.kind === "none") return protection;
  const { top } = enclosing;
  const without = (why: string): Protection => ({
    ...protection,
    warnings: [
      ...protection.warnings,
      `git does not work in the box: the repository ${top} is not mounted: ${why}`,
    ],
  });
  if (enclosing.kind === "refused") return without(enclosing.why);
  try {
    const above = enclosing.mounts;
    const { covered } = await reachedIn(top, [], { away: outermostPaths(above), top: user, signal });
    const fresh = covered.filter((file) => !isInside(root, file) && !protection.covered.includes(file));
    return {
      ...protection,
      above,
      outside: protection.outside.filter((folder) => !above.some((one) => isInside(one, folder))),
      covered: [...protection.covered, ...fresh],
    };
  } catch (thrown) {
    if (!(thrown instanceof HarnessError)) throw thrown;
    return without(thrown.message);
  }
}

interface EnclosingContext {
  /** The workspace. */
  readonly root: string;
  readonly user: { readonly uid: number; readonly gid: number };
  readonly signal: AbortSignal | undefined;
}
