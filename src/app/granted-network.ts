import type { Settings } from "../config/settings-schema.ts";
import { type Connection, type Grant, isPreset, parseGrant, type Preset } from "../core/network.ts";
import type { PresetGrants } from "../docker/egress/registries.ts";
import type { NetworkRequest } from "../docker/egress/box-network.ts";
import type { Host } from "./host.ts";
import { namedCluster } from "./named-engine.ts";
import { repositoryAround } from "./project/repository-around.ts";
import { secretBindings } from "./secret-bindings.ts";

/** The network grants of a box, from what the user wrote. Without grants no network code is loaded. */

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
  given: NetworkParts,
  signal: AbortSignal,
): Promise<NetworkRequest | undefined> {
  const { host, settings, onConnection } = given;
  const { allow_domains } = settings;
  const secrets = secretBindings(host, settings, namedIn(allow_domains));
  if (allow_domains.length === 0 && given.mayGrant !== true) return undefined;
  const { grants, variables, files } = await grantsOf(allow_domains, given, signal);
  const { env } = host;
  const trust = async (): Promise<string> => {
    const { hostTrust } = await import("../docker/egress/host-trust.ts");
    return hostTrust(env, given.warn);
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
  given: NetworkParts,
  signal: AbortSignal,
): Promise<Required<Pick<NetworkRequest, "grants" | "variables" | "files">>> {
  const asked = await registriesOf(domains.filter(isPreset), given, signal);
  for (const { preset, grants, asked: from } of asked)
    given.warn(
      `granted by ${preset}${from === "box" ? " of the box" : ""}: ${grants.map(placeOf).join(", ")}`,
    );
  const grants = [...namedIn(domains), ...asked.flatMap((each) => each.grants)];
  return {
    grants,
    variables: { ...registryVariables(asked), ...(await installRules(grants, given)) },
    files: registryFiles(asked),
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
  const { askRegistries } = await import("../docker/egress/registries.ts");
  const top = presets.includes("git") ? (await repositoryAround({ places }, workspace))?.top : undefined;
  // A tool that is missing on this machine may exist in the box: on a container engine, the box's tool is asked
  // instead.
  const askBox = async (argv: readonly [string, ...string[]]): Promise<string | null> => {
    if ((await namedCluster(host)) !== undefined) return null;
    const { askerOf } = await import("./environments/environment-network.ts");
    return (await askerOf(host, settings.image, signal))(argv);
  };
  return askRegistries({ presets, env, workspace, top, uid, state: places.state, signal, askBox });
}

/** Points the box's tools at the registries that the user's tools are set to. */
export const registryVariables = (asked: readonly PresetGrants[]): Readonly<Record<string, string>> =>
  Object.assign({}, ...asked.map(({ variables }) => variables)) as Readonly<Record<string, string>>;

export const registryFiles = (asked: readonly PresetGrants[]): Readonly<Record<string, string>> =>
  Object.assign({}, ...asked.map(({ settings }) => settings)) as Readonly<Record<string, string>>;

/** Variables that make installations safer, if there is a registry to install from. */
async function installRules(
  grants: readonly Grant[],
  { settings, warn }: NetworkParts,
): Promise<Readonly<Record<string, string>>> {
  const presets = new Set(grants.map(({ origin }) => origin).filter(isPreset));
  if (presets.size === 0) return {};
  const { ageNote, installVariables, withoutAge } = await import("../docker/environments/tool-variables.ts");
  const note = settings.min_release_age > 0 ? ageNote(withoutAge([...presets])) : undefined;
  if (note !== undefined) warn(note);
  return installVariables(presets, settings, Date.now());
}
