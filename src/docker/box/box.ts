import { randomBytes } from "node:crypto";
import path from "node:path";
import { type LogKeeper, notesOf } from "../../core/box-log.ts";
import { EXIT, HarnessError, reasonOf } from "../../core/errors.ts";
import type { ExecRequest, ExecResult, OldJob, OwnedBox, ParkedHandle } from "../../core/ports.ts";
import type { Place } from "../isolation/place.ts";
import { isWithin } from "../mounts.ts";
import type { KeptJob } from "../parked/kept-job.ts";
import { findAllPlanted, findPlanted } from "../protect/planted.ts";
import { outermost } from "../protect/mounts.ts";
import { type Quarantined, quarantine, stillInert } from "../protect/quarantine.ts";
import { type HostFile, isMoved, replacedAmong, replacedNote, workspaceMoved } from "../protect/replaced.ts";
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
  /** What its mounts lie over on the host. */
  readonly files: readonly HostFile[];
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
  /** Of its commands, where they do not say otherwise. */
  readonly env: Readonly<Record<string, string>>;
  /** What is done here beside its commands. */
  readonly log: LogKeeper;
  /** Nothing is committed for its commands from then on. */
  readonly settle: () => Promise<void>;
  /** Removes the container, and all that was made for it. */
  readonly remove: () => Promise<void>;
  /** Nobody need look for what was planted here: the whole tree was searched after the last command. */
  readonly searched: () => Promise<void>;
  /** Lets go of the workspace. */
  readonly release: () => Promise<void>;
  /** What was moved out of the workspace so far. */
  readonly moved: Quarantined[];
}

export async function openBox(given: Omit<Walls, "moved">): Promise<OwnedBox> {
  const walls = { ...given, moved: [] };
  const { workspace, client } = walls;
  const running = new Set<Started>();
  const ending: Ending["ending"] = {};
  const endAll = (): void => {
    for (const command of running) command.end("disk");
  };
  using stack = new DisposableStack();
  const { disk } = walls.place;
  if (disk !== undefined) stack.use(await watchDisk(disk, endAll, walls.budget));
  const watch = stack.move();
  const start = (request: ExecRequest, past?: Past): Begun & { readonly started: Started } => {
    const folder = folderOf(workspace, request);
    const env = { ...walls.env, ...request.env };
    const started = startCommand(client, { ...request, folder, env }, { workspace, past });
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
    replaced: async () =>
      (await replacedIn(walls))
        .filter((file) => file !== workspace && isWithin(file, workspace))
        .map((file) => file.slice(workspace.length + 1)),
    changes: async () => {
      const { changes, incomplete } = await walls.place.changes(client);
      return { all: withoutFolders(changes), incomplete, dropTracked: (paths) => walls.tracked.drop(paths) };
    },
    settle: walls.settle,
    log: async () => {
      await leaveNothingPlanted(walls);
      return walls.log.take();
    },
    close: async () => {
      ending.heard = true;
      await (ending.done ??= end(walls, watch));
      return walls.log.take();
    },
    [Symbol.asyncDispose]: () => disposed(walls, watch, ending),
  };
}

/** Whoever does not ask is told all the same; a failure once. */
async function disposed(walls: Walls, watch: Disposable, ending: Ending["ending"]): Promise<void> {
  try {
    await (ending.done ??= end(walls, watch));
  } catch (thrown) {
    if (ending.heard !== true) throw thrown;
  } finally {
    for (const note of notesOf(walls.log.takeUntold())) walls.onWarning(note);
  }
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
  /** `heard`: whoever closes it is told how that went. */
  readonly ending: { done?: Promise<void>; heard?: true };
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
    await letGo(walls);
  };
  return { until: parked.until, freeze: () => (ending.done ??= freeze()) };
}

async function end(walls: Walls, watch: Disposable): Promise<void> {
  watch[Symbol.dispose]();
  await walls.settle();
  await walls.remove();
  for (const file of await replacedIn(walls)) walls.onWarning(replacedNote(file, walls.workspace));
  await letGo(walls);
}

/** Whoever comes next finds the workspace searched: what was planted would pass for the user's there. */
async function letGo(walls: Walls): Promise<void> {
  try {
    await leaveNothingPlanted(walls);
    await walls.searched();
  } finally {
    await walls.release();
  }
}

/** By the host's word and the box's: each sees what the other cannot. */
const replacedIn = async ({ files, client }: Walls): Promise<readonly string[]> =>
  outermost([...(await replacedAmong(files)), ...client.unguarded]);

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
  walls.exposed && !(await isMoved(walls.workspace, walls.files))
    ? findPlanted(walls.workspace, walls.protection)
    : [];

async function takeOut(walls: Walls, found: readonly string[]): Promise<ExecResult["quarantined"]> {
  const moved = await quarantine(walls.workspace, found, path.join(walls.stateDir, "quarantine"));
  walls.log.move(moved.map(({ from, to, takeBack }) => ({ from, to, takeBack })));
  walls.moved.push(...moved);
  return moved;
}

/** The whole tree, nested repositories too; it is searched to its end, or this throws. */
async function leaveNothingPlanted(walls: Walls): Promise<void> {
  if (!walls.exposed) return;
  if (await isMoved(walls.workspace, walls.files)) throw workspaceMoved(walls.workspace);
  const { planted: found, warnings, unseen } = await findAllPlanted(walls.workspace, walls.protection);
  // A process that stood in a folder when that was moved wrote on into it.
  await stillInert(walls.moved);
  await takeOut(walls, found);
  for (const warning of warnings) walls.onWarning(warning);
  if (unseen.length > 0) throw notSearched(walls.workspace, unseen);
}

const notSearched = (workspace: string, unseen: readonly string[]): HarnessError =>
  new HarnessError(
    EXIT.sandbox,
    `${workspace} could not be searched to its end for what the box may have left for programs of yours to obey:\n    ${unseen.join("\n    ")}`,
    "run no git and no editor there before you have looked at it or removed it",
  );
