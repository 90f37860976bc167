import path from "node:path";
import type { ExecRequest, ExecResult, OwnedBox } from "../../core/ports.ts";
import { findAllPlanted, findPlanted } from "../protect/planted.ts";
import { quarantine } from "../protect/quarantine.ts";
import { blockedPaths } from "../protect/refusal.ts";
import type { Protection } from "../protect/scan.ts";
import type { RunnerClient } from "../runner/client.ts";
import { changesIn, listIn, readFileIn, statIn, writeFileIn } from "../runner/files.ts";
import { type Ended, startCommand, type Started } from "./exec.ts";
import { asResult, changesOf } from "./files.ts";
import { type DiskBudget, watchDisk } from "./watchdog.ts";

/** What a verified container is, once nothing more has to be asked about its walls. */
export interface Walls {
  readonly workspace: string;
  readonly client: RunnerClient;
  readonly protection: Protection;
  /** Whether commands can make files in the user's own repository. */
  readonly exposed: boolean;
  readonly stateDir: string;
  /** The usual one when left out. */
  readonly disk?: DiskBudget;
  /** Removes the container and lets go of the workspace. */
  readonly close: () => Promise<void>;
}

export async function openBox(walls: Walls): Promise<OwnedBox> {
  const { workspace, client } = walls;
  const running = new Set<Started>();
  const endAll = (): void => {
    for (const command of running) command.end("disk");
  };
  const disk = await watchDisk(workspace, endAll, walls.disk);
  const start = (request: ExecRequest): { started: Started; result: Promise<ExecResult> } => {
    const started = startCommand(client, { ...request, folder: folderOf(workspace, request) }, workspace);
    running.add(started);
    const result = started.ended
      .finally(() => running.delete(started))
      .then((ended) => judged(walls, request, ended));
    return { started, result };
  };
  return {
    workspace,
    gone: client.gone,
    exec: async (request, signal) => {
      const { started, result } = start(request);
      const cancel = (): void => started.end("cancelled");
      if (signal.aborted) cancel();
      signal.addEventListener("abort", cancel, { once: true });
      return result.finally(() => signal.removeEventListener("abort", cancel));
    },
    start: (request) => {
      const { started, result } = start(request);
      return { result, output: started.output, kill: () => started.end("cancelled"), resize: started.resize };
    },
    read: (file, range) => asResult(readFileIn(client, within(workspace, file), range)),
    write: (file, content) =>
      asResult(writeFileIn(client, within(workspace, file), content).then(() => null)),
    list: (folder) => asResult(listIn(client, within(workspace, folder))),
    stat: (file) => asResult(statIn(client, within(workspace, file))),
    changes: async () => {
      const { changes, incomplete } = await changesIn(client);
      return changesOf(changes, incomplete);
    },
    [Symbol.asyncDispose]: async () => {
      disk[Symbol.dispose]();
      await walls.close();
      await leaveNothingPlanted(walls);
    },
  };
}

const within = (workspace: string, file: string): string =>
  path.isAbsolute(file) ? file : path.join(workspace, file);

const folderOf = (workspace: string, { folder }: ExecRequest): string => within(workspace, folder ?? ".");

/** The command's end together with what it met and left behind in the workspace. */
async function judged(walls: Walls, request: ExecRequest, ended: Ended): Promise<ExecResult> {
  const { protection, workspace } = walls;
  const quarantined = await takeOut(walls, await planted(walls));
  const text = Buffer.concat([ended.stderr.head, ended.stderr.tail]).toString("utf8");
  const blocked = blockedPaths(text, folderOf(workspace, request), protection);
  const refused = blocked.length > 0 && (ended.cause === "program" || ended.cause === null);
  if (!refused || ended.exit_code === 0) return { ...ended, blocked, quarantined };
  const reason = `blocked: ${blocked.join(", ")} cannot be written here`;
  return { ...ended, cause: "filesystem", reason, blocked, quarantined };
}

const planted = async (walls: Walls): Promise<readonly string[]> =>
  walls.exposed ? findPlanted(walls.workspace, walls.protection) : [];

const takeOut = (walls: Walls, found: readonly string[]): Promise<ExecResult["quarantined"]> =>
  quarantine(walls.workspace, found, path.join(walls.stateDir, "quarantine"));

/** After the container is gone, the whole tree once more: nested repositories too. */
async function leaveNothingPlanted(walls: Walls): Promise<void> {
  if (!walls.exposed) return;
  await takeOut(walls, (await findAllPlanted(walls.workspace, walls.protection)).planted);
}
