import * as z from "zod";
import { badResultsPlace } from "../core/bucket-address.ts";

/** The settings about boxes and batches in a cluster. Null: none, or the cluster's own default. */

/** A name as the API accepts it, of an object or a part of one. */
const objectName = z
  .string("expected text")
  .max(253, "expected at most 253 characters")
  .regex(
    /^[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?$/,
    "expected a name of lower-case letters, digits, dots and dashes",
  );

const labelKey = z
  .string()
  .regex(
    /^(?:[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?\/)?[A-Za-z0-9](?:[\w.-]{0,61}[A-Za-z0-9])?$/,
    "expected the name of a label, such as kubernetes.io/arch",
  );
const labelValue = z
  .string("expected the value of a label")
  .regex(/^(?:[A-Za-z0-9](?:[\w.-]{0,61}[A-Za-z0-9])?)?$/, "expected the value of a label");

const SECCOMP =
  "expected RuntimeDefault, or Localhost/PATH of a profile in the kubelet's seccomp folder on every node";
const seccomp = z
  .string(SECCOMP)
  .regex(/^(?:RuntimeDefault|Localhost\/(?!.*\.\.)\w[\w./-]{0,200})$/, SECCOMP);

const PROBE = "expected an address in the cluster, such as 10.0.0.1:443";
const probe = z.string(PROBE).regex(/^[0-9a-zA-Z][0-9a-zA-Z.-]{0,252}:\d{1,5}$/, PROBE);

const REGISTRY = "expected a repository in a registry, such as registry.example/team/harness-env";
const registry = z
  .string(REGISTRY)
  .max(255, REGISTRY)
  .regex(
    /^(?:localhost|[a-z0-9-]+(?:\.[a-z0-9-]+)+|[a-z0-9-]+(?=:))(?::\d{1,5})?(?:\/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)+$/,
    REGISTRY,
  );

const resultsBucket = z.string("expected s3://BUCKET/PREFIX").superRefine((text, context) => {
  const why = badResultsPlace(text);
  if (why !== undefined) context.addIssue({ code: "custom", message: why });
});

const SANDBOX_RESOURCE = ["auto", "never", "always"] as const;

const PULL_POLICIES = ["IfNotPresent", "Always", "Never"] as const;

interface SharedRules {
  readonly image: z.ZodType<string>;
  readonly duration: (minimum: number, maximum: number) => z.ZodType<number>;
  readonly size: (minimum: number, maximum: number) => z.ZodType<number>;
}

const MINUTE = 60_000;
const MiB = 2 ** 20;

/** All keys may be left out. The rules of images, durations and sizes come from the settings. */
export const kubernetesRule = ({ image, duration, size }: SharedRules) =>
  z.strictObject({
    /** Must contain the runner of the same version, and come from a registry that the nodes reach. */
    image: image.nullable().default(null),
    /** Where `env build` pushes environments, and where pods pull them from. */
    registry: registry.nullable().default(null),
    pull_policy: z.enum(PULL_POLICIES, `expected one of ${PULL_POLICIES.join(", ")}`).default("IfNotPresent"),
    pull_secret: objectName.nullable().default(null),
    runtime_class: objectName.nullable().default(null),
    seccomp: seccomp.default("RuntimeDefault"),
    node_selector: z.record(labelKey, labelValue, "expected names and values of labels").default({}),
    /** Whether the controller of a Sandbox (agents.x-k8s.io) makes the pods. */
    sandbox_resource: z
      .enum(SANDBOX_RESOURCE, `expected one of ${SANDBOX_RESOURCE.join(", ")}`)
      .default("auto"),
    /** A SandboxWarmPool of agent-sandbox; its pods become boxes if they fit. */
    warm_pool: objectName.nullable().default(null),
    /** The cluster ends a box at this time, whatever has become of its harness. */
    deadline: duration(MINUTE, 7 * 24 * 60 * MINUTE).default(8 * 60 * MINUTE),
    /** For scheduling, pulling and starting together. */
    start_timeout: duration(MINUTE / 12, 60 * MINUTE).default(5 * MINUTE),
    /** The part of that time spent waiting for a node with room. */
    schedule_timeout: duration(1000, 60 * MINUTE).default(2 * MINUTE),
    /** An address that pods in the cluster can reach if they are allowed to, used to show that boxes cannot. */
    probe: probe.nullable().default(null),
    /** For a batch in the cluster: the image of the loop, and a volume claim or a bucket for results and sessions. */
    loop_image: image.nullable().default(null),
    results_claim: objectName.nullable().default(null),
    results_bucket: resultsBucket.nullable().default(null),
    /** A Secret whose values become variables of the loop: the address of the model server, and keys. */
    model_secret: objectName.nullable().default(null),
    /** A queue of Kueue. */
    queue: objectName.nullable().default(null),
    service_account: objectName.nullable().default(null),
    /** Most disk space that the copy of the workspace may take on its node. */
    disk: size(64 * MiB, 2 ** 40).default(4096 * MiB),
  });
