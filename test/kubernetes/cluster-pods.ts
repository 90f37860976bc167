import { randomBytes } from "node:crypto";
import { type ClusterApi, type KubeObject, look } from "./cluster-api.ts";

/** Pods as tests make them, without our adapter: of one container, of an image that is in the cluster. */

/** A namespace of a test's own; with it goes all that is in it. */
export interface OwnSpace extends AsyncDisposable {
  readonly name: string;
  /** Below which its pods are. */
  readonly pods: string;
}

export async function ownSpace(
  api: ClusterApi,
  labels: Readonly<Record<string, string>> = {},
): Promise<OwnSpace> {
  const name = `t-${randomBytes(4).toString("hex")}`;
  await api.must("POST", "/api/v1/namespaces", { metadata: { name, labels } });
  // Admission makes it wait: a pod is refused until the namespace has its account.
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

/** One that runs, with its address where it has one. */
export async function runningPod(api: ClusterApi, space: OwnSpace, pod: object): Promise<KubeObject> {
  const { metadata } = await api.must("POST", space.pods, pod);
  return api.until(
    `${space.pods}/${metadata.name}`,
    ({ body }) => phase(body) === "Running" || phase(body) === "Failed",
  );
}

/** What a script says in a pod of its own until it ends, and with which code. */
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
