import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { hostname } from "node:os";
import { errorCode, EXIT, HarnessError } from "../../core/errors.ts";
import { isInside } from "../../core/file-names.ts";
import type { Owner } from "../box-labels.ts";
import { runHost } from "../../platform/host-programs.ts";

/**
 * Who owns a lock or a box: a process, distinguished from every later process with the same pid.
 * Limits: only processes of the same pid namespace are visible, so an owner in another container looks dead, and so
 * does an owner on another machine that shares the state directory over the network. Boxes record their machine,
 * because one engine may have boxes of several machines.
 */

export async function thisProcess(): Promise<Owner> {
  const owner = await processOwner(process.pid);
  if (owner !== undefined) return owner;
  throw new HarnessError(EXIT.sandbox, `cannot find out when process ${process.pid} started`, "mount /proc");
}

/** Undefined if there is no such process, or only its zombie. */
export async function processOwner(pid: number): Promise<Owner | undefined> {
  const [boot, start] = await Promise.all([bootId(), startOf(pid)]);
  return start === undefined ? undefined : { pid, start, boot, machine: await machineId() };
}

/** False only if certain: another boot of this machine, no such process, another start time, or a zombie. */
export async function isAlive(owner: Owner): Promise<boolean> {
  if ((await bootId()) !== owner.boot) return isOfAnother(owner);
  try {
    return (await startOf(owner.pid)) === owner.start;
  } catch {
    return true;
  }
}

/** Whether the owner is certainly on another machine, which looks after its own things. */
export const isOfAnother = async ({ boot, machine }: Owner): Promise<boolean> =>
  machine !== undefined && machine !== (await machineId()) && boot !== (await bootId());

/** Checks each process once, however many things it owns. */
export function liveness(): (owner: Owner) => Promise<boolean> {
  const answers = new Map<string, Promise<boolean>>();
  return (owner) => {
    const key = `${owner.pid} ${owner.start} ${owner.boot} ${owner.machine ?? ""}`;
    const answer = answers.get(key) ?? isAlive(owner);
    answers.set(key, answer);
    return answer;
  };
}

/** Neither changes while a process lives, so each is read once. */
const bootId = once(readBootId);
const machineId = once(readMachineId);

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
  const { code, tail } = await runHost([program, ...args], { env, signal: AbortSignal.timeout(5000) });
  return code === 0 ? tail[0]?.trim() : undefined;
}

/** What a run claims of a workspace. */
export interface Claim {
  /** Absolute, with links resolved. */
  readonly path: string;
  /** dev:inode of the workspace and of every folder above it: the same folder mounted elsewhere is recognized. */
  readonly self: string;
  readonly above: readonly string[];
  readonly write: boolean;
}

/** Readers share; a writer excludes all others from its folder, from all folders above it and from all inside it. */
export const clash = (a: Claim, b: Claim): boolean => (a.write || b.write) && overlap(a, b);

const overlap = (a: Claim, b: Claim): boolean =>
  a.self === b.self ||
  a.above.includes(b.self) ||
  b.above.includes(a.self) ||
  isInside(a.path, b.path) ||
  isInside(b.path, a.path);
