import { EXIT, HarnessError } from "../../core/errors.ts";
import { visibleLine } from "../../core/visible.ts";
import type { ClusterTrouble } from "../../kubernetes/batch-cluster.ts";
import { batchName } from "../../kubernetes/batch-job.ts";

export const describeJob = (hash: string): string => `kubectl describe job ${batchName(hash)}`;

/** Each kind of trouble has its own wording and next step. */
export function clusterError(trouble: ClusterTrouble, hash: string): HarnessError {
  const said = visibleLine(trouble.message);
  switch (trouble.kind) {
    case "away":
    case "expired":
      return new HarnessError(
        EXIT.sandbox,
        `the cluster does not answer: ${said}`,
        "kubectl version; what runs there continues, and --resume watches it again",
        trouble,
      );
    case "quota":
      return new HarnessError(
        EXIT.sandbox,
        `a quota of the namespace is used up: ${said}`,
        "kubectl describe quota; once there is room, continue with --resume",
        trouble,
      );
    case "forbidden":
      return new HarnessError(
        EXIT.usage,
        `the cluster forbids it: ${said}`,
        "kubectl auth can-i --list",
        trouble,
      );
    case "unauthorised":
      return new HarnessError(
        EXIT.usage,
        `the cluster does not accept your credentials: ${said}`,
        "kubectl auth whoami",
        trouble,
      );
    case "no_namespace":
      return new HarnessError(EXIT.usage, `not found: ${said}`, "kubectl get namespaces", trouble);
    case "invalid":
      return new HarnessError(EXIT.sandbox, `the cluster rejected it: ${said}`, describeJob(hash), trouble);
  }
}
