import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { type LOOP_RULES, loopRole } from "../../src/kubernetes/cluster-rights.ts";
import type { Scratch } from "../fixtures/scratch.ts";
import { type ClusterApi, look } from "./cluster-api.ts";
import type { OwnSpace } from "./cluster-pods.ts";
import type { Cluster } from "./cluster.ts";

export type Rules = typeof LOOP_RULES;

/** A kubeconfig for an account of the namespace with only these rights. */
export async function accountWith(
  { api, kubeconfig }: Pick<Cluster, "api" | "kubeconfig">,
  space: OwnSpace,
  place: Scratch,
  rules: Rules,
): Promise<string> {
  const [account, role, binding] = loopRole({
    namespace: space.name,
    serviceAccount: "loop",
    boxes: "Pod",
    pool: false,
  });
  const rbac = `/apis/rbac.authorization.k8s.io/v1/namespaces/${space.name}`;
  await api.must("POST", `/api/v1/namespaces/${space.name}/serviceaccounts`, account);
  await api.must("POST", `${rbac}/roles`, { ...role, rules });
  await api.must("POST", `${rbac}/rolebindings`, binding);
  const { status } = await api.must("POST", `/api/v1/namespaces/${space.name}/serviceaccounts/loop/token`, {
    apiVersion: "authentication.k8s.io/v1",
    kind: "TokenRequest",
    spec: {},
  });
  const token = String(look(status, "token"));
  const config = JSON.parse(await readFile(kubeconfig, "utf8")) as {
    readonly users: { user: object }[];
    readonly contexts: { context: { namespace: string } }[];
  };
  for (const user of config.users) user.user = { token };
  for (const { context } of config.contexts) context.namespace = space.name;
  await rightsAreIn(api.as(token), space, rules);
  return place.write("account", JSON.stringify(config));
}

/** Waits until the server has noticed the role. */
async function rightsAreIn(api: ClusterApi, space: OwnSpace, rules: Rules): Promise<void> {
  const [first] = rules;
  const resourceAttributes = {
    namespace: space.name,
    verb: first?.verbs[0] ?? "",
    resource: first?.resources?.[0] ?? "",
    group: first?.apiGroups?.[0] ?? "",
  };
  const asked = {
    apiVersion: "authorization.k8s.io/v1",
    kind: "SelfSubjectAccessReview",
    spec: { resourceAttributes },
  };
  const patience = AbortSignal.timeout(30_000);
  for (;;) {
    const { body } = await api.ask("POST", REVIEWS, asked);
    if (look(body, "status", "allowed") === true) return;
    assert.ok(!patience.aborted, "the role is not in force");
  }
}

const REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
