import { coversHost } from "../../core/grant.ts";
import type { Grant, SecretBinding } from "../../core/network.ts";
import { addressClass, isAmong } from "./address-class.ts";
import { type Authority, shown } from "./authority.ts";

/** Why something was not let through: `rule` for programs, `reason` for people and models. */
export interface Denial {
  readonly rule: string;
  readonly reason: string;
}

/** What all grants together allow at one host and port. */
export interface Allowance {
  /** Null: any. In the form of `Grant.methods`. */
  readonly methods: readonly string[] | null;
  readonly private: boolean;
  /** A grant names this very address, or `localhost`. */
  readonly literal: boolean;
  /** Those that are bound to this host. */
  readonly secrets: readonly SecretBinding[];
}

export interface Rules {
  readonly grants: readonly Grant[];
  /** In the form of `Grant.host`; they come before every grant. */
  readonly denied: readonly string[];
  readonly secrets: readonly SecretBinding[];
}

export const isDenial = (verdict: object): verdict is Denial => "rule" in verdict;

const USUAL_PORTS: readonly number[] = [443, 80];

/** Deny before allow, then the host, then the port; nothing is granted by an empty list. */
export function judgeHost(asked: Authority, rules: Rules): Allowance | Denial {
  const { host, port } = asked;
  if (rules.denied.some((pattern) => coversHost({ host: pattern }, host)))
    return { rule: "denied-host", reason: `${host} is denied by the user's settings` };
  const grants = rules.grants.filter((grant) => coversHost(grant, host) && isReadAs(grant, asked));
  if (grants.length === 0) return notGranted(asked);
  const open = grants.filter(({ ports }) => (ports.length === 0 ? USUAL_PORTS : ports).includes(port));
  if (open.length === 0)
    return {
      rule: "port",
      reason: `${host} is granted, its port ${port} is not; --allow-domain ${shown(asked)} would grant it`,
    };
  return {
    methods: open.some(({ methods }) => methods === null)
      ? null
      : open.flatMap(({ methods }) => methods ?? []),
    private: open.some((grant) => grant.private),
    literal: open.some((grant) => grant.host === host) && (asked.literal || host === "localhost"),
    secrets: rules.secrets.filter(({ hosts }) =>
      hosts.some((pattern) => coversHost({ host: pattern }, host)),
    ),
  };
}

/** An address is below no name. */
const isReadAs = (grant: Grant, { literal }: Authority): boolean => !literal || !grant.host.startsWith("*.");

/** As a grant names it: with its port, where that is none of those that a name alone stands for. */
export const asGranted = (asked: Authority): string =>
  USUAL_PORTS.includes(asked.port) ? shown(asked).replace(/:\d+$/, "") : shown(asked);

function notGranted(asked: Authority): Denial {
  const kind = asked.literal ? "the address" : "the host";
  return {
    rule: asked.literal ? "address-literal" : "not-granted",
    reason: `${kind} ${asked.host} is not granted; --allow-domain ${asGranted(asked)} would grant it`,
  };
}

/**
 * Those addresses of a granted name that may be dialled. A name's owner chooses what it resolves to: only a grant marked
 * private leads into private networks, and none by name to this host's loopback or to a cloud's metadata.
 */
export function judgeAddresses(
  asked: Authority,
  addresses: readonly string[],
  allowance: Allowance,
  own: ReadonlySet<string>,
): readonly string[] | Denial {
  const { host } = asked;
  const kinds = addresses.map((address) => {
    const kind = addressClass(address);
    return kind === "public" && isAmong(own, address) ? "private" : kind;
  });
  const usable = addresses.filter((_, at) => {
    const kind = kinds[at] ?? "never";
    if (kind === "never") return false;
    return kind === "public" || allowance.literal || (kind === "private" && allowance.private);
  });
  if (usable.length > 0) return usable;
  if (kinds.every((kind) => kind === "never"))
    return { rule: "address", reason: `${host} has only addresses that are no host's` };
  if (kinds.includes("private"))
    return {
      rule: "private-address",
      reason: `${host} has a private or reserved address here; --allow-domain ${asGranted(asked)}:private would allow it`,
    };
  const [kind, rule] = kinds.includes("metadata")
    ? ["a cloud's metadata service", "metadata-address"]
    : LOOPBACK;
  return {
    rule,
    reason: `${host} leads to ${kind}; only a grant that names that very address would allow it`,
  };
}

const LOOPBACK = ["this host itself", "loopback-address"] as const;

/** What some servers take for the method. */
export const METHOD_OVERRIDES: ReadonlySet<string> = new Set([
  "x-http-method-override",
  "x-http-method",
  "x-method-override",
]);

/** `methods` in the form of `Grant.methods`; `path` as it was sent, without its query. */
export const isMethodAllowed = (methods: readonly string[] | null, method: string, path: string): boolean =>
  methods === null || methods.some((form) => coversMethod(form, method, path));

/** Servers decode and walk paths in their own ways: where one is named, a path with something to decode is another. */
function coversMethod(form: string, method: string, path: string): boolean {
  const [word, pattern] = form.split(" ", 2);
  if (word !== method || pattern === undefined) return word === method;
  if (!/^(?:\/(?!\.{1,2}(?:\/|$))[\w.~+@-]+)+$/.test(path)) return false;
  return pattern.startsWith("…")
    ? path.endsWith(pattern.slice(1)) && path !== pattern.slice(1)
    : path === pattern;
}

/** Whether the proxy has to end TLS to keep to it. */
export const mustSeeInto = ({ methods, secrets }: Allowance): boolean =>
  methods !== null || secrets.length > 0;
