import { isDeepStrictEqual } from "node:util";
import { type Additions, field, obeyedNotes, specDifferences } from "./pod-readback.ts";
import type { JsonObject } from "./pod-spec.ts";

/**
 * What a cluster may add to a loop's pod beyond the Job's template. The loop holds the model's key and a token, and its
 * clone must have neither: another container, variable, volume, account or image is reported, as for a box. What a loop
 * may use of its node and how it is scheduled is up to the cluster.
 */
const ALLOWED_ADDITIONS: Additions = {
  "spec.dnsPolicy": (value) => value === "ClusterFirst",
  // Other nameservers could give other answers; the number of dots in a name is harmless.
  "spec.dnsConfig": (value) => isDeepStrictEqual(Object.keys(value as object), ["options"]),
  "spec.schedulingGates": () => true,
  "spec.hostname": (value) => typeof value === "string" && value.startsWith("harness-batch-"),
  "spec.enableServiceLinks": (value) => value === true,
  "spec.*.imagePullPolicy": () => true,
};

/** Defaults set by the API; recognized by name alone, anywhere in a volume or a variable. */
const isDefault = (name: string, value: unknown): boolean =>
  (name === "defaultMode" && value === 420) || (name === "apiVersion" && value === "v1");

/** The variable through which the Job controller gives a container its index. */
const INDEX = {
  name: "JOB_COMPLETION_INDEX",
  valueFrom: { fieldRef: { fieldPath: "metadata.labels['batch.kubernetes.io/job-completion-index']" } },
};

/**
 * One line for each field of the pod or its template that differs from `planned` and could weaken what is promised for
 * loops. Labels are not compared: none of our policies selects loops to let them reach anything.
 */
export function loopDifferences(planned: unknown, seen: unknown): readonly string[] {
  const own = withoutDefaults(field(planned, "spec"));
  const there = withoutDefaults(field(seen, "spec"));
  return [
    ...obeyedNotes({ spec: own } as JsonObject, (field(seen, "metadata") ?? {}) as JsonObject),
    ...specDifferences(own, withImagesOf(own, there), ALLOWED_ADDITIONS),
  ];
}

type Fields = Readonly<Record<string, unknown>>;

/** Removes what the API and the Job controller add to each container, and amounts of resources. */
function withoutDefaults(value: unknown): unknown {
  if (Array.isArray(value)) {
    const list = value.map(withoutDefaults);
    return list.filter((each) => !isDeepStrictEqual(each, INDEX));
  }
  if (typeof value !== "object" || value === null) return value;
  const kept = Object.entries(value).filter(
    ([name, inner]) => name !== "resources" && name !== "ephemeralContainers" && !isDefault(name, inner),
  );
  return Object.fromEntries(kept.map(([name, inner]) => [name, withoutDefaults(inner)]));
}

/** An image pinned by its digest counts as the named image. */
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
