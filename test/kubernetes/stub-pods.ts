import { AWAY, scratch } from "../fixtures/scratch.ts";
import { image } from "../fixtures/engine.ts";
import { type FakeApi, startKubernetesApi } from "../fakes/kubernetes-api.ts";
import type { PodNetwork } from "../fakes/pod-keeper.ts";
import { opener, type PodPlace } from "./pod-place.ts";

export interface StubPlace extends PodPlace {
  readonly api: FakeApi;
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
  const close = async (): Promise<void> => {
    await api[Symbol.asyncDispose]();
    await place[Symbol.asyncDispose]();
  };
  return {
    api,
    place,
    said,
    open: opener({ place, kubeconfig, namespace: null, image, said }),
    named: (kind) => Promise.resolve(api.named(kind)),
    [Symbol.asyncDispose]: close,
  };
}
