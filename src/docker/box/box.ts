import { randomBytes } from "node:crypto";
import path from "node:path";
import { reasonOf } from "../../core/errors.ts";
import type { ExecRequest, ExecResult, OldJob, OwnedBox, ParkedHandle } from "../../core/ports.ts";
import type { Place } from "../isolation/place.ts";
import type { KeptJob } from "../parked/kept-job.ts";
import { findAllPlanted, findPlanted } from "../protect/planted.ts";
import { quarantine } from "../protect/quarantine.ts";
import { blockedPaths } from "../protect/refusal.ts";
import type { Protection } from "../protect/scan.ts";
import type { Tracked } from "../protect/tracked.ts";
import type { RunnerClient } from "../runner/client.ts";
import type { HeldRunner } from "../runner/held.ts";
import { KEY_BYTES } from "../runner/frames.ts";
import { listIn, readFileIn, statIn, writeFileIn } from "../runner/files.ts";
import { type Ended, notBegun, type Past, startCommand, type Started } from "./exec.ts";
import { asResult, withoutFolders } from "./files.ts";
import { type Begun, JobShelf, pastOf } from "./jobs.ts";
import { searchCommand, searchResult } from "./search.ts";
import { type DiskBudget, watchDisk } from "./watchdog.ts";

/** What a verified container is, once nothing more has to be asked about its walls. */
export interface Walls {
  readonly workspace: string;
  readonly client: RunnerClient;
  readonly protection: Protection;
  /** Whether commands can make files in the user's own repository. */
  readonly exposed: boolean;
  readonly stateDir: string;
  readonly onWarning: (text: string) => void;
  readonly place: Place;
  /** What the user's git knew of the workspace before the first command. */
  readonly tracked: Tracked;
  /** Of disk space; the usual one when left out. */
  readonly budget?: DiskBudget;
  /** Of a box that was parked and goes on. */
  readonly kept?: readonly KeptJob[];
  /** Has what it takes to go on written down, once the runner is held. */
  readonly parking?: (runner: HeldRunner, jobs: readonly KeptJob[]) => Promise<ParkedHandle>;
  /** Removes the container and lets go of the workspace. */
  readonly close: () => Promise<void>;
}

export async function openBox(walls: Walls): Promise<OwnedBox> {
  const { workspace, client } = walls;
  const running = new Set<Started>();
  const ending: { done?: Promise<void> } = {};
  const endAll = (): void => {
    for (const command of running) command.end("disk");
  };
  using stack = new DisposableStack();
  const { disk } = walls.place;
  if (disk !== undefined) stack.use(await watchDisk(disk, endAll, walls.budget));
  const watch = stack.move();
  const start = (request: ExecRequest, past?: Past): Begun & { readonly started: Started } => {
    const folder = folderOf(workspace, request);
    const started = startCommand(client, { ...request, folder }, { workspace, past });
    running.add(started);
    const result = started.ended
      .finally(() => running.delete(started))
      .then((ended) => judged(walls, request, { ended, errors: started.errors() }));
    return { folder, started, result };
  };
  const shelf = new JobShelf();
  const old = walls.kept?.map((job) => [job.name, oldJob(shelf, job, start)] as const);
  return {
    ...(old === undefined ? {} : { kept: new Map(old) }),
    ...(walls.parking === undefined ? {} : { park: () => park(walls, shelf, { watch, ending }) }),
    workspace,
    gone: client.gone,
    exec: async (request, signal) => {
      if (client.lost !== undefined) throw client.lost;
      if (signal.aborted) return notBegun();
      const { started, result } = start(request);
      const cancel = (): void => started.end("cancelled");
      signal.addEventListener("abort", cancel, { once: true });
      return result.finally(() => signal.removeEventListener("abort", cancel));
    },
    start: (request) => shelf.put(request.name, start(request)),
    read: (file, range) => asResult(readFileIn(client, within(workspace, file), range)),
    write: (file, content) =>
      asResult(writeFileIn(client, within(workspace, file), content).then(() => null)),
    list: (folder) => asResult(listIn(client, within(workspace, folder))),
    stat: (file) => asResult(statIn(client, within(workspace, file))),
    search: async (request) => {
      const folder = within(workspace, request.folder ?? ".");
      const result = await start(searchCommand(request, folder)).result;
      return searchResult(request, { workspace, folder }, result);
    },
    changes: async () => {
      const { changes, incomplete } = await walls.place.changes(client);
      return { all: withoutFolders(changes), incomplete, dropTracked: (paths) => walls.tracked.drop(paths) };
    },
    [Symbol.asyncDispose]: () => (ending.done ??= end(walls, watch)),
  };
}

/** As it was asked for, as far as that still matters. */
function oldJob(shelf: JobShelf, job: KeptJob, start: (request: ExecRequest, past: Past) => Begun): OldJob {
  if (job.result !== null) return shelf.restore(job);
  const request = { words: [], folder: job.folder, timeoutMs: 0, keep: { head: 0, tail: 0 } };
  const going = shelf.put(job.name, start(request, pastOf(job)), job.noted);
  return Object.assign(going, { noted: job.noted });
}

interface Ending {
  readonly watch: Disposable;
  readonly ending: { done?: Promise<void> };
}

async function park(walls: Walls, shelf: JobShelf, { watch, ending }: Ending): Promise<ParkedHandle | null> {
  if (walls.parking === undefined) return null;
  const key = randomBytes(KEY_BYTES);
  const { going, ...held } = await walls.client.hold(key, shelf.lasting);
  await shelf.settled(going);
  const parked = await walls.parking({ key, ...held }, shelf.kept());
  const freeze = async (): Promise<void> => {
    try {
      await parked.freeze();
    } catch (thrown) {
      walls.onWarning(`the box could not be frozen, and is removed: ${reasonOf(thrown)}`);
      return end(walls, watch);
    }
    watch[Symbol.dispose]();
    await leaveNothingPlanted(walls);
  };
  return { until: parked.until, freeze: () => (ending.done ??= freeze()) };
}

async function end(walls: Walls, watch: Disposable): Promise<void> {
  watch[Symbol.dispose]();
  await walls.close();
  await leaveNothingPlanted(walls);
}

const within = (workspace: string, file: string): string =>
  path.isAbsolute(file) ? file : path.join(workspace, file);

const folderOf = (workspace: string, { folder }: ExecRequest): string => within(workspace, folder ?? ".");

/** The command's end together with what it met and left behind in the workspace. */
async function judged(
  walls: Walls,
  request: ExecRequest,
  { ended, errors }: { readonly ended: Ended; readonly errors: string },
): Promise<ExecResult> {
  const { protection, workspace } = walls;
  const quarantined = await takeOut(walls, await planted(walls));
  const blocked = blockedPaths(errors, folderOf(workspace, request), protection);
  const refused = blocked.length > 0 && (ended.cause === "program" || ended.cause === null);
  if (!refused || ended.exit_code === 0) return { ...ended, blocked, quarantined };
  const reason = `blocked: ${blocked.join(", ")} cannot be written here`;
  return { ...ended, cause: "filesystem", reason, blocked, quarantined };
}

const planted = async (walls: Walls): Promise<readonly string[]> =>
  walls.exposed ? findPlanted(walls.workspace, walls.protection) : [];

const takeOut = (walls: Walls, found: readonly string[]): Promise<ExecResult["quarantined"]> =>
  quarantine(walls.workspace, found, path.join(walls.stateDir, "quarantine"));

/** What the user reads of a thing that a host program would obey, and how to have it all the same. */
export const movedAway = (from: string, takeBack: string): string =>
  `${from} was made in the box and moved out of the workspace${takeBack === "" ? "" : `; to take it back: ${takeBack}`}`;

/** After the container is gone, the whole tree once more: nested repositories too. */
async function leaveNothingPlanted(walls: Walls): Promise<void> {
  if (!walls.exposed) return;
  const { planted: found, warnings } = await findAllPlanted(walls.workspace, walls.protection);
  const moved = await takeOut(walls, found);
  for (const warning of warnings) walls.onWarning(warning);
  for (const { from, takeBack } of moved) walls.onWarning(movedAway(from, takeBack));
}
