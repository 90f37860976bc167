import { randomBytes } from "node:crypto";
import { startCommand } from "../boxes/box-command.ts";
import { RunnerClient } from "../boxes/runner/runner-client.ts";
import { KEY_BYTES } from "../boxes/runner/runner-frames.ts";
import { askReport } from "../boxes/runner/runner-report.ts";
import { EXIT, HarnessError, reasonOf } from "../core/errors.ts";
import { visibleLine } from "../core/visible.ts";
import { unlessAborted } from "../platform/cancelled.ts";
import type { Cluster } from "./cluster.ts";
import { type Sight, startProbe, targetsOn } from "./network-probe.ts";
import { proveShut, removeOpening, stillShut } from "./network-proof.ts";
import { failureError, podFailure } from "./pod-failure.ts";
import { isAlone, podReportDifferences } from "./pod-report.ts";
import { placesBeside, type PodPlan, scratchOf } from "./pod-spec.ts";
import { attachTo } from "./pod-stream.ts";
import { podOf, untilRunning, type Starting } from "./pod-watch.ts";
import { NotFromPool } from "./warm-pool.ts";

interface Connecting extends Starting {
  readonly cluster: Cluster;
  readonly plan: PodPlan;
  /** The pod; one from a pool has another name than planned. */
  readonly pod: { readonly name: string };
  /** Settles once the policy that lets the pod out exists and the pod owns its policies. */
  readonly handed: () => Promise<void>;
  /** HOST:PORT that pods in the cluster can reach if allowed. */
  readonly probe: string | null;
}

/** A runner in the planned box, with proof that the box reaches nothing. */
export interface ConnectedBox {
  readonly client: RunnerClient;
  /** The last observation of the network; undefined if the box has none. */
  readonly shown: Sight | undefined;
  /**
   * To be called once everything is in the box and before anything runs: checks that nothing has answered meanwhile.
   */
  readonly still: () => Promise<void>;
}

/** `open`: what another container of the pod saw of the network while it was let out. */
export async function connectBox(
  { cluster, plan, pod, handed, probe: named, ...starting }: Connecting,
  container: string,
  open?: Sight,
): Promise<ConnectedBox> {
  const { signal } = starting;
  const own = named === null ? [] : [named.replace(/:(?=\d+$)/, " ")];
  const node = (await untilRunning(cluster, pod, container, starting)).status?.hostIP ?? "";
  const client = new RunnerClient(
    await attachTo(cluster, { pod: pod.name, container, signal }),
    randomBytes(KEY_BYTES),
  );
  try {
    if (plan.kind === "Claim") await refuseUsed(client, plan, signal);
    // The policy that lets the pod out must exist first: if it brings a network, the report has to show it.
    await handed();
    const report = await askReport(client, []);
    refuseUnlessPlanned("the box itself", podReportDifferences(plan, report));
    if (isAlone(report)) {
      await removeOpening(cluster, plan);
      return { client, shown: undefined, still: () => Promise.resolve() };
    }
    const probe = startProbe(client, [...targetsOn(node), ...own]);
    const shown = await proveShut(cluster, plan, { look: () => unlessAborted(probe.look(), signal), open });
    return { client, shown, still: () => stillShut(probe, shown) };
  } catch (thrown) {
    const lost = client.lost;
    client.close();
    if (lost === undefined || thrown instanceof NotFromPool) throw thrown;
    const failure = podFailure(await podOf(cluster, pod));
    throw failure === undefined ? thrown : failureError(failure, thrown);
  }
}

/**
 * Rejects a pod that was used while it waited: its runner obeys the first client that greets it and ends with that
 * client. Anyone who came another way left traces: files where a box may write, System V or POSIX objects, processes.
 */
async function refuseUsed(client: RunnerClient, plan: PodPlan, signal: AbortSignal): Promise<void> {
  try {
    await askReport(client, []);
    const places = [...scratchOf(plan).map((one) => one.path), ...placesBeside(plan), plan.workspace];
    const command = {
      words: ["sh", "-c", LIST_LEFTOVERS, plan.network ? "network" : "alone", ...places],
      folder: "/",
      timeoutMs: 60_000,
      keep: KEEP,
    };
    const { exit_code, stdout } = await startCommand(client, command, { workspace: "/" }).ended;
    const left = Buffer.from(stdout.head).toString("utf8").trim();
    if (exit_code === 0 && left === "") return;
    throw new NotFromPool(`its pod was used before: ${visibleLine(left)} is left over`);
  } catch (thrown) {
    signal.throwIfAborted();
    throw thrown instanceof NotFromPool ? thrown : new NotFromPool(reasonOf(thrown), { cause: thrown });
  }
}

const KEEP = { head: 400, tail: 0 };
/**
 * Prints everything besides the runner and this script. If hosts may be granted, the runner starts its bridge before it
 * accepts a word, within the first two seconds of the pod: even a pod of its own is not a box that early.
 */
const LIST_LEFTOVERS = `begun() { line=$(cat /proc/$1/stat); set -- \${line##*) }; echo \${20}; }
for one in /proc/[0-9]*; do
  pid=\${one#/proc/}
  case $pid in 1 | $$ | $PPID) continue ;; esac
  name=$(cat $one/comm)
  [ "$0 $name" = "network bridge" ] && [ $(($(begun $pid) - $(begun 1))) -lt 200 ] && continue
  echo "the process $name"
done
for place in /dev/mqueue /dev/shm; do [ ! -d $place ] || set -- "$@" $place; done
find "$@" -mindepth 1 -print -quit && tail -qn +2 /proc/sysvipc/msg /proc/sysvipc/sem /proc/sysvipc/shm`;

export function refuseUnlessPlanned(who: string, lines: readonly string[]): void {
  if (lines.length === 0) return;
  const more = lines.length > 6 ? `\n    and ${lines.length - 6} more` : "";
  throw new HarnessError(
    EXIT.sandbox,
    `the box is not as planned, according to ${who}, so nothing is run in it:\n    ${lines.slice(0, 6).join("\n    ")}${more}`,
    "harness doctor",
  );
}
