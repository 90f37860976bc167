import { EXIT, HarnessError } from "../../core/errors.ts";
import { firstLines } from "../../core/wording.ts";
import { visibleLine } from "../../core/visible.ts";
import type { SeenPod } from "../../kubernetes/batch-cluster.ts";
import { BATCH_LABEL, batchName } from "../../kubernetes/batch-job.ts";
import { loopDifferences } from "../../kubernetes/pod-readback.ts";

/** A pod that the cluster made differently from its Job. */
export interface ChangedPod {
  readonly name: string;
  readonly lines: readonly string[];
}

/** Compares each pod of a batch once with its template, while the pod may still do something. */
export class PodComparison {
  changed: ChangedPod | undefined;
  readonly #template: unknown;
  readonly #looked = new Set<string>();

  constructor(template: unknown) {
    this.#template = template;
  }

  /** Whether this is the first pod that differs. */
  look({ name, gone, ending, phase }: SeenPod, object: unknown): boolean {
    if (gone || ending || (phase !== "waiting" && phase !== "running")) return false;
    if (this.changed !== undefined || this.#looked.has(name)) return false;
    this.#looked.add(name);
    const lines = loopDifferences(this.#template, object);
    if (lines.length > 0) this.changed = { name, lines };
    return lines.length > 0;
  }
}

const SHOWN = 6;

const listOf = (lines: readonly string[]): string =>
  firstLines(lines, SHOWN, visibleLine)
    .map((line) => `\n    ${line}`)
    .join("");

const leaveOut = `exclude pods with the label ${BATCH_LABEL} from the cluster's admission webhooks and policies`;

/**
 * A changed pod is refused as a changed box is: an added container could take the model's key, another account could do
 * more than a loop may.
 */
export const changedError = ({ name, lines }: ChangedPod, hash: string): HarnessError =>
  new HarnessError(
    EXIT.sandbox,
    `the pod ${visibleLine(name)} differs from its Job's template, so the batch has been stopped:${listOf(lines)}`,
    `${leaveOut}; kubectl patch job ${batchName(hash)} -p '{"spec":{"suspend":false}}'; then --resume`,
  );

/** For a Job that is only tried. */
export const changedTemplate = (lines: readonly string[]): HarnessError =>
  new HarnessError(
    EXIT.sandbox,
    `the cluster would create different pods from those requested, so nothing was started:${listOf(lines)}`,
    leaveOut,
  );
