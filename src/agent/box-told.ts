import { type BoxLog, type GitEntry, type MadeCommit, type MovedAway, RETURNS } from "../core/box-log.ts";
import type { EventBody, RunChanges } from "../core/events.ts";
import type { Handoff } from "../core/handoff.ts";
import { commitHandoff, mergedHandoff } from "../policy/handoff/commits.ts";

/** What the harness itself did in a workspace, as it is told of: by events, as JSON, on the screen. */

type Finished = Extract<EventBody, { readonly type: "run.finished" }>;

export interface Told extends Required<
  Pick<Finished, "quarantined" | "quarantined_total" | "commits" | "commits_total" | "staged">
> {
  readonly handoff: readonly Handoff[];
}

/** Of the paths of one commit. */
const MOST_PATHS = 100;

export function toldOf(log: BoxLog, workspace: string): Told {
  const commits = log.commits.map((commit) => ({ commit, handoff: handoffIn(commit, workspace) }));
  const staged = stagedHandoff(log.staged, workspace);
  return {
    quarantined: log.quarantined.map(({ from, to, takeBack }) => ({ from, to, take_back: takeBack })),
    quarantined_total: log.quarantined_total,
    commits: commits.map(({ commit: { hash, subject, files }, handoff }) => ({
      hash,
      subject,
      files,
      protected: dangerousIn(handoff),
    })),
    commits_total: log.commits_total,
    staged: dangerousIn(staged),
    handoff: mergedHandoff(
      ...commits.map(({ handoff }) => handoff),
      staged,
      log.quarantined.map((moved) => movedHandoff(moved, workspace)),
    ),
  };
}

const dangerousIn = (handoff: readonly Handoff[]): readonly string[] =>
  handoff
    .filter(({ tier }) => tier === "dangerous")
    .map(({ path }) => path)
    .slice(0, MOST_PATHS);

function handoffIn({ hash, entries, whole }: MadeCommit, workspace: string): readonly Handoff[] {
  const name = hash === "unknown" ? "a commit that was cut short" : `commit ${hash.slice(0, 12)}`;
  const found = commitHandoff(entries, workspace).map((one) => ({
    ...one,
    reason: `in ${name}: ${one.reason}; ${RETURNS}`,
  }));
  const unseen = { path: ".git", tier: "dangerous", reason: `${name}: not all of its paths were looked at` };
  return whole ? found : [...found, unseen as Handoff];
}

const stagedHandoff = (staged: readonly GitEntry[], workspace: string): readonly Handoff[] =>
  commitHandoff(staged, workspace).map((one) => ({
    ...one,
    reason: `staged: ${one.reason}; ${RETURNS}`,
  }));

/** It is not where the host would obey it any more. */
function movedHandoff({ from, to, earlier }: MovedAway, workspace: string): Handoff {
  const made = earlier === true ? "it came since a run began that was killed" : "made in the box";
  const done =
    to === null ? "removed, as neither file, folder nor link" : `moved out of the workspace: ${to}`;
  return { path: below(workspace, from), tier: "look", reason: `${made}, and ${done}` };
}

const below = (workspace: string, file: string): string =>
  file.startsWith(`${workspace}/`) ? file.slice(workspace.length + 1) : file;

interface Seen {
  readonly changes: RunChanges | null;
  readonly handoff: readonly Handoff[];
}

/** What was seen of the workspace before its last search, without what that moved out, and with what is told of it. */
export function seenWith({ changes, handoff }: Seen, log: BoxLog, workspace: string): Seen & Told {
  const told = toldOf(log, workspace);
  const stays = staysBeside(log, workspace);
  const left = changes && stillThere(changes, log, workspace);
  const looks = mergedHandoff(
    handoff.filter(({ path }) => stays(path)),
    told.handoff,
  );
  return { ...told, changes: left, handoff: looks };
}

type Paths = Pick<RunChanges, "added" | "modified" | "deleted">;

/** Without what was moved out of the workspace after they were listed. */
export function stillThere<C extends Paths>(changes: C, log: BoxLog, workspace: string): C {
  const stays = staysBeside(log, workspace);
  return { ...changes, added: changes.added.filter(stays), modified: changes.modified.filter(stays) };
}

function staysBeside({ quarantined }: BoxLog, workspace: string): (path: string) => boolean {
  const gone = quarantined.map(({ from }) => below(workspace, from));
  return (path) => !gone.some((moved) => path === moved || path.startsWith(`${moved}/`));
}
