/** The network grants of a box, from what the user wrote. Without grants no network code is loaded. */
import { createHash } from "node:crypto";
import type { Settings } from "../../config/settings-schema.ts";
import {
  type Connection,
  coversHost,
  type Grant,
  isPreset,
  parseGrant,
  type Preset,
  type SecretBinding,
} from "../../core/network.ts";
import type { PresetGrants } from "../../docker/egress/registries.ts";
import type { NetworkRequest } from "../../docker/egress/box-network.ts";
import { type Host, namedCluster } from "../host.ts";
import { repositoryAround } from "../project/repository-around.ts";
import { EXIT, HarnessError } from "../../core/errors.ts";
import { MIN_SECRET_LENGTH } from "../../core/secrets.ts";

interface NetworkParts {
  readonly host: Host;
  readonly settings: Pick<
    Settings,
    "allow_domains" | "secrets" | "install_scripts" | "min_release_age" | "image"
  > &
    Parameters<typeof boundsOf>[0];
  /** Folder in which tools are asked for their registries, which presets stand for. */
  readonly workspace: string;
  readonly warn: (text: string) => void;
  readonly onConnection?: ((connection: Connection) => void) | undefined;
  /** A person may grant more while the box runs. */
  readonly mayGrant?: boolean | undefined;
}

/** Checks what needs no request and no program: secrets must exist and be bound to hosts that are granted by name. */
export function checkNetwork(host: Host, settings: Pick<Settings, "allow_domains" | "secrets">): void {
  secretBindings(host, settings, namedIn(settings.allow_domains));
}

export const namedIn = (allowed: readonly string[]): readonly Grant[] =>
  allowed.filter((text) => !isPreset(text)).map((text) => parseGrant(text));

/** What boxes with these settings may reach; undefined if nothing now, and nothing later. */
export async function networkFor(
  parts: NetworkParts,
  signal: AbortSignal,
): Promise<NetworkRequest | undefined> {
  const { host, settings, onConnection } = parts;
  const { allow_domains } = settings;
  const secrets = secretBindings(host, settings, namedIn(allow_domains));
  if (allow_domains.length === 0 && parts.mayGrant !== true) return undefined;
  const { grants, variables, files } = await grantsOf(allow_domains, parts, signal);
  const { env } = host;
  const trust = async (): Promise<string> => {
    const { hostTrust } = await import("../../docker/egress/host-trust.ts");
    return hostTrust(env, parts.warn);
  };
  const placeholders = secrets.map(({ name, placeholder }) => [name, placeholder] as const);
  return {
    grants,
    ...boundsOf(settings),
    secrets,
    env,
    variables: { ...variables, ...Object.fromEntries(placeholders) },
    files,
    trust,
    ...(onConnection === undefined ? {} : { onConnection }),
  };
}

/** Hosts that no grant opens, and limits of the traffic. */
export const boundsOf = ({
  deny_domains: denied,
  network_upload: bytesUp,
  network_download: bytesDown,
  network_idle_timeout: idleMs,
}: Pick<Settings, "deny_domains" | "network_upload" | "network_download" | "network_idle_timeout">): Pick<
  NetworkRequest,
  "denied" | "limits"
> => ({ denied, limits: { bytesUp, bytesDown, idleMs } });

/**
 * Resolves the words on this machine into grants, with the variables and files that the box's commands need for them.
 */
export async function grantsOf(
  domains: readonly string[],
  parts: NetworkParts,
  signal: AbortSignal,
): Promise<Required<Pick<NetworkRequest, "grants" | "variables" | "files">>> {
  const presets = await registriesOf(domains.filter(isPreset), parts, signal);
  for (const { preset, grants, source: from } of presets)
    parts.warn(
      `granted by ${preset}${from === "box" ? " of the box" : ""}: ${grants.map(placeOf).join(", ")}`,
    );
  const grants = [...namedIn(domains), ...presets.flatMap((each) => each.grants)];
  return {
    grants,
    variables: { ...registryVariables(presets), ...(await installRules(grants, parts)) },
    files: registryFiles(presets),
  };
}

const placeOf = ({ host, ports }: Grant): string =>
  `${host.includes(":") ? `[${host}]` : host}${ports.map((port) => `:${port}`).join("")}`;

async function registriesOf(
  presets: readonly Preset[],
  { host, workspace, settings }: NetworkParts,
  signal: AbortSignal,
): Promise<readonly PresetGrants[]> {
  if (presets.length === 0) return [];
  const { env, uid, places } = host;
  const { askRegistries } = await import("../../docker/egress/registries.ts");
  const top = presets.includes("git") ? (await repositoryAround({ places }, workspace))?.top : undefined;
  // A tool that is missing on this machine may exist in the box: on a container engine, the box's tool is asked
  // instead.
  const askBox = async (argv: readonly [string, ...string[]]): Promise<string | null> => {
    if ((await namedCluster(host)) !== undefined) return null;
    const { askerOf } = await import("./system-layers.ts");
    return (await askerOf(host, settings.image, signal))(argv);
  };
  return askRegistries({ presets, env, workspace, top, uid, state: places.state, signal, askBox });
}

/** Points the box's tools at the registries that the user's tools are set to. */
export const registryVariables = (presets: readonly PresetGrants[]): Readonly<Record<string, string>> =>
  Object.assign({}, ...presets.map(({ variables }) => variables)) as Readonly<Record<string, string>>;

export const registryFiles = (presets: readonly PresetGrants[]): Readonly<Record<string, string>> =>
  Object.assign({}, ...presets.map(({ settings }) => settings)) as Readonly<Record<string, string>>;

/** Variables that make installations safer, if there is a registry to install from. */
async function installRules(
  grants: readonly Grant[],
  { settings, warn }: NetworkParts,
): Promise<Readonly<Record<string, string>>> {
  const presets = new Set(grants.map(({ origin }) => origin).filter(isPreset));
  if (presets.size === 0) return {};
  const { ageNote, installVariables, withoutAge } =
    await import("../../docker/environments/tool-variables.ts");
  const note = settings.min_release_age > 0 ? ageNote(withoutAge([...presets])) : undefined;
  if (note !== undefined) warn(note);
  return installVariables(presets, settings, Date.now());
}

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
