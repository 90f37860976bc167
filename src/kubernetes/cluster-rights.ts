import { COMMON_LABELS } from "./batch-job.ts";
import type { Cluster, PolicyRule, Role, RoleBinding, ServiceAccount } from "./cluster.ts";
import type { OwnBox } from "./pod-spec.ts";

/**
 * What a loop may ask of the API server, only in its own namespace: what a box needs, and no more. A test removes each
 * verb and sees something fail.
 */
export const LOOP_RULES: readonly PolicyRule[] = [
  { apiGroups: [""], resources: ["pods"], verbs: ["create", "delete", "get", "list", "watch"] },
  { apiGroups: [""], resources: ["pods/attach"], verbs: ["create", "get"] },
  { apiGroups: ["networking.k8s.io"], resources: ["networkpolicies"], verbs: ["create", "delete", "list"] },
];

/** What a box that is a Sandbox needs in addition. */
export const SANDBOX_RULE: PolicyRule = {
  apiGroups: ["agents.x-k8s.io"],
  resources: ["sandboxes"],
  verbs: ["create", "delete", "get", "list"],
};

/** What a box from a warm pool needs in addition to the rights for a pod of its own, which it may have to become. */
const POOL_RULES: readonly PolicyRule[] = [
  {
    apiGroups: ["extensions.agents.x-k8s.io"],
    resources: ["sandboxclaims"],
    verbs: ["create", "delete", "get", "list"],
  },
  { apiGroups: ["extensions.agents.x-k8s.io"], resources: ["sandboxwarmpools"], verbs: ["get"] },
];

/** If every box is a Sandbox, its controller creates the pods. */
export const boxRules = (boxes: OwnBox, pool = false): readonly PolicyRule[] => [
  ...(boxes === "Pod"
    ? LOOP_RULES
    : [
        ...LOOP_RULES.map((rule) =>
          rule.resources?.includes("pods") === true
            ? { ...rule, verbs: rule.verbs.filter((verb) => verb !== "create") }
            : rule,
        ),
        SANDBOX_RULE,
      ]),
  ...(pool ? POOL_RULES : []),
];

interface RoleNames {
  readonly namespace: string;
  readonly serviceAccount: string;
  readonly boxes: OwnBox;
  /** Whether boxes may come from a warm pool. */
  readonly pool: boolean;
}

export function loopRole({
  namespace,
  serviceAccount,
  boxes,
  pool,
}: RoleNames): readonly [ServiceAccount, Role, RoleBinding] {
  const metadata = {
    name: serviceAccount,
    namespace,
    labels: { ...COMMON_LABELS, "dev.harness.part": "rights" },
  };
  return [
    // Only the one container that asks for the token gets it.
    { apiVersion: "v1", kind: "ServiceAccount", metadata, automountServiceAccountToken: false },
    {
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "Role",
      metadata,
      rules: boxRules(boxes, pool).map((rule) => ({ ...rule })),
    },
    {
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "RoleBinding",
      metadata,
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: serviceAccount },
      subjects: [{ kind: "ServiceAccount", name: serviceAccount, namespace }],
    },
  ];
}

interface Right {
  readonly group: string;
  readonly resource: string;
  readonly verb: string;
}

interface CheckedRights {
  readonly asked: number;
  /** Missing rights, as `verb resource`. */
  readonly missing: readonly string[];
}

/** Which of these rights the caller has in the namespace: anyone who may use the API may ask that. */
export async function checkedRights(cluster: Cluster, rules: readonly PolicyRule[]): Promise<CheckedRights> {
  const wanted = rules.flatMap(({ apiGroups = [], resources = [], verbs }) =>
    resources.flatMap((resource) => verbs.map((verb) => ({ group: apiGroups[0] ?? "", resource, verb }))),
  );
  const answers = await Promise.all(wanted.map((right) => mayI(cluster, right)));
  const missing = wanted.filter((_, nth) => answers[nth] !== true);
  return { asked: wanted.length, missing: missing.map(({ resource, verb }) => `${verb} ${resource}`) };
}

async function mayI(cluster: Cluster, { group, resource, verb }: Right): Promise<boolean> {
  const [name = "", subresource] = resource.split("/");
  const attributes = { namespace: cluster.namespace, group, resource: name, verb };
  const answer = await cluster.call("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {
    method: "POST",
    body: {
      apiVersion: "authorization.k8s.io/v1",
      kind: "SelfSubjectAccessReview",
      spec: { resourceAttributes: subresource === undefined ? attributes : { ...attributes, subresource } },
    },
  });
  const { status } = answer as { readonly status?: { readonly allowed?: unknown } };
  return status?.allowed === true;
}
