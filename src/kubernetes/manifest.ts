import {
  dumpYaml,
  type V1ConfigMap,
  type V1Container,
  type V1ContainerStatus,
  type V1Job,
  type V1NetworkPolicy,
  type V1Pod,
  type V1PodSpec,
  type V1PolicyRule,
  type V1Role,
  type V1RoleBinding,
  type V1ServiceAccount,
} from "@kubernetes/client-node";

/** API objects as sent and received: plain values without the client's classes. */
type Plain<T> = T extends Date
  ? string
  : T extends readonly (infer U)[]
    ? Plain<U>[]
    : T extends object
      ? { [K in keyof T]: Plain<T[K]> }
      : T;

export type ConfigMap = Plain<V1ConfigMap>;
export type Container = Plain<V1Container>;
export type ContainerStatus = Plain<V1ContainerStatus>;
export type Job = Plain<V1Job>;
export type NetworkPolicy = Plain<V1NetworkPolicy>;
export type Pod = Plain<V1Pod>;
export type PodSpec = Plain<V1PodSpec>;
export type PolicyRule = Plain<V1PolicyRule>;
export type Role = Plain<V1Role>;
export type RoleBinding = Plain<V1RoleBinding>;
export type ServiceAccount = Plain<V1ServiceAccount>;

/** YAML for `kubectl apply -f -`: the same objects give the same text. */
export const manifestYaml = (objects: readonly object[]): string =>
  objects
    .map((object) => `---\n${dumpYaml(object, { noRefs: true, lineWidth: -1, sortKeys: true })}`)
    .join("");
