import { coversHost, coversPort, USUAL_PORTS } from "../../core/grant.ts";
import type { Grant, SecretBinding } from "../../core/network.ts";
import { addressClass, isAmong } from "./address-class.ts";
import { type Authority, shown } from "./authority.ts";

/** Why a request was denied: `rule` for programs, `reason` for people and models. */
export interface Denial {
  readonly rule: string;
  readonly reason: string;
}

/** What all grants together allow for one host and port. */
export interface Allowance {
  /** In the form of `Grant.methods`; null: any method. */
  readonly methods: readonly string[] | null;
  readonly private: boolean;
  /** A grant names this very address, or `localhost`. */
  readonly literal: boolean;
  /** The secrets that are bound to this host. */
  readonly secrets: readonly SecretBinding[];
}

export interface Rules {
  readonly grants: readonly Grant[];
  /** In the form of `Grant.host`; these take precedence over every grant. */
  readonly denied: readonly string[];
  readonly secrets: readonly SecretBinding[];
}

export const isDenial = (verdict: object): verdict is Denial => "rule" in verdict;

/** Denials first, then the host, then the port; an empty list grants nothing. */
export function judgeHost(authority: Authority, rules: Rules): Allowance | Denial {
  const { host, port } = authority;
  if (rules.denied.some((pattern) => coversHost({ host: pattern }, host)))
    return { rule: "denied-host", reason: `${host} is denied by the user's settings` };
  const grants = rules.grants.filter((grant) => coversHost(grant, host) && isReadAs(grant, authority));
  if (grants.length === 0) return notGranted(authority);
  const open = grants.filter((grant) => coversPort(grant, port));
  if (open.length === 0)
    return {
      rule: "port",
      reason: `${host} is granted, its port ${port} is not; --allow-domain ${shown(authority)} would grant it`,
    };
  return {
    methods: open.some(({ methods }) => methods === null)
      ? null
      : open.flatMap(({ methods }) => methods ?? []),
    private: open.some((grant) => grant.private),
    literal: open.some((grant) => grant.host === host) && (authority.literal || host === "localhost"),
    secrets: rules.secrets.filter(({ hosts }) =>
      hosts.some((pattern) => coversHost({ host: pattern }, host)),
    ),
  };
}

/** An address is never below a name. */
const isReadAs = (grant: Grant, { literal }: Authority): boolean => !literal || !grant.host.startsWith("*.");

/** As a grant names the host: with its port, unless the name alone covers that port. */
export const asGranted = (authority: Authority): string =>
  USUAL_PORTS.includes(authority.port) ? shown(authority).replace(/:\d+$/, "") : shown(authority);

function notGranted(authority: Authority): Denial {
  const kind = authority.literal ? "the address" : "the host";
  return {
    rule: authority.literal ? "address-literal" : "not-granted",
    reason: `${kind} ${authority.host} is not granted; --allow-domain ${asGranted(authority)} would grant it`,
  };
}

/**
 * The addresses of a granted name that may be dialled. A name's owner chooses its addresses: only a grant marked
 * private leads into private networks, and no name leads to this host's loopback or to a cloud's metadata.
 */
export function judgeAddresses(
  authority: Authority,
  addresses: readonly string[],
  allowance: Allowance,
  own: ReadonlySet<string>,
): readonly string[] | Denial {
  const { host } = authority;
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
    return { rule: "address", reason: `${host} has only addresses that no host can have` };
  if (kinds.includes("private"))
    return {
      rule: "private-address",
      reason: `${host} has a private or reserved address here; --allow-domain ${asGranted(authority)}:private would allow it`,
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

/** Headers that some servers take for the method. */
export const METHOD_OVERRIDES: ReadonlySet<string> = new Set([
  "x-http-method-override",
  "x-http-method",
  "x-method-override",
]);

/** `methods` in the form of `Grant.methods`; `path` as it was sent, without its query. */
export const isMethodAllowed = (methods: readonly string[] | null, method: string, path: string): boolean =>
  methods === null || methods.some((form) => coversMethod(form, method, path));

/** Servers decode and resolve paths in their own ways: a path that needs decoding does not match a granted path. */
function coversMethod(form: string, method: string, path: string): boolean {
  const [word, pattern] = form.split(" ", 2);
  if (word !== method || pattern === undefined) return word === method;
  if (!/^(?:\/(?!\.{1,2}(?:\/|$))[\w.~+@-]+)+$/.test(path)) return false;
  return pattern.startsWith("…")
    ? path.endsWith(pattern.slice(1)) && path !== pattern.slice(1)
    : path === pattern;
}

/** Whether the proxy must end TLS to enforce the allowance. */
export const mustSeeInto = ({ methods, secrets }: Allowance): boolean =>
  methods !== null || secrets.length > 0;
