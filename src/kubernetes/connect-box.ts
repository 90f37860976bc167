import { randomBytes } from "node:crypto";
import { RunnerClient } from "../boxes/runner/runner-client.ts";
import { KEY_BYTES } from "../boxes/runner/runner-frames.ts";
import { askReport } from "../boxes/runner/runner-report.ts";
import { EXIT, HarnessError } from "../core/errors.ts";
import { unlessAborted } from "../platform/cancelled.ts";
import type { Cluster } from "./cluster.ts";
import { type Sight, startProbe, targetsOn } from "./network-probe.ts";
import { proveShut, removeOpening, stillShut } from "./network-proof.ts";
import { failureError, podFailure } from "./pod-failure.ts";
import { isAlone, podReportDifferences } from "./pod-report.ts";
import type { PodPlan } from "./pod-spec.ts";
import { attachTo } from "./pod-stream.ts";
import { podOf, running, type Starting } from "./pod-watch.ts";

interface Connecting extends Starting {
  readonly cluster: Cluster;
  readonly plan: PodPlan;
  /** Settled once what lets it out stands, and the pod owns its policies. */
  readonly handed: Promise<void>;
  /** Something that pods there reach where they may: HOST:PORT. */
  readonly probe: string | null;
}

/** A runner that has shown that it is in the box that was planned, and that this reaches nothing. */
export interface Connected {
  readonly client: RunnerClient;
  /** What was seen of its network; undefined: there is none. */
  readonly shown: Sight | undefined;
  /** Before anything is run, and once all is there: nobody has answered meanwhile. */
  readonly still: () => Promise<void>;
}

/** `open`: what another container of the pod saw of its network while it was let out. */
export async function connected(
  { cluster, plan, handed, probe: named, ...starting }: Connecting,
  container: string,
  open?: Sight,
): Promise<Connected> {
  const { signal } = starting;
  const own = named === null ? [] : [named.replace(/:(?=\d+$)/, " ")];
  const node = (await running(cluster, plan, container, starting)).status?.hostIP ?? "";
  const client = new RunnerClient(
    await attachTo(cluster, { pod: plan.name, container, signal }),
    randomBytes(KEY_BYTES),
  );
  try {
    // What lets it out stands first: where a network comes with that, the box has to tell of it.
    await handed;
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
    if (lost === undefined) throw thrown;
    const failure = podFailure(await podOf(cluster, plan));
    throw failure === undefined ? thrown : failureError(failure, thrown);
  }
}

export function refuseUnlessPlanned(who: string, lines: readonly string[]): void {
  if (lines.length === 0) return;
  const more = lines.length > 6 ? `\n    and ${lines.length - 6} more` : "";
  throw new HarnessError(
    EXIT.sandbox,
    `the box is not as planned, says ${who}, so nothing is run in it:\n    ${lines.slice(0, 6).join("\n    ")}${more}`,
    "harness doctor",
  );
}
