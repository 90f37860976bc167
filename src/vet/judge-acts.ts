import type { Finding, Observed, VetStep } from "../core/behaviour.ts";
import { formatSize } from "../core/text/bounds.ts";
import type { Act } from "../core/behaviour.ts";
import { counted, firstOf } from "../core/text/short-lists.ts";
import { ActFindings, type RunRule } from "./acts/act-rules.ts";
import { type AroundActs, judgeFile } from "./acts/judge-files.ts";
import { judgeNetwork } from "./acts/judge-network.ts";
import { judgeCall, judgeDropped, judgeProcesses } from "./acts/judge-processes.ts";
import { talkIn } from "./look/model-talk.ts";
import { isCallAct, isPathAct, SeenChains } from "./acts/process-chain.ts";

/** Rules on what a command was seen doing. Pure: the findings follow from the observation alone. */

export interface ObservedStep {
  /** The number of the step. */
  readonly number: number;
  readonly what: VetStep["what"];
  readonly cause: VetStep["cause"];
  readonly reason: string;
  readonly timed_out: boolean;
  /** Processes that outlived the command. */
  readonly leftovers: number;
  /** Bytes that the command printed. */
  readonly printed: number;
  /** The part of the output that was kept. */
  readonly output: string;
  readonly observed: Observed;
  readonly connections: VetStep["connections"];
  readonly changes: VetStep["changes"];
}

export interface JudgedAround extends AroundActs {
  /** Files of the repository before anything ran. */
  readonly files: number;
}

export function judgeActs(step: ObservedStep, around: JudgedAround): readonly Finding[] {
  const { observed } = step;
  const chains = new SeenChains(observed.processes, around.workspace);
  const found = new ActFindings(step, chains);
  judgeTouch(observed, found);
  for (const act of observed.acts) {
    if (isTouch(act, observed)) continue;
    if (isPathAct(act)) judgeFile(act, { around, what: step.what, chains, found });
    else if (isCallAct(act)) judgeCall(act, found);
  }
  judgeNetwork(observed, step.connections, step, found);
  judgeProcesses(observed, step, chains, found);
  judgeDropped(observed.acts.filter(isPathAct), observed.processes, step, {
    chains,
    found,
    workspace: around.workspace,
  });
  judgeChanges(step, around, found);
  judgeEnding(step, found);
  return found.all();
}

function judgeTouch({ touched }: Observed, found: ActFindings): void {
  if (touched === null) return;
  found.add("run.canary", `touches ${touched.canary} (${touched.path})`, touched, touched.path);
}

const isTouch = (act: Act, { touched }: Observed): boolean =>
  touched !== null && isPathAct(act) && act.path === touched.path && act.pid === touched.pid;

const BUILT =
  /^(?:dist|build|out|target|coverage|\.?cache|node_modules|\.next|\.nuxt|__pycache__|[\w.-]*\.egg-info|public|tmp)\//;
const MANY_DELETED = 20;
const FEW = 3;
const MAX_SHOWN = 5;

/** Judges changes of the tree, also those that no process was seen making. */
function judgeChanges(
  { changes, observed, what }: ObservedStep,
  around: JudgedAround,
  found: ActFindings,
): void {
  const { added, modified, deleted, more } = changes;
  const deletedSources = deleted.filter((path) => !BUILT.test(path));
  if (deletedSources.length >= FEW && deletedSources.length >= around.files / 2)
    found.add("run.wipe", `removes ${deletedSources.length} of the repository's ${around.files} files`, null);
  else if (deletedSources.length + more > MANY_DELETED && deletedSources.length > 0)
    found.add(
      "run.deletes",
      `removes ${deletedSources.length} files: ${deletedSources.slice(0, MAX_SHOWN).join(", ")}`,
      null,
    );
  const changedSources = modified.filter(
    (path) => (!BUILT.test(path) || path.startsWith("lib/")) && !path.startsWith(".git/"),
  );
  if (changedSources.length > 0)
    found.add("run.sources", `changes ${firstOf(changedSources, MAX_SHOWN)}`, null);
  if (observed.by === "calls" || what === "given") return;
  const [first] = observed.processes;
  const [pid, at] = [first?.pid ?? 0, 0];
  const chains = new SeenChains(observed.processes, around.workspace);
  for (const [kind, paths] of [["make", added] as const, ["write", modified] as const])
    for (const path of paths)
      judgeFile(
        { kind, path: `${around.workspace}/${path}`, pid, at, times: 1 },
        { around, what, chains, found },
      );
}

const FLOOD = 16 * 2 ** 20;

function judgeEnding(step: ObservedStep, found: ActFindings): void {
  const { what, cause, reason, timed_out, printed, observed } = step;
  const watched = what === "install" || what === "build";
  if (timed_out || cause === "timeout")
    found.add(
      watched ? "run.time" : "run.time-test",
      reason === "" ? "did not finish in time" : reason,
      null,
    );
  const limit = cause === null ? undefined : LIMITS[cause];
  if (limit !== undefined) found.add(limit, reason, null);
  if (printed > FLOOD) found.add("run.flood", `prints ${formatSize(printed)}`, null);
  const talk = talkIn(step.output);
  if (talk !== undefined) found.add("run.talk", `prints: ${talk}`, null);
  judgeLeftovers(step, watched, found);
  const { processes, acts } = observed.missed;
  if (processes + acts > 0)
    found.add("run.more", `did more than was recorded: ${processes} processes and ${acts} acts`, null);
}

const LIMITS: Readonly<Record<string, RunRule>> = {
  pids: "run.fork-bomb",
  memory: "run.memory",
  disk: "run.disk",
};

function judgeLeftovers(
  { leftovers, observed, timed_out }: ObservedStep,
  watched: boolean,
  found: ActFindings,
): void {
  if (leftovers === 0 || observed.touched !== null || timed_out) return;
  const daemon = observed.processes.some(({ words }) => KNOWN_DAEMON.test(words.join(" ")));
  const rule = watched && !daemon ? "run.left-behind" : "run.left-behind-test";
  const text = `leaves ${counted(leftovers, "process", "processes")} behind, which ended with it`;
  found.add(rule, text, null);
}

const KNOWN_DAEMON =
  /gradle.*daemon|kotlin.*daemon|GradleDaemon|esbuild.*--service|watchman|sccache|nailgun|VBCSCompiler|MSBuild/i;
