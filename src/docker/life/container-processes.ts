import { readFile } from "node:fs/promises";
import type Docker from "dockerode";
import { mountLines } from "../box/mounts-seen.ts";
import { isGvisor } from "../box/box-report.ts";
import type { BoxPlan } from "../container-spec.ts";
import { setTimeout as sleep } from "node:timers/promises";

/** Looks at containers and their processes from outside, if these processes run on this machine. */

/**
 * Removes a container so that nothing in it runs once more. To end a frozen container, engines with cgroups version 1
 * thaw it, and its processes go on until the first one is gone: long enough for some thousand writes to paths that may
 * have lost their protection meanwhile. So each process is killed by a signal first. If the processes cannot be seen
 * (an engine in a virtual machine), that moment remains.
 */
export async function removeUnthawed(container: Docker.Container, abortSignal?: AbortSignal): Promise<void> {
  const bound = abortSignal === undefined ? {} : { abortSignal };
  await endFrozen(container, bound).catch(() => undefined);
  await container.remove({ force: true, v: true, ...bound });
}

interface TopListing {
  readonly Titles: readonly string[];
  readonly Processes: readonly (readonly string[])[];
}

async function endFrozen(
  container: Docker.Container,
  bound: { readonly abortSignal?: AbortSignal },
): Promise<void> {
  const { State } = await container.inspect(bound);
  if (!State.Paused) return;
  const { Titles, Processes } = (await container.top({ ps_args: "-eo pid", ...bound })) as TopListing;
  const at = Titles.indexOf("PID");
  for (const row of Processes) {
    const pid = Number(row[at]);
    if (await isIn(container.id, pid)) process.kill(pid, "SIGKILL");
  }
}

/** A frozen process cannot end, so its number belongs to no other process. */
async function isIn(id: string, pid: number): Promise<boolean> {
  if (!Number.isInteger(pid) || pid < 2) return false;
  return (await readFile(`/proc/${pid}/cgroup`, "utf8").catch(() => "")).includes(id);
}

/** How the mounts of a container deviate from the plan, according to this machine's kernel; empty if it cannot tell. */
export async function mountsOutside(plan: BoxPlan, id: string, pid: unknown): Promise<readonly string[]> {
  if (isGvisor(plan) || typeof pid !== "number" || !(await isIn(id, pid))) return [];
  const text = await readFile(`/proc/${pid}/mountinfo`, "utf8").catch(() => "");
  return text === "" ? [] : mountLines(plan, text);
}

/** Resolves to whether nothing of the container runs any more, once that is known or the wait was in vain. */
export type EndWatch = () => Promise<boolean>;

/**
 * Watches a running container. The kernel ends a PID namespace with its first process, which counts as ended only when
 * all others are gone, so that nothing can write afterwards. Undefined if another kernel than this machine's runs the
 * container, or if this machine cannot tell: then only the engine knows.
 */
export async function endWatch(plan: BoxPlan, container: Docker.Container): Promise<EndWatch | undefined> {
  // Another runtime may stand between this kernel and the container's processes.
  if (plan.host.runtime !== null) return undefined;
  const { State } = await container.inspect();
  const { Pid: pid } = State;
  if (!(await isIn(container.id, pid)) || !(await isFirst(pid))) return undefined;
  return async () => {
    for (let waited = 0; waited < END_MS; waited += END_LOOK_MS) {
      if (!(await isRunning(container.id, pid))) return true;
      await sleep(END_LOOK_MS);
    }
    return false;
  };
}

/** On a busy machine, the many processes of a box that each need a processor once more can take over a second to go. */
const END_MS = 4000;
const END_LOOK_MS = 2;

/** The first process of its namespace, seen from outside, where it has another number. */
async function isFirst(pid: number): Promise<boolean> {
  const status = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "");
  return /^NSpid:\s.*\s1$/m.test(status) && /^Threads:\s1$/m.test(status);
}

/** A number that now belongs to another process is in no cgroup of the container. */
async function isRunning(id: string, pid: number): Promise<boolean> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
  const state = stat.slice(stat.lastIndexOf(")") + 2)[0];
  return state !== undefined && state !== "Z" && state !== "X" && (await isIn(id, pid));
}
