import { readFile } from "node:fs/promises";
import type Docker from "dockerode";
import { mountLines } from "../box/mounts-seen.ts";
import { isGvisor } from "../box/box-report.ts";
import type { BoxPlan } from "../container-spec.ts";
import { setTimeout as sleep } from "node:timers/promises";

/** What can be seen and done about a container from outside, where its processes are this machine's. */

/**
 * Removes a container so that nothing in it runs once more. To end a frozen one, engines with version 1 of the cgroups
 * thaw it, and until its first process is gone the others go on: for some thousand writes to what may have lost its
 * protection meanwhile. A signal that each of them has before comes first. Where they cannot be seen (an engine in a
 * machine of its own), that moment stays.
 */
export async function removeUnthawed(container: Docker.Container, abortSignal?: AbortSignal): Promise<void> {
  const bound = abortSignal === undefined ? {} : { abortSignal };
  await endFrozen(container, bound).catch(() => undefined);
  await container.remove({ force: true, v: true, ...bound });
}

interface Listed {
  readonly Titles: readonly string[];
  readonly Processes: readonly (readonly string[])[];
}

async function endFrozen(
  container: Docker.Container,
  bound: { readonly abortSignal?: AbortSignal },
): Promise<void> {
  const { State } = await container.inspect(bound);
  if (!State.Paused) return;
  const { Titles, Processes } = (await container.top({ ps_args: "-eo pid", ...bound })) as Listed;
  const at = Titles.indexOf("PID");
  for (const row of Processes) {
    const pid = Number(row[at]);
    if (await isIn(container.id, pid)) process.kill(pid, "SIGKILL");
  }
}

/** Frozen, it cannot end, so that its number is nobody else's. */
async function isIn(id: string, pid: number): Promise<boolean> {
  if (!Number.isInteger(pid) || pid < 2) return false;
  return (await readFile(`/proc/${pid}/cgroup`, "utf8").catch(() => "")).includes(id);
}

/** How the mounts of a container deviate from the plan, by this machine's word; none where it cannot tell. */
export async function mountsOutside(plan: BoxPlan, id: string, pid: unknown): Promise<readonly string[]> {
  if (isGvisor(plan) || typeof pid !== "number" || !(await isIn(id, pid))) return [];
  const text = await readFile(`/proc/${pid}/mountinfo`, "utf8").catch(() => "");
  return text === "" ? [] : mountLines(plan, text);
}

/** Resolves to whether nothing of it runs any more, once that is known or was waited for in vain. */
export type EndWatch = () => Promise<boolean>;

/**
 * Of a container that runs. The kernel ends a PID namespace with its first process: that one counts as ended only when
 * all others are gone, so that afterwards nothing can write any more. Undefined where this machine's kernel is not the
 * one that runs it, or it cannot tell: then only the engine knows.
 */
export async function endWatch(plan: BoxPlan, container: Docker.Container): Promise<EndWatch | undefined> {
  // Another runtime may stand between.
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

/** Many processes of a busy machine's box, each to be given a processor once more before it is gone, take more than a second. */
const END_MS = 4000;
const END_LOOK_MS = 2;

/** Seen from here, where its number is another one. */
async function isFirst(pid: number): Promise<boolean> {
  const status = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "");
  return /^NSpid:\s.*\s1$/m.test(status) && /^Threads:\s1$/m.test(status);
}

/** A number that is somebody else's by now is in no cgroup of the container's. */
async function isRunning(id: string, pid: number): Promise<boolean> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
  const state = stat.slice(stat.lastIndexOf(")") + 2)[0];
  return state !== undefined && state !== "Z" && state !== "X" && (await isIn(id, pid));
}
