import { coversHost, coversPort, type Grant, grantText, isPreset, readGrant } from "../../core/network.ts";
import type { RecordedConnection, Recording } from "./recording.ts";
import { shapeOf } from "./run-specific.ts";

interface Reached {
  /** Hosts that commands name, as grants. */
  readonly hosts: ReadonlySet<string>;
  /** Presets that installations fetch from. */
  readonly presets: ReadonlySet<string>;
}

interface ProposedGrants {
  readonly allow_domains: readonly string[];
  readonly denied: readonly { readonly what: string; readonly reason: string }[];
  readonly hosts: Readonly<Record<string, number>>;
}

/**
 * The narrowest grants under which the same connections would have been let through: the hosts that were reached, with
 * their ports, and with methods where these are known. Refused connections are told and never granted. In full access
 * nobody sees the connections, so the hosts that commands name are granted.
 */
export function proposeGrants(
  { connections, granted, unfiltered }: Recording,
  reached: Reached,
): ProposedGrants {
  const hosts = new Map<string, number>();
  for (const { host, port, method, verdict } of connections) {
    const line = [`${hostText(host)}:${port}`, ...(method === null ? [] : [method]), verdict].join(" ");
    hosts.set(line, (hosts.get(line) ?? 0) + 1);
  }
  const denied = connections.flatMap(({ host, port, verdict, rule, reason }) =>
    verdict === "denied" ? [{ what: `${hostText(host)}:${port}`, reason: `${reason} (${rule})` }] : [],
  );
  const named = unfiltered ? [...reached.hosts, ...reached.presets] : [];
  const all = new Set([...grantsFor(connections, granted, reached.presets), ...named]);
  return {
    allow_domains: [...all].toSorted((one, other) => (one < other ? -1 : 1)),
    denied,
    hosts: Object.fromEntries(hosts),
  };
}

const hostText = (host: string): string => (host.includes(":") ? `[${host}]` : host);

type UserGrant = Grant & { readonly text: string };

function grantsFor(
  connections: readonly RecordedConnection[],
  granted: ReadonlySet<string>,
  presets: ReadonlySet<string>,
): readonly string[] {
  const userGrants = [...granted].flatMap((text): readonly UserGrant[] => {
    const read = isPreset(text) ? undefined : readGrant(text);
    return read?.kind === "grant" ? [{ ...read.grant, text }] : [];
  });
  const kept = new Set<string>();
  const byHost: RecordedConnection[] = [];
  for (const connection of connections) {
    if (connection.verdict !== "allowed" || connection.host === "") continue;
    const by = userGrants.filter((grant) => covers(grant, connection));
    const preset = by.find(({ origin }) => isPreset(origin));
    if (by.length === 0) for (const each of presetsOf(granted, presets)) kept.add(each);
    else if (preset === undefined) byHost.push(connection);
    else kept.add(preset.text);
  }
  return [...kept, ...grantsByHost(byHost, userGrants)];
}

const covers = (grant: Grant, { host, port }: RecordedConnection): boolean =>
  coversHost(grant, host) && coversPort(grant, port);

/**
 * The machine's settings say which registry a preset stands for: the candidates are the presets that were installed
 * from or, without any, all granted ones.
 */
function presetsOf(granted: ReadonlySet<string>, used: ReadonlySet<string>): readonly string[] {
  const words = [...granted].filter(isPreset);
  const some = words.filter((word) => used.has(word));
  return some.length > 0 ? some : words;
}

interface HostUse {
  readonly host: string;
  readonly port: number;
  readonly own: boolean;
  readonly methods: Set<string> | null;
}

/** One grant for each host and set of methods, with the ports where these methods were seen. */
function grantsByHost(
  connections: readonly RecordedConnection[],
  given: readonly UserGrant[],
): readonly string[] {
  const names = namesFor(new Set(connections.map(({ host }) => host)), given);
  const seen = new Map<string, HostUse>();
  for (const connection of connections) {
    const { port, method } = connection;
    const host = names.get(connection.host) ?? connection.host;
    const key = `${host} ${port}`;
    const before = seen.get(key);
    const own = given.some((grant) => grant.private && covers(grant, connection));
    const others = before === undefined ? new Set<string>() : before.methods;
    const methods = method === null || others === null ? null : new Set([...others, method]);
    seen.set(key, { host, port, own: own || before?.own === true, methods });
  }
  const groups = Map.groupBy(seen.values(), ({ host, own, methods }) =>
    JSON.stringify([host, own, methodsOf(methods)]),
  );
  return [...groups.values()].flatMap(([first, ...others]) => {
    if (first === undefined) return [];
    const { host, own } = first;
    const ports = [first, ...others].map(({ port }) => port).toSorted((one, other) => one - other);
    return [grantText({ host, ports, methods: methodsOf(first.methods), private: own, origin: host })];
  });
}

const READS: readonly string[] = ["GET", "HEAD", "OPTIONS"];
const METHODS: readonly string[] = [...READS, "POST", "PUT", "PATCH", "DELETE"];

/**
 * A client that reads may also send HEAD or OPTIONS first. A method that no grant can name makes the grant one of all
 * methods.
 */
function methodsOf(seen: ReadonlySet<string> | null): readonly string[] | null {
  if (seen === null || [...seen].some((method) => !METHODS.includes(method))) return null;
  if ([...seen].every((method) => READS.includes(method))) return READS;
  return METHODS.filter((method) => seen.has(method));
}

/**
 * Hosts keep their own names; several that differ only in what belongs to one run get the pattern that the user
 * granted.
 */
function namesFor(hosts: ReadonlySet<string>, given: readonly UserGrant[]): ReadonlyMap<string, string> {
  const names = new Map<string, string>();
  for (const alike of Map.groupBy(hosts, (host) => shapeOf(host).key).values()) {
    const pattern = given.find(
      (grant) => grant.host.startsWith("*.") && alike.every((host) => coversHost(grant, host)),
    );
    if (alike.length > 1 && pattern !== undefined) for (const host of alike) names.set(host, pattern.host);
  }
  return names;
}
