import type { PolicyRule, Role, RoleBinding, ServiceAccount } from "./manifest.ts";
import { COMMON_LABELS } from "./batch-job.ts";
import type { BoxKind } from "./pod-spec.ts";

/**
 * What a loop may ask of the API server, in its own namespace alone: what a box there takes, and no more. A test takes
 * each verb away and has something fail.
 */
export const LOOP_RULES: readonly PolicyRule[] = [
  { apiGroups: [""], resources: ["pods"], verbs: ["create", "delete", "get", "list", "watch"] },
  { apiGroups: [""], resources: ["pods/attach"], verbs: ["create", "get"] },
  { apiGroups: ["networking.k8s.io"], resources: ["networkpolicies"], verbs: ["create", "delete", "list"] },
];

/** What a box that is a Sandbox takes beside it. */
export const SANDBOX_RULE: PolicyRule = {
  apiGroups: ["agents.x-k8s.io"],
  resources: ["sandboxes"],
  verbs: ["create", "delete", "get", "list"],
};

/** Where every box is a Sandbox its controller makes the pods. */
export const boxRules = (boxes: BoxKind): readonly PolicyRule[] =>
  boxes === "Pod"
    ? LOOP_RULES
    : [
        ...LOOP_RULES.map((rule) =>
          rule.resources?.includes("pods") === true
            ? { ...rule, verbs: rule.verbs.filter((verb) => verb !== "create") }
            : rule,
        ),
        SANDBOX_RULE,
      ];

export interface RoleNames {
  readonly namespace: string;
  readonly serviceAccount: string;
  readonly boxes: BoxKind;
}

export function loopRole({
  namespace,
  serviceAccount,
  boxes,
}: RoleNames): readonly [ServiceAccount, Role, RoleBinding] {
  const metadata = {
    name: serviceAccount,
    namespace,
    labels: { ...COMMON_LABELS, "dev.harness.part": "rights" },
  };
  return [
    // Its token is in the one container that asks for it.
    { apiVersion: "v1", kind: "ServiceAccount", metadata, automountServiceAccountToken: false },
    {
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "Role",
      metadata,
      rules: boxRules(boxes).map((rule) => ({ ...rule })),
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
