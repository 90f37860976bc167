import { reasonOf } from "../../core/errors.ts";
import type { ExecRequest, ExecResult, OwnedBox } from "../../core/ports.ts";
import {
  type Attack,
  attackScript,
  type Facts,
  judgeAttack,
  type Outcome,
  type Output,
  readAnswers,
  type AttemptResults,
} from "./attack.ts";
import { changedSince, type AttackTarget } from "./attack-target.ts";
import { FILE_ATTACKS } from "./file-attacks.ts";
import { KERNEL_ATTACKS } from "./kernel-attacks.ts";
import { PROCESS_ATTACKS } from "./process-attacks.ts";
import { REACH_ATTACKS } from "./reach-attacks.ts";

/** Attacks that may cost the box come last. */
export const ATTACKS: readonly Attack[] = [
  ...FILE_ATTACKS,
  ...KERNEL_ATTACKS,
  ...REACH_ATTACKS,
  ...PROCESS_ATTACKS,
];

/** The limits that the attacks rely on. */
export const ATTACKED_LIMITS = { memory: 2 ** 28, cpus: null, pids: 128 };

const KEEP = { head: 64 * 1024, tail: 4 * 1024 };
const MS = 10_000;

export interface Battery {
  readonly target: AttackTarget;
  readonly facts: Facts;
  /** Opens a box over the target; one at a time. */
  readonly open: (isolation: "bind" | "overlay", signal: AbortSignal) => Promise<OwnedBox>;
  readonly ownKernel: boolean;
}

/** Runs all attacks, one after the other. If a box cannot be opened, that is an outcome of the attacks that need it. */
export async function runBattery(battery: Battery, signal: AbortSignal): Promise<readonly Outcome[]> {
  const outcomes: Outcome[] = [];
  for (const isolation of ["bind", "overlay"] as const) {
    const attacks = ATTACKS.filter(({ layer }) => (layer === true) === (isolation === "overlay"));
    await using resources = new AsyncDisposableStack();
    const opened = await battery.open(isolation, signal).catch((thrown: unknown) => {
      signal.throwIfAborted();
      return `no box could be opened: ${reasonOf(thrown)}`;
    });
    const box = typeof opened === "string" ? lostBox(opened) : resources.use(opened);
    for (const attack of attacks) {
      outcomes.push(await tryAttack(attack, box, battery, signal));
    }
  }
  return outcomes;
}

type Executor = Pick<OwnedBox, "exec" | "log">;

const lostBox = (why: string): Executor => ({ exec: () => Promise.reject(new Error(why)) });

/** Runs one attack and its twin; the host looks before and after. */
async function tryAttack(
  attack: Attack,
  box: Executor,
  { target, facts, ownKernel }: Pick<Battery, "target" | "facts" | "ownKernel">,
  signal: AbortSignal,
): Promise<Outcome> {
  const [before, visits] = [await target.look(attack.layer === true), target.visits()];
  const run = (script: string, timeoutMs: number): Promise<CommandRun> =>
    runCommand(box, target.filled(script), timeoutMs, signal);
  if (attack.first !== undefined) await run(`cd {W}\n${attack.first}\n:`, MS);
  const tried =
    attack.asks === undefined
      ? readResults(await run(attackScript(attack.attempts), attack.timeoutMs ?? MS))
      : readAsked(attack.asks, await run(attack.asks.run, MS), facts);
  const newVisits = target.visits() - visits;
  // Files that a command planted deep down are searched for when a box ends, or on request.
  if (attack.counts === "host") await box.log?.().catch(() => undefined);
  const changed = [
    ...changedSince(before, await target.look(attack.layer === true)),
    ...(newVisits > 0 ? [`a server of the host was reached ${newVisits} times`] : []),
  ];
  const twin = readResults(await run(attackScript(attack.twin), MS));
  return judgeAttack(attack, { tried, twin, changed, ownKernel });
}

type CommandRun = { readonly result: ExecResult } | { readonly lost: string };

async function runCommand(
  box: Executor,
  script: string,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<CommandRun> {
  const request: ExecRequest = { words: ["sh", "-c", script], timeoutMs, keep: KEEP };
  try {
    return { result: await box.exec(request, signal) };
  } catch (thrown) {
    signal.throwIfAborted();
    return { lost: reasonOf(thrown) };
  }
}

function readResults(one: CommandRun): AttemptResults {
  if ("lost" in one) return { answers: [], cause: null, lost: one.lost };
  const answers = readAnswers(outputOf(one.result).text);
  return { answers, cause: one.result.cause, lost: null };
}

function readAsked({ told }: NonNullable<Attack["asks"]>, one: CommandRun, facts: Facts): AttemptResults {
  if ("lost" in one) return { answers: [], cause: null, lost: one.lost };
  return { answers: told(outputOf(one.result), facts), cause: null, lost: null };
}

function outputOf({ stdout }: ExecResult): Output {
  const kept = stdout.head.length + stdout.tail.length;
  const text = Buffer.concat([stdout.head, stdout.tail]).toString("utf8");
  return { text, kept, total: stdout.total };
}
