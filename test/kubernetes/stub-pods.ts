import { homedir } from "node:os";
import type { OwnedBox } from "../../src/core/ports.ts";
import { clusterOf } from "../../src/kubernetes/cluster.ts";
import { type PodRequest, startPodBox } from "../../src/kubernetes/start-pod-box.ts";
import { AWAY, type Scratch, scratch } from "../fixtures/scratch.ts";
import { image } from "../fixtures/engine.ts";
import { podRequest } from "../fixtures/pod-request.ts";
import { type FakeApi, startKubernetesApi } from "../fakes/kubernetes-api.ts";
import type { PodNetwork } from "../fakes/pod-keeper.ts";

export interface StubPlace extends AsyncDisposable {
  readonly api: FakeApi;
  readonly place: Scratch;
  /** What was said beside. */
  readonly said: readonly string[];
  readonly open: (wanted?: Partial<PodRequest>, patienceMs?: number) => Promise<OwnedBox>;
}

/** A folder `project` with these files, and an API server whose pods are boxes over it. */
export async function stubPlace(
  network: PodNetwork,
  files: Readonly<Record<string, string>> = { "a.txt": "one\n" },
): Promise<StubPlace> {
  const place = await scratch({}, AWAY);
  for (const [file, text] of Object.entries(files)) await place.write(`project/${file}`, text);
  const api = await startKubernetesApi(network, place.at("node"));
  const kubeconfig = await place.write("kubeconfig", api.kubeconfig);
  const said: string[] = [];
  const open = async (wanted: Partial<PodRequest> = {}, patienceMs = 10_000): Promise<OwnedBox> => {
    const user = { env: { KUBECONFIG: kubeconfig }, home: homedir() };
    const cluster = await clusterOf({ context: null, namespace: null }, user, patienceMs);
    const maker = {
      cluster,
      uid: process.getuid?.() ?? 0,
      home: homedir(),
      stateDir: place.at("state"),
      pod: null,
      onWarning: (text: string) => void said.push(text),
    };
    const request = { ...podRequest(place.at("project"), image), ...wanted };
    return startPodBox(maker, request, new AbortController().signal);
  };
  const close = async (): Promise<void> => {
    await api[Symbol.asyncDispose]();
    await place[Symbol.asyncDispose]();
  };
  return { api, place, said, open, [Symbol.asyncDispose]: close };
}
