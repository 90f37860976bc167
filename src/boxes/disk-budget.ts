import { stat, statfs } from "node:fs/promises";

/** No quota exists for a bind mount, so free space is watched while commands run. */
export interface DiskBudget {
  /** Bytes that one run may use. */
  readonly growth: number;
  /** Free bytes that are reserved for the host, whatever used the rest. */
  readonly floor: number;
  /** Free inodes that are reserved for the host. */
  readonly inodes: number;
}

const GiB = 2 ** 30;
const DISK_BUDGET: DiskBudget = { growth: 10 * GiB, floor: GiB, inodes: 50_000 };

const POLL_MS = 250;

interface Space {
  readonly bytes: number;
  readonly inodes: number;
}

/** Why the commands must be ended now, or undefined. A disk that was already short before the run does not count. */
export function overBudget(start: Space, now: Space, budget: DiskBudget): string | undefined {
  if (start.bytes - now.bytes > budget.growth) return "the run's disk budget is used up";
  if (now.bytes < budget.floor && now.bytes < start.bytes / 2) return "the host's disk is nearly full";
  const counted = start.inodes > budget.inodes;
  return counted && now.inodes < budget.inodes ? "the host's file system is nearly out of inodes" : undefined;
}

async function spaceOf(folder: string): Promise<Space | undefined> {
  const fs = await statfs(folder).catch(() => undefined);
  return fs === undefined ? undefined : { bytes: fs.bavail * fs.bsize, inodes: fs.ffree };
}

/** One folder of each file system. */
export async function fileSystemsOf(folders: readonly string[]): Promise<readonly string[]> {
  const all = await Promise.all(
    folders.map(async (folder) => [(await stat(folder).catch(() => undefined))?.dev, folder] as const),
  );
  return [...new Map(all.toReversed()).values()].toReversed();
}

/** Polls until it is disposed. Calls `onOver` at every poll above a limit, until there is room again. */
export async function watchDisk(
  folder: string,
  onOver: (reason: string) => void,
  budget: DiskBudget = DISK_BUDGET,
): Promise<Disposable> {
  const start = await spaceOf(folder);
  const timer = setInterval(() => void look(), POLL_MS).unref();
  const look = async (): Promise<void> => {
    const now = await spaceOf(folder);
    const reason = start === undefined || now === undefined ? undefined : overBudget(start, now, budget);
    if (reason !== undefined) onOver(reason);
  };
  return { [Symbol.dispose]: () => clearInterval(timer) };
}
