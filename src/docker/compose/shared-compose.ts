import { setTimeout as pause } from "node:timers/promises";
import type Docker from "dockerode";
import type { NetworkCreateOptions, NetworkInspectInfo, VolumeCreateOptions } from "dockerode";
import { LABEL } from "./sidecar.ts";

/*
 * What outlives a container: the project's network and its volumes.
 */

/*
 * What outlives a container: the project's network and its volumes.
 */

const ROUNDS = 6;
const APART_MS = 300;

/**
 * An engine may make several networks of one name, and then the name is of no use. Of two harnesses that
 * make one at a time at least one sees both: who sees another takes its own back and looks again.
 */
export async function ensureNetwork(
  api: Docker,
  wanted: NetworkCreateOptions,
  abortSignal: AbortSignal,
): Promise<void> {
  for (let round = 1; round <= ROUNDS; round += 1) {
    if ((await namesakes(api, wanted, abortSignal)).length > 0) return;
    const made = await createNetwork(api, wanted, abortSignal);
    if ((await namesakes(api, wanted, abortSignal)).length === 1) return;
    if (made !== undefined) await unlessGone(made.remove());
    await pause(Math.random() * APART_MS, undefined, { signal: abortSignal });
  }
  throw new Error(`the network ${wanted.Name} could not be made: others make it too`);
}

/** undefined when another harness was faster and the engine refused a second one. */
async function createNetwork(
  api: Docker,
  wanted: NetworkCreateOptions,
  abortSignal: AbortSignal,
): Promise<Docker.Network | undefined> {
  try {
    return await api.createNetwork({ ...wanted, abortSignal });
  } catch (thrown) {
    if (statusOf(thrown) === 409) return undefined;
    throw thrown;
  }
}

async function namesakes(
  api: Docker,
  { Name: name, Labels: labels }: NetworkCreateOptions,
  abortSignal: AbortSignal,
): Promise<readonly NetworkInspectInfo[]> {
  const found = await api.listNetworks({ filters: { name: [name] }, abortSignal });
  const same = found.filter(({ Name }) => Name === name);
  for (const { Labels } of same) refuseForeign("network", name, Labels, labels);
  return same;
}

export async function ensureVolume(
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

/** The engine's answer, or undefined when it says that there is no such thing. */
export async function unlessMissing<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (thrown) {
    if (statusOf(thrown) === 404) return undefined;
    throw thrown;
  }
}

/** Waits for a stop or a removal that may be done already: gone (404), stopped (304), under way (409). */
export async function unlessGone(ending: Promise<unknown>): Promise<void> {
  try {
    await ending;
  } catch (thrown) {
    const status = statusOf(thrown);
    if (status === 404 || status === 304) return;
    if (status === 409 && /already in progress/.test(String(thrown))) return;
    throw thrown;
  }
}

export function statusOf(thrown: unknown): number | undefined {
  if (typeof thrown !== "object" || thrown === null || !("statusCode" in thrown)) return undefined;
  return typeof thrown.statusCode === "number" ? thrown.statusCode : undefined;
}

/** What the engine says, without the modem's "(HTTP code …)" in front. */
export const engineSays = (message: string): string =>
  message
    .replace(/^\(HTTP code \d+\) [^-]*- /, "")
    .replaceAll(/\s+/g, " ")
    .trim();

/** True for what another harness at work on the same project can cause; trying again settles it. */
export const isContention = (thrown: unknown): boolean =>
  statusOf(thrown) === 409 ||
  /is ambiguous|no such container|network \S+ not found|already in use by container/i.test(String(thrown));
