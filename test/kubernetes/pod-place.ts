import { homedir } from "node:os";
import type { OwnedBox } from "../../src/core/ports.ts";
import { clusterOf } from "../../src/kubernetes/cluster.ts";
import { type PodRequest, startPodBox } from "../../src/kubernetes/start-pod-box.ts";
import { podRequest } from "../fixtures/pod-request.ts";
import type { Scratch } from "../fixtures/scratch.ts";

/** A folder `project`, and boxes over it in pods of a namespace, whatever serves as its cluster. */
export interface PodPlace extends AsyncDisposable {
  readonly place: Scratch;
  /** Warnings so far. */
  readonly said: readonly string[];
  readonly open: (wanted?: Partial<PodRequest>, patienceMs?: number) => Promise<OwnedBox>;
  /** The names of the present objects. */
  readonly named: (kind: "pods" | "networkpolicies") => Promise<readonly string[]>;
}

interface Opening {
  readonly place: Scratch;
  readonly kubeconfig: string;
  /** Null: the namespace in the kubeconfig. */
  readonly namespace: string | null;
  readonly image: string;
  readonly said: string[];
}

export const opener =
  ({ place, kubeconfig, namespace, image, said }: Opening): PodPlace["open"] =>
  async (wanted = {}, patienceMs = 10_000) => {
    const user = { env: { KUBECONFIG: kubeconfig }, home: homedir() };
    const maker = {
      cluster: await clusterOf({ context: null, namespace }, user, patienceMs),
      uid: process.getuid?.() ?? 0,
      home: homedir(),
      stateDir: place.at("state"),
      pod: null,
      onWarning: (text: string) => void said.push(text),
    };
    const request = { ...podRequest(place.at("project"), image), ...wanted };
    return startPodBox(maker, request, new AbortController().signal);
  };
