import { randomBytes } from "node:crypto";
import path from "node:path";
import { EXIT, HarnessError, reasonOf } from "../core/errors.ts";
import { isInside } from "../core/file-names.ts";
import type { BlockedConnection } from "../core/network.ts";
import type {
  Change,
  ExecRequest,
  ExecResult,
  FileResult,
  GrantedNetwork,
  OldJob,
  OwnedBox,
  ParkedHandle,
} from "../core/ports.ts";
import { type LogKeeper, notesOf } from "../core/run-record.ts";
import {
  type BegunJob,
  cancelledResult,
  type CommandState,
  commandStateOf,
  type FinishedCommand,
  FinishedJobs,
  type KeptJob,
  startCommand,
  type StartedCommand,
} from "./box-command.ts";
import { type DiskBudget, fileSystemsOf, watchDisk } from "./disk-budget.ts";
import { searchCommand, searchResult } from "./pattern-search.ts";
import type { PausedRunner, RunnerClient } from "./runner-client.ts";
import { FileRefused, listIn, readFileIn, refusedFile, statIn, writeFileIn } from "./runner-files.ts";
import { KEY_BYTES } from "./runner-protocol.ts";
import { blockedPaths } from "./workspace/blocked-paths.ts";
import type { Tracked } from "./workspace/git-repository.ts";
import type { WorkspaceLocation } from "./workspace/layer-record.ts";
import {
  type HostFile,
  isMoved,
  outermostPaths,
  replacedAmong,
  replacedNote,
  workspaceMoved,
} from "./workspace/protected-mounts.ts";
import type { Protection } from "./workspace/protection.ts";
import {
  findAllPlanted,
  findPlanted,
  quarantine,
  type Quarantined,
  stillInert,
} from "./workspace/quarantine.ts";

/** A container whose isolation has been verified. */
export interface BoxParts {
  readonly workspace: string;
  readonly client: RunnerClient;
  readonly protection: Protection;
  /** The host files that the container's mounts cover. */
  readonly files: readonly HostFile[];
  /** Whether commands can make files in the user's own repository. */
  readonly exposed: boolean;
  readonly stateDir: string;
  readonly onWarning: (text: string) => void;
  readonly place: WorkspaceLocation;
  /** Folders of further file systems that commands fill, if the host sees them. */
  readonly filled?: readonly string[];
  /** What the user's git tracked in the workspace before the first command. */
  readonly tracked: Tracked;
  /** Limits of disk space; the defaults when left out. */
  readonly budget?: DiskBudget;
  /** Set for a box that was parked and is resumed. */
  readonly kept?: readonly KeptJob[];
  /** Records what resuming needs, once the runner is held. */
  readonly parking?: (runner: PausedRunner, jobs: readonly KeptJob[]) => Promise<ParkedHandle>;
  /** The box's access to the hosts that were granted. */
  readonly network?: GrantedNetwork & {
    readonly env: () => Readonly<Record<string, string>>;
    /** Permanently stops whatever the network access runs in the box. */
    readonly end?: () => Promise<void>;
  };
  /** Default environment of the box's commands. */
  readonly env: Readonly<Record<string, string>>;
  /** What happened in this process beside the box's commands. */
  readonly log: LogKeeper;
  /** After this, no more commits are made for the box's commands. */
  readonly settle: () => Promise<void>;
  /** Removes the container and everything that was created for it. */
  readonly remove: () => Promise<void>;
  /** Marks the workspace as clean: the whole tree was searched after the last command, so the next start need not. */
  readonly searched: () => Promise<void>;
  /** Releases the workspace lock. */
  readonly release: () => Promise<void>;
  /** What was moved out of the workspace so far. */
  readonly moved: Quarantined[];
  /** The most recent search of the workspace; the next one waits for it. */
  readonly searches: { last: Promise<unknown> };
}

export async function openBox(options: Omit<BoxParts, "moved" | "searches">): Promise<OwnedBox> {
  const parts = { ...options, moved: [], searches: { last: Promise.resolve() } };
  const { workspace, client } = parts;
  const running = new Set<StartedCommand>();
  const ending: Ending["ending"] = {};
  const endAll = (): void => {
    for (const command of running) command.end("disk");
  };
  using stack = new DisposableStack();
  const { disk } = parts.place;
  for (const folder of await fileSystemsOf([...(disk === undefined ? [] : [disk]), ...(parts.filled ?? [])]))
    stack.use(await watchDisk(folder, endAll, parts.budget));
  const watch = stack.move();
  const start = (
    request: ExecRequest,
    past?: CommandState,
  ): BegunJob & { readonly started: StartedCommand } => {
    const folder = folderOf(workspace, request);
    const env = { ...parts.network?.env(), ...parts.env, ...request.env };
    const since = Date.now();
    const started = startCommand(client, { ...request, folder, env }, { workspace, past });
    running.add(started);
    const result = started.ended
      .finally(() => running.delete(started))
      .then((ended) => completedResult(parts, request, { ended, errors: started.errors(), since }));
    return { folder, started, result };
  };
  const shelf = new FinishedJobs();
  const old = parts.kept?.map((job) => [job.name, resumedJob(shelf, job, start)] as const);
  return {
    ...(old === undefined ? {} : { kept: new Map(old) }),
    ...(parts.parking === undefined ? {} : { park: () => park(parts, shelf, { watch, ending }) }),
    ...(parts.network === undefined ? {} : { network: parts.network, networkEnv: parts.network.env }),
    workspace,
    gone: client.gone,
    exec: async (request, signal) => {
      if (client.lost !== undefined) throw client.lost;
      if (signal.aborted) return cancelledResult();
      const { started, result } = start(request);
      const cancel = (): void => started.end("cancelled");
      signal.addEventListener("abort", cancel, { once: true });
      return result.finally(() => signal.removeEventListener("abort", cancel));
    },
    start: (request) => shelf.put(request.name, start(request)),
    read: (file, range) => asResult(readFileIn(client, absolutePath(workspace, file), range)),
    write: (file, content) =>
      asResult(writeFileIn(client, absolutePath(workspace, file), content).then(() => null)),
    list: (folder) => asResult(listIn(client, absolutePath(workspace, folder))),
    stat: (file) => asResult(statIn(client, absolutePath(workspace, file))),
    search: async (request) => {
      const folder = absolutePath(workspace, request.folder ?? ".");
      const result = await start(searchCommand(request, folder)).result;
      return searchResult(request, { workspace, folder }, result);
    },
    replaced: async () =>
      (await replacedIn(parts))
        .filter((file) => file !== workspace && isInside(workspace, file))
        .map((file) => file.slice(workspace.length + 1)),
    changes: async () => {
      const { changes, incomplete } = await parts.place.changes(client);
      return { all: withoutFolders(changes), incomplete, dropTracked: (paths) => parts.tracked.drop(paths) };
    },
    settle: parts.settle,
    log: async () => {
      await leaveNothingPlanted(parts);
      return parts.log.take();
    },
    close: async () => {
      ending.heard = true;
      await (ending.done ??= end(parts, watch));
      return parts.log.take();
    },
    [Symbol.asyncDispose]: () => disposed(parts, watch, ending),
  };
}

/** Warnings are passed on even if nobody asks for them; a failure is thrown only if `close` did not report it. */
async function disposed(parts: BoxParts, watch: Disposable, ending: Ending["ending"]): Promise<void> {
  try {
    await (ending.done ??= end(parts, watch));
  } catch (thrown) {
    if (ending.heard !== true) throw thrown;
  } finally {
    for (const note of notesOf(parts.log.takeUntold())) parts.onWarning(note);
  }
}

/** Only the folder of the original request still matters. */
function resumedJob(
  shelf: FinishedJobs,
  job: KeptJob,
  start: (request: ExecRequest, past: CommandState) => BegunJob,
): OldJob {
  if (job.result !== null) return shelf.restore(job);
  const request = { words: [], folder: job.folder, timeoutMs: 0, keep: { head: 0, tail: 0 } };
  const going = shelf.put(job.name, start(request, commandStateOf(job)), job.noted);
  return Object.assign(going, { noted: job.noted });
}

interface Ending {
  readonly watch: Disposable;
  /** `heard` is set if the caller that closes the box gets the outcome. */
  readonly ending: { done?: Promise<void>; heard?: true };
}

async function park(
  parts: BoxParts,
  shelf: FinishedJobs,
  { watch, ending }: Ending,
): Promise<ParkedHandle | null> {
  if (parts.parking === undefined) return null;
  await parts.network?.end?.();
  const key = randomBytes(KEY_BYTES);
  const { going, ...paused } = await parts.client.hold(key, shelf.continuingCalls);
  await shelf.settled(going);
  const parked = await parts.parking({ key, ...paused }, shelf.kept());
  const freeze = async (): Promise<void> => {
    try {
      await parked.freeze();
    } catch (thrown) {
      parts.onWarning(`the box could not be frozen, and is removed: ${reasonOf(thrown)}`);
      return end(parts, watch);
    }
    watch[Symbol.dispose]();
    await searchAndRelease(parts);
  };
  return { until: parked.until, freeze: () => (ending.done ??= freeze()) };
}

async function end(parts: BoxParts, watch: Disposable): Promise<void> {
  watch[Symbol.dispose]();
  await parts.settle();
  await parts.remove();
  for (const file of await replacedIn(parts)) parts.onWarning(replacedNote(file, parts.workspace));
  await searchAndRelease(parts);
}

/** Searches the workspace before the next run, which would take planted files for the user's own. */
async function searchAndRelease(parts: BoxParts): Promise<void> {
  try {
    await leaveNothingPlanted(parts);
    await parts.searched();
  } finally {
    await parts.release();
  }
}

/** Merges the host's view and the box's: each sees changes that the other cannot. */
const replacedIn = async ({ files, client }: BoxParts): Promise<readonly string[]> =>
  outermostPaths([...(await replacedAmong(files)), ...client.unguarded]);

const absolutePath = (workspace: string, file: string): string =>
  path.isAbsolute(file) ? file : path.join(workspace, file);

const folderOf = (workspace: string, { folder }: ExecRequest): string =>
  absolutePath(workspace, folder ?? ".");

/** Adds the blocked paths, and the planted files that were moved out of the workspace, to a command's result. */
async function completedResult(
  parts: BoxParts,
  request: ExecRequest,
  {
    ended: how,
    errors,
    since,
  }: { readonly ended: FinishedCommand; readonly errors: string; readonly since: number },
): Promise<ExecResult> {
  const { network } = parts;
  const ended: FinishedCommand =
    network === undefined ? how : { ...how, blocked_connections: blockedSince(network, since) };
  const { protection, workspace } = parts;
  const quarantined = await inTurn(parts, async () => takeOut(parts, await plantedPaths(parts)));
  const blocked = blockedPaths(errors, folderOf(workspace, request), protection);
  const refused = blocked.length > 0 && (ended.cause === "program" || ended.cause === null);
  if (!refused || ended.exit_code === 0) return { ...ended, blocked, quarantined };
  const reason = `blocked: ${blocked.join(", ")} cannot be written here`;
  return { ...ended, cause: "filesystem", reason, blocked, quarantined };
}

/** Commands that end together are searched one after the other, so that no path is moved twice. */
function inTurn<T>({ searches }: BoxParts, search: () => Promise<T>): Promise<T> {
  const turn = searches.last.then(search);
  searches.last = turn.catch(() => undefined);
  return turn;
}

const plantedPaths = async (parts: BoxParts): Promise<readonly string[]> =>
  parts.exposed && !(await isMoved(parts.workspace, parts.files))
    ? findPlanted(parts.workspace, parts.protection)
    : [];

async function takeOut(parts: BoxParts, found: readonly string[]): Promise<ExecResult["quarantined"]> {
  const moved = await quarantine(parts.workspace, found, path.join(parts.stateDir, "quarantine"));
  parts.log.move(moved.map(({ from, to, takeBack }) => ({ from, to, takeBack })));
  parts.moved.push(...moved);
  return moved;
}

/** Searches the whole tree, nested repositories included. Throws if it could not be searched to its end. */
const leaveNothingPlanted = (parts: BoxParts): Promise<void> => inTurn(parts, () => leaveNothing(parts));

async function leaveNothing(parts: BoxParts): Promise<void> {
  if (!parts.exposed) return;
  if (await isMoved(parts.workspace, parts.files)) throw workspaceMoved(parts.workspace);
  const { planted: found, warnings, unseen } = await findAllPlanted(parts.workspace, parts.protection);
  // A process whose working folder was moved may have kept writing into it.
  await stillInert(parts.moved);
  await takeOut(parts, found);
  for (const warning of warnings) parts.onWarning(warning);
  if (unseen.length > 0) throw notSearched(parts.workspace, unseen);
}

const notSearched = (workspace: string, unseen: readonly string[]): HarnessError =>
  new HarnessError(
    EXIT.sandbox,
    `${workspace} could not be searched completely for files that the box may have left for your programs to obey:\n    ${unseen.join("\n    ")}`,
    "do not run git or an editor there until you have checked or removed these paths",
  );

const MAX_BLOCKED = 50;

/** The connections refused since `since`, each host once; some may belong to other commands that ran meanwhile. */
export function blockedSince(
  { connections }: Pick<GrantedNetwork, "connections">,
  since: number,
): readonly BlockedConnection[] {
  const found = new Map<string, BlockedConnection>();
  for (const { at, host, port, method, verdict, rule, reason } of connections()) {
    if (verdict !== "denied" || at < since) continue;
    const key = JSON.stringify([host, port, method, rule]);
    const times = (found.get(key)?.times ?? 0) + 1;
    if (times > 1 || found.size < MAX_BLOCKED) found.set(key, { host, port, method, rule, reason, times });
  }
  return [...found.values()];
}

/** Turns the failure of a file operation into a value. Only the loss of the box is rethrown. */
export async function asResult<T>(work: Promise<T>): Promise<FileResult<T>> {
  try {
    return { kind: "ok", value: await work };
  } catch (thrown) {
    if (!(thrown instanceof FileRefused)) throw thrown;
    return refusedFile(thrown);
  }
}

/** Skips folders themselves: only their contents count as changes. */
export const withoutFolders = (all: Iterable<Change>): Iterable<Change> => ({
  *[Symbol.iterator]() {
    for (const change of all) if (change.kind !== "folder") yield change;
  },
});
