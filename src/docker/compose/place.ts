import type Docker from "dockerode";
import type { Container, ContainerInspectInfo, NetworkCreateOptions, VolumeCreateOptions } from "dockerode";
import { reasonOf } from "../../core/errors.ts";
import { engineSays, statusOf, unlessGone, unlessMissing } from "./answer.ts";
import { LABEL } from "./labels.ts";
import type { SidecarPlan } from "./plan.ts";

/** Seconds for a sidecar to write its data down before it is killed. */
const STOP_SECONDS = 10;

/** Makes the container of a plan and starts it. One that did not start leaves no container behind. */
export async function placeContainer(
  api: Docker,
  plan: SidecarPlan,
  abortSignal: AbortSignal,
): Promise<Container> {
  for (const volume of plan.volumes) await ensureVolume(api, volume, abortSignal);
  const container = await api.createContainer({ ...plan.container, abortSignal });
  try {
    await startContainer(container, plan, abortSignal);
    return container;
  } catch (thrown) {
    await unlessGone(container.remove({ force: true, v: true }));
    throw thrown;
  }
}

/** Starts it unless it runs (304); where a port is taken, says which. */
export async function startContainer(
  container: Container,
  plan: SidecarPlan,
  abortSignal: AbortSignal,
): Promise<void> {
  try {
    await container.start({ abortSignal });
  } catch (thrown) {
    abortSignal.throwIfAborted();
    if (statusOf(thrown) === 304) return;
    throw new Error(startFailure(engineSays(reasonOf(thrown)), plan), { cause: thrown });
  }
}

/** True when a stopped container can never start again because its network was made anew since. */
export const lostItsNetwork = (thrown: unknown): boolean => /^network \S+ not found/.test(reasonOf(thrown));

/** A port that is taken, by the engine's words or compose's; any other reason as it stands. */
export function startFailure(reason: string, plan: SidecarPlan): string {
  if (!/port is already allocated|address already in use/i.test(reason)) return reason;
  const taken = plan.addresses.find((address) =>
    [":", " "].some((end) => reason.includes(`${address}${end}`)),
  );
  return `${taken ?? plan.addresses.join(" or ")} is in use by another program`;
}

/** Stops and removes it. Anonymous volumes go with it, named ones stay. */
export async function removeContainer(
  api: Docker,
  { Id }: Pick<ContainerInspectInfo, "Id">,
  abortSignal: AbortSignal,
): Promise<void> {
  const container = api.getContainer(Id);
  await unlessGone(container.stop({ t: STOP_SECONDS, abortSignal }));
  await unlessGone(container.remove({ force: true, v: true }));
}

export async function ensureNetwork(
  api: Docker,
  wanted: NetworkCreateOptions,
  abortSignal: AbortSignal,
): Promise<void> {
  const found = await api.listNetworks({ filters: { name: [wanted.Name] }, abortSignal });
  const same = found.find(({ Name }) => Name === wanted.Name);
  if (same === undefined) await api.createNetwork({ ...wanted, abortSignal });
  else refuseForeign("network", wanted.Name, same.Labels, wanted.Labels);
}

async function ensureVolume(
  api: Docker,
  wanted: VolumeCreateOptions,
  abortSignal: AbortSignal,
): Promise<void> {
  const name = wanted.Name ?? "";
  const found = await unlessMissing(api.getVolume(name).inspect({ abortSignal }));
  if (found === undefined) await api.createVolume({ ...wanted, abortSignal });
  else refuseForeign("volume", name, found.Labels, wanted.Labels);
}

type Labels = Readonly<Record<string, string>> | null | undefined;

/** One of the same project is used, whoever made it; any other is left alone. */
function refuseForeign(kind: string, name: string, found: Labels, wanted: Labels): void {
  if (found?.[LABEL.project] === wanted?.[LABEL.project]) return;
  throw new Error(`a ${kind} called ${name} is there already, and harness did not make it`);
}
