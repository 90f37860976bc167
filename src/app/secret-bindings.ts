import { createHash } from "node:crypto";
import type { Settings } from "../config/settings-schema.ts";
import { EXIT, HarnessError } from "../core/errors.ts";
import { coversHost, type Grant, isPreset, type SecretBinding } from "../core/network.ts";
import { MIN_SECRET_LENGTH } from "../core/secrets.ts";
import type { Host } from "./host.ts";

/**
 * The secrets that a box's requests carry, each bound to hosts that the user granted by name: the hosts of a preset are
 * chosen by its registry. Throws on anything missing, before anything runs.
 */
export const secretBindings = (
  { env }: Pick<Host, "env">,
  { secrets }: Pick<Settings, "secrets">,
  grants: readonly Grant[],
): readonly SecretBinding[] =>
  Object.entries(secretHosts({ secrets }, grants)).map(([name, hosts]) => ({
    name,
    hosts,
    value: valueOf(name, env),
    placeholder: placeholderOf(name),
  }));

/** The hosts of each secret, as granted; values are not looked at. */
export function secretHosts(
  { secrets }: Pick<Settings, "secrets">,
  grants: readonly Grant[],
): Settings["secrets"] {
  const named = grants.filter(({ origin }) => !isPreset(origin));
  for (const [name, hosts] of Object.entries(secrets)) {
    if (hosts.length === 0)
      throw refused(`${name} has no host`, `name the host it is for: --secret ${name}@api.example.org`);
    const open = hosts.find((host) => !named.some((grant) => grant.host === host || coversHost(grant, host)));
    if (open !== undefined)
      throw refused(`${name} is for ${open}, which is not granted by name`, `--allow-domain ${open}`);
  }
  return secrets;
}

/** All secrets of the settings that have a value, for masking. */
export const knownSecrets = (
  { env }: Pick<Host, "env">,
  { secrets }: Pick<Settings, "secrets">,
): readonly SecretBinding[] =>
  Object.entries(secrets).flatMap(([name, hosts]) => {
    const value = env[name] ?? "";
    return value.length < MIN_SECRET_LENGTH ? [] : [{ name, hosts, value, placeholder: placeholderOf(name) }];
  });

function valueOf(name: string, env: Host["env"]): string {
  const value = env[name];
  // The loop of a row in a cluster gets its environment only from its Secret.
  const inLoop = env["HARNESS_POD_NAME"] !== undefined;
  const set = inLoop ? `put ${name} into the Secret that kubernetes.model_secret names` : `export ${name}=…`;
  if (value === undefined || value === "")
    throw refused(`${name} is not set in ${inLoop ? "the loop's" : "your"} environment`, set);
  if (!/^[\u0020-\u007e]+$/.test(value) || value.trim() !== value)
    throw refused(`${name} contains characters that a request cannot carry`, `set it again: ${set}`);
  if (value.length < MIN_SECRET_LENGTH)
    throw refused(
      `${name} has fewer than ${MIN_SECRET_LENGTH} characters, too few to be recognised and masked`,
      `leave it out, or set a longer one: ${set}`,
    );
  return value;
}

const refused = (message: string, remedy: string): HarnessError =>
  new HarnessError(EXIT.usage, message, remedy);

/**
 * The same for every box, because a frozen box keeps it in the environment of its programs. Useless as a credential.
 */
const placeholderOf = (name: string): string =>
  `harness-secret-${createHash("sha256").update(`placeholder ${name}`).digest("hex").slice(0, 24)}`;
