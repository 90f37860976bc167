import { rm } from "node:fs/promises";
import path from "node:path";
import { quote } from "shell-quote";
import type { MovedAway } from "../../core/box-log.ts";
import { EXIT, HarnessError, reasonOf } from "../../core/errors.ts";
import { lockWorkspace } from "../../boxes/life/workspace-lock.ts";
import { firstOf } from "../../core/text/short-lists.ts";
import { type DeadRecord, deadRecords, type RecordedProtection } from "../life/protected-record.ts";
import { findAllPlanted } from "../../boxes/protect/planted.ts";
import { quarantine } from "../../boxes/protect/quarantine.ts";
import { look } from "../../boxes/protect/solid.ts";
import { walk } from "../../boxes/protect/protected-walk.ts";
import type { BoxMaker, BoxRequest } from "./prepare-box.ts";

/**
 * Moves what a killed run may have planted out of the workspace before anything there counts as the user's. Such files
 * cannot be told from what the user has made since, so each is reported with its reason and the command that brings it
 * back. A box that only reads is no danger and moves nothing: it only reports.
 */
export async function recoverPlanted(
  { stateDir, onWarning }: BoxMaker,
  { workspace, mode, isolation }: BoxRequest,
  /** Resolves once no box of a dead run is left; to false if one may be left. */
  reaped: () => Promise<boolean>,
): Promise<readonly MovedAway[]> {
  const dead = await deadRecords(stateDir, workspace);
  if (dead.length === 0) return [];
  const alone = await reaped();
  const moved: MovedAway[] = [];
  for (const { file, held } of dead) {
    if (held === undefined) await refuseUnknown(file, { workspace, mode, onWarning });
    else if (mode === "read-only") await tellPlanted(held, onWarning);
    else {
      const sweep = sweeping({ stateDir, onWarning }, { file, held }, alone);
      moved.push(...(await (isolation === "bind" ? sweep() : sweep().catch(warnInstead(onWarning)))));
    }
  }
  return moved;
}

type Warn = BoxMaker["onWarning"];

/** Nothing that is there now can be recognized as the user's. */
async function refuseUnknown(
  file: string,
  { workspace, mode, onWarning }: Pick<BoxRequest, "workspace" | "mode"> & { readonly onWarning: Warn },
): Promise<void> {
  const { found } = await walk(path.resolve(workspace));
  const there = firstOf(found, MAX_NAMED) || "nothing";
  const message = `a run in ${workspace} was killed, and the list of files there that the host would obey is lost: ${file} is damaged. There is now: ${there}`;
  if (mode === "read-only") return onWarning(message);
  throw new HarnessError(
    EXIT.sandbox,
    message,
    `check these, remove what is not yours, then: rm ${quote([file])}`,
  );
}

const MAX_NAMED = 20;

const plantedReason = (since: string): string =>
  `was not there when a run that was killed began here at ${since}, and may come from that run`;

async function tellPlanted({ workspace, since, protection }: RecordedProtection, warn: Warn): Promise<void> {
  const { planted } = await findAllPlanted(workspace, protection, false).catch(() => ({ planted: [] }));
  for (const file of planted.slice(0, MAX_NAMED))
    warn(
      `${file} ${plantedReason(since)}: check it; the next run that can write moves it out of the workspace`,
    );
  if (planted.length > MAX_NAMED) warn(`${planted.length - MAX_NAMED} more in ${workspace}`);
}

const sweeping =
  (
    { stateDir, onWarning }: Pick<BoxMaker, "stateDir" | "onWarning">,
    { file, held }: DeadRecord & { readonly held: RecordedProtection },
    alone: boolean,
  ): (() => Promise<readonly MovedAway[]>) =>
  async () => {
    const { workspace, since, protection } = held;
    const stats = await look(workspace);
    if (stats?.isDirectory() !== true) {
      await rm(file, { force: true });
      return [];
    }
    const { dev, ino } = stats;
    await using _ = await lockWorkspace({ path: workspace, dev, ino, write: true, stateDir });
    const { planted, warnings, unseen } = await findAllPlanted(workspace, protection);
    const moved = await quarantine(workspace, planted, path.join(stateDir, "quarantine"));
    for (const warning of warnings) onWarning(warning);
    for (const { from, to, takeBack } of moved.slice(0, MAX_NAMED))
      onWarning(
        to === null
          ? `${from} ${plantedReason(since)}: removed, because it was not a file, folder or link`
          : `${from} ${plantedReason(since)}: moved out of the workspace; if it is yours, take it back: ${takeBack}`,
      );
    if (moved.length > MAX_NAMED)
      onWarning(`${moved.length - MAX_NAMED} more were moved out of ${workspace}`);
    if (unseen.length === 0 && alone) await rm(file, { force: true });
    return moved.map(({ from, to, takeBack }) => ({ from, to, takeBack, earlier: true }));
  };

/** A layer or a copy lets none of it out; the next start that can write tries again. */
const warnInstead =
  (warn: Warn) =>
  (thrown: unknown): readonly MovedAway[] => {
    warn(`the workspace was not searched for what a killed run may have left: ${reasonOf(thrown)}`);
    return [];
  };
