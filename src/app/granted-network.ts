import type { Settings } from "../config/settings-schema.ts";
import { isPreset, parseGrant } from "../core/grant.ts";
import type { Connection, Grant } from "../core/network.ts";
import type { NetworkRequest } from "../docker/network/box-network.ts";
import type { Host } from "./host.ts";

interface GrantedFor {
  readonly host: Host;
  readonly settings: Pick<Settings, "allow_domains">;
  /** Presets mean the registries that tools are set to there. */
  readonly workspace: string;
  readonly onConnection?: ((connection: Connection) => void) | undefined;
}

/** What boxes of these settings may reach; undefined where that is nothing, and nothing of a network is loaded then. */
export async function networkFor(
  given: GrantedFor,
  signal: AbortSignal,
): Promise<NetworkRequest | undefined> {
  const { host, settings } = given;
  if (settings.allow_domains.length === 0) return undefined;
  const trust = async (): Promise<string> => {
    const { hostTrust } = await import("../docker/network/host-trust.ts");
    return hostTrust(host.env);
  };
  const { onConnection } = given;
  const told = onConnection === undefined ? {} : { onConnection };
  return { grants: await grantsFor(given, signal), trust, ...told };
}

async function grantsFor(
  { host: { env, uid, places }, settings: { allow_domains }, workspace }: GrantedFor,
  signal: AbortSignal,
): Promise<readonly Grant[]> {
  const presets = allow_domains.filter(isPreset);
  const named = allow_domains.filter((text) => !isPreset(text)).map((text) => parseGrant(text));
  if (presets.length === 0) return named;
  const { askRegistries } = await import("../docker/egress/registries.ts");
  const found = await askRegistries({ presets, env, workspace, uid, state: places.state, signal });
  return [...named, ...found.flatMap(({ grants }) => grants)];
}
