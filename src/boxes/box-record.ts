import { createHash, randomBytes, randomUUID } from "node:crypto";
import {
  chmod,
  mkdir,
  readdir,
  readFile,
  readlink,
  realpath,
  rename,
  rm,
  stat,
  writeFile,
} from "node:fs/promises";
import { hostname } from "node:os";
import path from "node:path";
import * as z from "zod";
import { type Mode, MODES } from "../core/decision.ts";
import { errorCode, EXIT, HarnessError, reasonOf } from "../core/errors.ts";
import { isInside } from "../core/file-names.ts";
import { makeFolder } from "../platform/folders.ts";
import { runHost } from "../platform/host-programs.ts";
import { readMountinfo } from "./runner-report.ts";
import { waitingTimeout } from "../platform/waits.ts";

/**
 * What is known of a box without asking it: the labels on its container and volumes, the process that owns it, its folder
 * on this machine.
 */

/** Labels on every container of a box. A box is looked up by its labels, never by its name. */
export const BOX_LABEL = "dev.harness.box";
export const UID_LABEL = "dev.harness.uid";

/** Value of the box label for a box that may be frozen. For any other box the value is 1. */
export const LEASED = "leased";

/** On the runner's volumes for user images. Not a box label: they outlive all boxes and are removed with the images. */
export const RUNNER_LABEL = "dev.harness.runner";

/** On volumes that outlive their boxes: the session they belong to, and the state folder that records them. */
const KEPT_LABEL = "dev.harness.kept";
const STATE_LABEL = "dev.harness.state";

const LABEL = {
  session: "dev.harness.session",
  workspace: "dev.harness.workspace",
  pid: "dev.harness.owner_pid",
  start: "dev.harness.owner_start",
  boot: "dev.harness.boot_id",
  machine: "dev.harness.machine",
  space: "dev.harness.pid_namespace",
  created: "dev.harness.created",
  mode: "dev.harness.mode",
  isolation: "dev.harness.isolation",
  parks: "dev.harness.parks",
} as const;

type Labels = Readonly<Record<string, string>>;

/** Identifies one process for good: a pid is reused, but never with the same start time and boot. */
export interface Owner {
  readonly pid: number;
  /** Start time in clock ticks since boot. Only compared, never used in arithmetic. */
  readonly start: string;
  readonly boot: string;
  /** Set if an engine may hold things of several machines; unknown for older things and for files. */
  readonly machine?: string;
  /** The pid namespace, on Linux: what is in another one cannot be seen by its pid. Only on boxes and their volumes. */
  readonly space?: string;
}

/** What the labels of a box record. Its volumes carry the same labels. */
export interface BoxIdentity {
  readonly workspace: string;
  readonly uid: number;
  readonly owner: Owner;
  readonly session: string;
  /** ISO 8601. */
  readonly created: string;
  readonly isolation: string;
  readonly mode: Mode;
  /** Set for a box that may be frozen: its session, and the state folder that records it while it is frozen. */
  readonly parks?: { readonly session: string; readonly stateDir: string };
}

/** Labels read back: a missing or malformed value is undefined; an owner is complete or undefined. */
export type BoxRecord = Pick<BoxIdentity, "uid"> & {
  readonly [key in Exclude<keyof BoxIdentity, "uid">]-?: BoxIdentity[key] | undefined;
};

export const ownerLabels = (uid: number, owner?: Owner): Labels => ({
  [BOX_LABEL]: "1",
  [UID_LABEL]: String(uid),
  ...(owner === undefined
    ? {}
    : { [LABEL.pid]: String(owner.pid), [LABEL.start]: owner.start, [LABEL.boot]: owner.boot }),
  ...(owner?.machine === undefined ? {} : { [LABEL.machine]: owner.machine }),
  ...(owner?.space === undefined ? {} : { [LABEL.space]: owner.space }),
});

export const boxLabels = (box: BoxIdentity): Labels => ({
  ...ownerLabels(box.uid, box.owner),
  [LABEL.session]: box.session,
  [LABEL.workspace]: box.workspace,
  [LABEL.created]: box.created,
  [LABEL.mode]: box.mode,
  [LABEL.isolation]: box.isolation,
  ...(box.parks === undefined
    ? {}
    : { [BOX_LABEL]: LEASED, [LABEL.parks]: box.parks.session, [STATE_LABEL]: box.parks.stateDir }),
});

/** The labels the same box would have if it could not be frozen. */
export function unparkable(labels: Labels): Labels {
  const { [LABEL.parks]: _, [STATE_LABEL]: __, ...others } = labels;
  return { ...others, [BOX_LABEL]: "1" };
}

/** Undefined for anything that is not ours, that is, without our box label and a user id. */
export function boxOf(labels: Labels | null | undefined): BoxRecord | undefined {
  const uid = numberIn(labels?.[UID_LABEL]);
  if (labels === null || labels === undefined || uid === undefined) return undefined;
  if (labels[BOX_LABEL] !== "1" && labels[BOX_LABEL] !== LEASED) return undefined;
  const created = labels[LABEL.created];
  return {
    uid,
    owner: ownerIn(labels),
    session: nonEmpty(labels[LABEL.session]),
    workspace: nonEmpty(labels[LABEL.workspace]),
    created: created !== undefined && !Number.isNaN(Date.parse(created)) ? created : undefined,
    mode: MODES.find((mode) => mode === labels[LABEL.mode]),
    isolation: nonEmpty(labels[LABEL.isolation]),
    parks: parksIn(labels),
  };
}

function parksIn(labels: Labels): BoxIdentity["parks"] {
  const [session, stateDir] = [nonEmpty(labels[LABEL.parks]), nonEmpty(labels[STATE_LABEL])];
  if (labels[BOX_LABEL] !== LEASED || session === undefined || stateDir === undefined) return undefined;
  return { session, stateDir };
}

export const keptLabels = (session: string, stateDir: string): Labels => ({
  [KEPT_LABEL]: session,
  [STATE_LABEL]: stateDir,
});

/** Engine filter for everything labelled with this user's id. */
export const ownFilter = (uid: number): { label: string[] } => ({ label: [`${UID_LABEL}=${uid}`] });

/** Undefined for volumes of other state folders and if the owner labels are incomplete. */
export const ownerOfKept = (labels: Labels | null | undefined, stateDir: string): Owner | undefined =>
  labels?.[KEPT_LABEL] === undefined || labels[STATE_LABEL] !== stateDir ? undefined : ownerIn(labels);

/** Engine filter for every box of one user, and its volumes. */
export const boxFilter = (uid: number): { label: string[] } => ({
  label: [BOX_LABEL, `${UID_LABEL}=${uid}`],
});

function ownerIn(labels: Labels): Owner | undefined {
  const pid = numberIn(labels[LABEL.pid]);
  const [start, boot] = [nonEmpty(labels[LABEL.start]), nonEmpty(labels[LABEL.boot])];
  const [machine, space] = [nonEmpty(labels[LABEL.machine]), nonEmpty(labels[LABEL.space])];
  if (pid === undefined || pid === 0 || start === undefined || boot === undefined) return undefined;
  return { pid, start, boot, ...(machine && { machine }), ...(space && { space }) };
}

const nonEmpty = (text: string | undefined): string | undefined => (text === "" ? undefined : text);

const numberIn = (text: string | undefined): number | undefined =>
  text !== undefined && /^\d{1,10}$/.test(text) ? Number(text) : undefined;

/**
 * Who owns a lock or a box: a process, distinguished from every later process with the same pid.
 * Boxes record their machine and pid namespace, because one engine may serve several machines, and several containers
 * on each. Files do not: an owner in another container, or on another machine that shares the state directory over the
 * network, looks dead there.
 */

export async function thisProcess(): Promise<Owner> {
  const owner = await processOwner(process.pid);
  if (owner !== undefined) return owner;
  throw new HarnessError(EXIT.sandbox, `cannot find out when process ${process.pid} started`, "mount /proc");
}

/** Undefined if there is no such process, or only its zombie. */
export async function processOwner(pid: number): Promise<Owner | undefined> {
  const [boot, start, space] = await Promise.all([bootId(), startOf(pid), pidNamespace()]);
  if (start === undefined) return undefined;
  return { pid, start, boot, machine: await machineId(), ...(space && { space }) };
}

/** False only if certain: another boot of this machine, no such process, another start time, or a zombie. */
export async function isAlive(owner: Owner): Promise<boolean> {
  if ((await bootId()) !== owner.boot) return isOfAnother(owner);
  if (await isOutOfSight(owner)) return true;
  try {
    return (await startOf(owner.pid)) === owner.start;
  } catch {
    return true;
  }
}

/** Whether the owner is certainly on another machine, which looks after its own things. */
export const isOfAnother = async ({ boot, machine }: Owner): Promise<boolean> =>
  machine !== undefined && machine !== (await machineId()) && boot !== (await bootId());

/** Whether the owner is on this machine in another pid namespace, so that its end cannot be seen. */
export const isOutOfSight = async ({ boot, space }: Owner): Promise<boolean> =>
  space !== undefined && boot === (await bootId()) && space !== (await pidNamespace());

/** Checks each process once, however many things it owns. */
export function liveness(): (owner: Owner) => Promise<boolean> {
  const answers = new Map<string, Promise<boolean>>();
  return (owner) => {
    const key = `${owner.pid} ${owner.start} ${owner.boot} ${owner.machine ?? ""} ${owner.space ?? ""}`;
    const answer = answers.get(key) ?? isAlive(owner);
    answers.set(key, answer);
    return answer;
  };
}

/** None of them changes while a process lives, so each is read once. */
const bootId = once(readBootId);
const machineId = once(readMachineId);
const pidNamespace = once(() => readlink("/proc/self/ns/pid").catch(() => undefined));

function once<T>(ask: () => Promise<T>): () => Promise<T> {
  let answer: Promise<T> | undefined;
  return () => (answer ??= ask());
}

async function readBootId(): Promise<string> {
  const id = await readFile("/proc/sys/kernel/random/boot_id", "utf8").catch(() => undefined);
  return id?.trim() ?? (await lineFromProgram("sysctl", "-n", "kern.bootsessionuuid")) ?? "unknown";
}

/** Stays the same across restarts. Machines that were cloned from each other differ at least in their host names. */
async function readMachineId(): Promise<string> {
  const files = ["/etc/machine-id", "/var/lib/dbus/machine-id"];
  const read = await Promise.all(files.map((file) => readFile(file, "utf8").catch(() => "")));
  const known = read.find((text) => text.trim() !== "");
  const id = known === undefined ? ((await uuidOfMac()) ?? hostname()) : `${known.trim()} ${hostname()}`;
  return createHash("sha256").update(id).digest("hex").slice(0, 16);
}

const uuidOfMac = async (): Promise<string | undefined> =>
  process.platform === "darwin" ? lineFromProgram("sysctl", "-n", "kern.uuid") : undefined;

/** The start time of a running process; undefined if there is none, or only its zombie. */
async function startOf(pid: number): Promise<string | undefined> {
  try {
    return startIn(await readFile(`/proc/${pid}/stat`, "utf8"));
  } catch (thrown) {
    if (!["ENOENT", "ESRCH"].includes(errorCode(thrown) ?? "")) throw thrown;
    const proc = await readFile("/proc/self/stat").catch(() => undefined);
    return proc === undefined ? startByPs(pid) : undefined;
  }
}

/** Field 22 of /proc/PID/stat. The second field is the program's name and may hold anything, `) ` included. */
export function startIn(stat: string): string | undefined {
  const [state, ...fields] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return state === "Z" || state === "X" || state === "x" ? undefined : fields[18];
}

async function startByPs(pid: number): Promise<string | undefined> {
  try {
    process.kill(pid, 0);
  } catch (thrown) {
    if (errorCode(thrown) === "ESRCH") return undefined;
  }
  const [state = "", ...when] = (
    (await lineFromProgram("ps", "-o", "stat=,lstart=", "-p", String(pid))) ?? ""
  ).split(/\s+/);
  const start = Date.parse(`${when.join(" ")} UTC`);
  if (state.startsWith("Z")) return undefined;
  if (Number.isNaN(start)) throw new Error(`ps does not say when ${pid} started`);
  return String(start);
}

/** The only line that a system program prints, or undefined; independent of language and time zone. */
async function lineFromProgram(program: string, ...args: readonly string[]): Promise<string | undefined> {
  const env = { PATH: "/usr/bin:/bin:/usr/sbin:/sbin", LC_ALL: "C", TZ: "UTC" };
  const { code, tail } = await runHost([program, ...args], { env, signal: waitingTimeout(5000) });
  return code === 0 ? tail[0]?.trim() : undefined;
}

/**
 * `<state>/boxes/<id>/` holds what a box needs on the host: sockets, generated files, the upper layer of an overlay.
 * Its marker files are `owner` (who made it), `keep` (never remove) and `finished` (the overlay's changes were applied
 * or given up). A name that begins with a dot is a folder that is being made or removed.
 */
export interface BoxFolder {
  readonly path: string;
  readonly id: string;
  readonly owner: Owner | undefined;
  /** When the folder was last changed; used for folders without an owner. */
  readonly changed: number;
  /** Why the folder must stay even if its owner is dead. */
  readonly kept: string | undefined;
}

const record: z.ZodType<Owner> = z.object({ pid: z.number(), start: z.string(), boot: z.string() });

const boxesIn = (stateDir: string): string => path.join(stateDir, "boxes");

/** Makes the folder together with its owner's record: a kill never leaves one without the other. */
export async function makeBoxFolder(stateDir: string, id: string, owner: Owner): Promise<string> {
  if (!/^\w[\w.-]{0,63}$/.test(id)) throw new TypeError(`${JSON.stringify(id)} is not a box id`);
  const [aside, folder] = [
    path.join(boxesIn(stateDir), `.${id}.${nonce()}`),
    path.join(boxesIn(stateDir), id),
  ];
  try {
    makeFolder(boxesIn(stateDir));
    await mkdir(aside, { mode: 0o700 });
    await writeFile(path.join(aside, "owner"), JSON.stringify(owner), { mode: 0o600 });
    await rename(aside, folder);
    return folder;
  } catch (thrown) {
    await rm(aside, { recursive: true, force: true }).catch(() => undefined);
    const message = `cannot make a folder for the box in ${boxesIn(stateDir)}: ${reasonOf(thrown)}`;
    throw new HarnessError(EXIT.sandbox, message, `df -h ${stateDir}; ls -ld ${stateDir}`, thrown);
  }
}

export async function boxFolders(stateDir: string): Promise<readonly BoxFolder[]> {
  const root = await realpath(boxesIn(stateDir)).catch(() => undefined);
  if (root === undefined) return [];
  const entries = (await readdir(root, { withFileTypes: true })).filter((entry) => entry.isDirectory());
  if (entries.length === 0) return [];
  const mounts = await mountPoints();
  return Promise.all(entries.map(({ name }) => describe(path.join(root, name), mounts)));
}

async function describe(folder: string, mounts: readonly string[]): Promise<BoxFolder> {
  const id = path.basename(folder).replace(/^\.(.*)\.[0-9a-f]{16}$/, "$1");
  const changed = (await stat(folder).catch(() => undefined))?.ctimeMs ?? Date.now();
  return {
    path: folder,
    id,
    changed,
    owner: await ownerOf(folder),
    kept: await reasonToKeep(folder, mounts),
  };
}

/** The folder's contents need not outlive its owner. */
export const markFinished = (folder: string): Promise<void> => writeFile(path.join(folder, "finished"), "");

/** Moves the folder aside first, so that a kill halfway leaves nothing that looks like unapplied changes. */
export async function removeBoxFolder(folder: Pick<BoxFolder, "path" | "id">): Promise<void> {
  const gone = path.join(path.dirname(folder.path), `.${folder.id}.${nonce()}`);
  await markFinished(folder.path).catch(() => undefined);
  await rename(folder.path, gone).catch((thrown: unknown) => {
    if (errorCode(thrown) !== "ENOENT") throw thrown;
  });
  await removeTree(gone);
}

export async function removeTree(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true }).catch(async () => {
    await openUp(folder);
    await rm(folder, { recursive: true, force: true });
  });
}

/**
 * A command may have locked folders of an upper layer against their own owner, or made them so deep that no path leads
 * to what is in them: such folders are moved to the top. No command runs there any more.
 */
async function openUp(top: string): Promise<void> {
  const encoding = "buffer" as const;
  const waiting: Buffer[] = [Buffer.from(top)];
  const enter = async (folder: Buffer): Promise<void> => {
    await chmod(folder, 0o700).catch(() => undefined);
    const entries = await readdir(folder, { encoding, withFileTypes: true }).catch(() => []);
    for (const entry of entries) {
      if (!entry.isDirectory()) continue;
      const at = Buffer.concat([folder, Buffer.from("/"), entry.name]);
      if (at.length <= MAX_PATH_BYTES) await enter(at);
      else waiting.push(await movedUp(at, top));
    }
  };
  for (const each of waiting) await enter(each);
}

/** The system accepts paths of 4095 bytes; a name in the folder has to fit as well. */
const MAX_PATH_BYTES = 3500;

async function movedUp(folder: Buffer, top: string): Promise<Buffer> {
  const to = Buffer.from(path.join(top, randomUUID()));
  await chmod(folder, 0o700).catch(() => undefined);
  await rename(folder, to);
  return to;
}

async function ownerOf(folder: string): Promise<Owner | undefined> {
  const text = await readFile(path.join(folder, "owner"), "utf8").catch(() => "");
  try {
    return record.parse(JSON.parse(text));
  } catch {
    return undefined;
  }
}

async function reasonToKeep(folder: string, mounts: readonly string[]): Promise<string | undefined> {
  const mount = mounts.find((point) => isInside(folder, point));
  if (mount !== undefined) return `something is mounted on ${mount}`;
  const entries = await readdir(folder).catch(() => ["keep"]);
  if (entries.includes("keep")) return "it is marked as kept";
  if (entries.includes("finished") || path.basename(folder).startsWith(".")) return undefined;
  const upper = entries.includes("upper") ? await readdir(path.join(folder, "upper")).catch(() => ["?"]) : [];
  return upper.length > 0 ? "it holds changes that were not applied" : undefined;
}

/** Removing a folder across a mount would empty the mounted files. */
async function mountPoints(): Promise<readonly string[]> {
  const { points } = readMountinfo(await readFile("/proc/self/mountinfo", "utf8").catch(() => ""));
  return points.map((point) => point.path);
}

const nonce = (): string => randomBytes(8).toString("hex");
