import type { Cluster } from "./cluster.ts";
import type { PolicyRule } from "./manifest.ts";

interface Right {
  readonly group: string;
  readonly resource: string;
  readonly verb: string;
}

export interface CheckedRights {
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
