import type { Settings } from "../config/settings-schema.ts";
import { EXIT, HarnessError } from "../core/errors.ts";
import { isPreset, parseGrant } from "../core/grant.ts";
import type { NetworkRequest } from "../docker/network/box-network.ts";
import type { Host } from "./host.ts";

/** What boxes of these settings may reach; undefined where that is nothing, and nothing of a network is loaded then. */
export function networkFor({ env }: Host, settings: Settings): NetworkRequest | undefined {
  refuseUnbuilt(settings);
  const { allow_domains } = settings;
  if (allow_domains.length === 0) return undefined;
  const trust = async (): Promise<string> => {
    const { hostTrust } = await import("../docker/network/host-trust.ts");
    return hostTrust(env);
  };
  return { grants: allow_domains.map((text) => parseGrant(text)), trust };
}

/** Asked for and not there yet is refused: nothing runs behind weaker walls than it was told to. */
export function refuseUnbuilt({ allow_domains }: Pick<Settings, "allow_domains">): void {
  const preset = allow_domains.find(isPreset);
  if (preset === undefined) return;
  const message = `the preset ${preset}: not built yet in this version`;
  throw new HarnessError(EXIT.usage, message, "name the hosts: --allow-domain registry.example.org");
}
