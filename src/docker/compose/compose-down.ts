import type Docker from "dockerode";
import { reasonOf } from "../../core/errors.ts";
import { removeContainer } from "./compose-plan.ts";
import { engineSays, unlessGone } from "./shared-compose.ts";
import { LABEL, ownFilter } from "./sidecar.ts";

/** What went, by name, and what could not go and why. */
export interface Removal {
  readonly containers: readonly string[];
  readonly networks: readonly string[];
  readonly volumes: readonly string[];
  readonly kept: readonly { readonly name: string; readonly reason: string }[];
}

export interface DownRequest {
  /** Named volumes too: the data goes with them. */
  readonly volumes?: boolean;
  readonly signal?: AbortSignal;
}

/** Stops and removes the sidecars of a project: what carries compose's label and ours, nothing else. */
export async function downSidecars(
  api: Docker,
  project: string,
  request: DownRequest = {},
): Promise<Removal> {
  const abortSignal = request.signal ?? new AbortController().signal;
  const filters = ownFilter(project);
  const kept: { name: string; reason: string }[] = [];
  const attempt = async (name: string, work: () => Promise<void>): Promise<string[]> => {
    try {
      await work();
      return [name];
    } catch (thrown) {
      kept.push({ name, reason: abortSignal.aborted ? "cancelled" : engineSays(reasonOf(thrown)) });
      return [];
    }
  };
  const all = await api.listContainers({ all: true, filters, abortSignal });
  const containers = await Promise.all(
    all.map((found) => attempt(nameOf(found), () => removeContainer(api, found, abortSignal))),
  );
  const networks = await Promise.all(
    (await api.listNetworks({ filters, abortSignal })).map(({ Id, Name }) =>
      attempt(Name, () => unlessGone(api.getNetwork(Id).remove({ abortSignal }))),
    ),
  );
  const volumes = await Promise.all(
    (await ownVolumes(api, request.volumes === true, { filters, abortSignal })).map(({ Name }) =>
      attempt(Name, () => unlessGone(api.getVolume(Name).remove({ abortSignal }))),
    ),
  );
  return { containers: containers.flat(), networks: networks.flat(), volumes: volumes.flat(), kept };
}

type Listing = NonNullable<Parameters<Docker["listVolumes"]>[0]>;

async function ownVolumes(
  api: Docker,
  wanted: boolean,
  listing: Listing,
): Promise<readonly { readonly Name: string }[]> {
  // The engine answers null for an empty list.
  return wanted ? ((await api.listVolumes(listing)).Volumes ?? []) : [];
}

const nameOf = (found: Docker.ContainerInfo): string =>
  found.Names[0]?.replace(/^\//, "") ?? found.Labels[LABEL.service] ?? found.Id;
