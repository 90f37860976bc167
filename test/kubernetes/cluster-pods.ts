import { randomBytes } from "node:crypto";
import { type ClusterApi, type KubeObject, look } from "./cluster-api.ts";

/** Pods created by tests without our adapter: one container, from an image in the cluster. */

/** A separate namespace for a test; everything in it is deleted with it. */
export interface OwnSpace extends AsyncDisposable {
  readonly name: string;
  /** The API path of its pods. */
  readonly pods: string;
}

export async function ownSpace(
  api: ClusterApi,
  labels: Readonly<Record<string, string>> = {},
): Promise<OwnSpace> {
  const name = `t-${randomBytes(4).toString("hex")}`;
  await api.must("POST", "/api/v1/namespaces", { metadata: { name, labels } });
  // Admission refuses a pod until the namespace has its account.
  await api.until(`/api/v1/namespaces/${name}/serviceaccounts/default`, ({ status }) => status === 200);
  return {
    name,
    pods: `/api/v1/namespaces/${name}/pods`,
    [Symbol.asyncDispose]: async () => {
      for (const pod of await api.list(`/api/v1/namespaces/${name}/pods`))
        await api.ask("DELETE", `/api/v1/namespaces/${name}/pods/${pod.metadata.name}?gracePeriodSeconds=0`);
      await api.ask("DELETE", `/api/v1/namespaces/${name}`);
    },
  };
}

export interface PodWish {
  readonly labels?: Readonly<Record<string, string>>;
  readonly script?: string;
  readonly container?: Readonly<Record<string, unknown>>;
  readonly spec?: Readonly<Record<string, unknown>>;
}

export const podNamed = (name: string, image: string, wish: PodWish = {}): object => ({
  metadata: { name, labels: wish.labels ?? {} },
  spec: {
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    restartPolicy: "Never",
    terminationGracePeriodSeconds: 0,
    containers: [
      {
        name: "main",
        image,
        imagePullPolicy: "Never",
        command: ["bash", "-c", wish.script ?? "sleep infinity"],
        securityContext: {
          runAsUser: 1000,
          runAsGroup: 1000,
          runAsNonRoot: true,
          readOnlyRootFilesystem: true,
          allowPrivilegeEscalation: false,
          capabilities: { drop: ["ALL"] },
        },
        ...wish.container,
      },
    ],
    ...wish.spec,
  },
});

const phase = (pod: unknown): unknown => look(pod, "status", "phase");

/** Creates a pod and waits until it runs. */
export async function runningPod(api: ClusterApi, space: OwnSpace, pod: object): Promise<KubeObject> {
  const { metadata } = await api.must("POST", space.pods, pod);
  return api.until(
    `${space.pods}/${metadata.name}`,
    ({ body }) => phase(body) === "Running" || phase(body) === "Failed",
  );
}

/** The output and exit code of a script in a separate pod. */
export async function saidInPod(
  api: ClusterApi,
  space: OwnSpace,
  pod: object,
): Promise<{ readonly code: unknown; readonly text: string }> {
  const { metadata } = await api.must("POST", space.pods, pod);
  const at = `${space.pods}/${metadata.name}`;
  const ended = await api.until(at, ({ body }) => ["Succeeded", "Failed"].includes(String(phase(body))));
  const code = look(ended, "status", "containerStatuses", 0, "state", "terminated", "exitCode");
  const { body } = await api.ask("GET", `${at}/log`);
  return { code, text: typeof body["text"] === "string" ? body["text"] : "" };
}
