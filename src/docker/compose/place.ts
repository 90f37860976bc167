import type Docker from "dockerode";
import type { Container, ContainerInspectInfo } from "dockerode";
import { reasonOf } from "../../core/errors.ts";
import { engineSays, statusOf, unlessGone } from "./answer.ts";
import { ensureVolume } from "./shared.ts";
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
