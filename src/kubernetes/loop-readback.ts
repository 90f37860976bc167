import { isDeepStrictEqual } from "node:util";
import { type Additions, obeyedNotes, specDifferences } from "./pod-readback.ts";
import type { JsonObject } from "./pod-spec.ts";
import { field } from "./cluster-requests.ts";

/**
 * What a cluster may make of the pod of a loop beside what its Job says. The loop holds the model's key and a token, and its
 * clone is to have neither: another container, variable or volume, another account or image is named, as for a box. What
 * a loop may take of its node, and how it is scheduled, is the cluster's to say.
 */
const MAY: Additions = {
  "spec.dnsPolicy": (value) => value === "ClusterFirst",
  // Who answers names would be another one; how many dots a name has is not.
  "spec.dnsConfig": (value) => isDeepStrictEqual(Object.keys(value as object), ["options"]),
  "spec.schedulingGates": () => true,
  "spec.hostname": (value) => typeof value === "string" && value.startsWith("harness-batch-"),
  "spec.enableServiceLinks": (value) => value === true,
  "spec.*.imagePullPolicy": () => true,
};

/** Set by the API where nothing is said; by their names alone, wherever they stand in a volume or a variable. */
const isDefault = (name: string, value: unknown): boolean =>
  (name === "defaultMode" && value === 420) || (name === "apiVersion" && value === "v1");

/** By which the controller of Jobs tells a container its index. */
const INDEX = {
  name: "JOB_COMPLETION_INDEX",
  valueFrom: { fieldRef: { fieldPath: "metadata.labels['batch.kubernetes.io/job-completion-index']" } },
};

/**
 * One line for each field of the pod, or of a template of it, that is not as `planned` and could weaken what is promised of
 * loops; of labels none, as no policy of ours chooses loops to let them reach anything.
 */
export function loopDifferences(planned: unknown, seen: unknown): readonly string[] {
  const own = plain(field(planned, "spec"));
  const there = plain(field(seen, "spec"));
  return [
    ...obeyedNotes({ spec: own } as JsonObject, (field(seen, "metadata") ?? {}) as JsonObject),
    ...specDifferences(own, withImagesOf(own, there), MAY),
  ];
}

type Fields = Readonly<Record<string, unknown>>;

/** Without what the API and the controller of Jobs add to each, and without amounts. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) {
    const list = value.map(plain);
    return list.filter((each) => !isDeepStrictEqual(each, INDEX));
  }
  if (typeof value !== "object" || value === null) return value;
  const kept = Object.entries(value).filter(
    ([name, inner]) => name !== "resources" && name !== "ephemeralContainers" && !isDefault(name, inner),
  );
  return Object.fromEntries(kept.map(([name, inner]) => [name, plain(inner)]));
}

/** An image that was pinned by its digest is the one that was named. */
function withImagesOf(planned: unknown, seen: unknown): unknown {
  if (typeof seen !== "object" || seen === null) return seen;
  const pinned = (list: "containers" | "initContainers"): Fields => {
    const containers = field(seen, list);
    if (!Array.isArray(containers)) return {};
    return {
      [list]: containers.map((each: Fields, at) => {
        const named = field(planned, list, String(at), "image");
        const isSame = new RegExp("@sha256:[0-9a-f]{64}$").test(String(each["image"]));
        return isSame && String(each["image"]).startsWith(`${String(named)}@`)
          ? { ...each, image: named }
          : each;
      }),
    };
  };
  return { ...seen, ...pinned("containers"), ...pinned("initContainers") };
}
