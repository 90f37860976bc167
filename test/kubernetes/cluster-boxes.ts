import { AWAY, scratch } from "../fixtures/scratch.ts";
import { accountWith, type Rules } from "./cluster-accounts.ts";
import { look } from "./cluster-api.ts";
import { type OwnSpace, ownSpace } from "./cluster-pods.ts";
import type { Cluster } from "./cluster.ts";
import { opener, type PodPlace } from "./pod-place.ts";

export interface BoxPlace extends PodPlace {
  readonly space: OwnSpace;
  /** The kubeconfig of the user who opens boxes. */
  readonly kubeconfig: string;
}

/** Labels of a namespace that accepts only pods of the standard `restricted`, if the cluster has such an admission. */
const RESTRICTED = { "pod-security.kubernetes.io/enforce": "restricted" };

interface BoxPlaceOptions {
  readonly files?: Readonly<Record<string, string>>;
  /** Rights of the user who opens boxes; an administrator by default. */
  readonly rules?: Rules;
  readonly labels?: Readonly<Record<string, string>>;
}

/** A folder `project`, and a namespace of a real cluster whose pods are boxes over it. */
export async function boxPlace(
  cluster: Cluster,
  { files = { "a.txt": "one\n" }, rules, labels = RESTRICTED }: BoxPlaceOptions = {},
): Promise<BoxPlace> {
  const { api, image } = cluster;
  const space = await ownSpace(api, labels);
  const place = await scratch({}, AWAY);
  const kubeconfig =
    rules === undefined ? cluster.kubeconfig : await accountWith(cluster, space, place, rules);
  for (const [file, text] of Object.entries(files)) await place.write(`project/${file}`, text);
  const said: string[] = [];
  const paths = {
    pods: space.pods,
    networkpolicies: `/apis/networking.k8s.io/v1/namespaces/${space.name}/networkpolicies`,
  };
  return {
    space,
    kubeconfig,
    place,
    said,
    open: opener({ place, kubeconfig, namespace: space.name, image, said }),
    // An object that is being removed counts as gone; its name stays a moment longer.
    named: async (kind) =>
      (await api.list(paths[kind]))
        .filter(({ metadata }) => look(metadata, "deletionTimestamp") === undefined)
        .map(({ metadata }) => metadata.name),
    [Symbol.asyncDispose]: async () => {
      await space[Symbol.asyncDispose]();
      await place[Symbol.asyncDispose]();
    },
  };
}
