import { isIP, isIPv4, isIPv6 } from "node:net";
import { URL } from "node:url";
import { networkInterfaces } from "node:os";
import { coversHost, coversPort, type Grant, type SecretBinding, USUAL_PORTS } from "../../core/network.ts";

/**
 * What a box may reach: the host that a request names, in one spelling; whether a grant opens it; and which of its
 * addresses may be dialled.
 */

/** Why a request was denied: `rule` for programs, `reason` for people and models. */
export interface EgressDenial {
  readonly rule: string;
  readonly reason: string;
}

/** What all grants together allow for one host and port. */
export interface Allowance {
  /** In the form of `Grant.methods`; null: any method. */
  readonly methods: readonly string[] | null;
  /** The same for private addresses: only grants that are marked private count there. Empty: none. */
  readonly privateMethods: readonly string[] | null;
  /** Whether this request, or whatever a tunnel carries, may go to a private address. */
  readonly private: boolean;
  /** A grant names this very address, or `localhost`. */
  readonly literal: boolean;
  /** The secrets that are bound to this host. */
  readonly secrets: readonly SecretBinding[];
}

interface Rules {
  readonly grants: readonly Grant[];
  /** In the form of `Grant.host`; these take precedence over every grant. */
  readonly denied: readonly string[];
  readonly secrets: readonly SecretBinding[];
}

export const isDenial = (verdict: object): verdict is EgressDenial => "rule" in verdict;

/** Denials first, then the host, then the port; an empty list grants nothing. */
export function judgeHost(authority: Authority, rules: Rules): Allowance | EgressDenial {
  const { host, port } = authority;
  if (rules.denied.some((pattern) => coversHost({ host: pattern }, host)))
    return { rule: "denied-host", reason: `${host} is denied by the user's settings` };
  const grants = rules.grants.filter((grant) => coversHost(grant, host) && isReadAs(grant, authority));
  if (grants.length === 0) return notGranted(authority);
  const open = grants.filter((grant) => coversPort(grant, port));
  if (open.length === 0)
    return {
      rule: "port",
      reason: `${host} is granted, its port ${port} is not; --allow-domain ${authorityText(authority)} would grant it`,
    };
  const privateMethods = methodsOf(open.filter((grant) => grant.private));
  return {
    methods: methodsOf(open),
    privateMethods,
    private: privateMethods === null,
    literal: open.some((grant) => grant.host === host) && (authority.literal || host === "localhost"),
    secrets: rules.secrets.filter(({ hosts }) =>
      hosts.some((pattern) => coversHost({ host: pattern }, host)),
    ),
  };
}

const methodsOf = (grants: readonly Grant[]): Allowance["methods"] =>
  grants.some(({ methods }) => methods === null) ? null : grants.flatMap(({ methods }) => methods ?? []);

/** Whether this request may go to a private address: one grant must allow both. `path` without its query. */
export const mayBePrivate = ({ privateMethods }: Allowance, method: string, path: string): boolean =>
  isMethodAllowed(privateMethods, method, path);

/** An address is never below a name. */
const isReadAs = (grant: Grant, { literal }: Authority): boolean => !literal || !grant.host.startsWith("*.");

/** As a grant names the host: with its port, unless the name alone covers that port. */
export const asGranted = (authority: Authority): string =>
  USUAL_PORTS.includes(authority.port)
    ? authorityText(authority).replace(/:\d+$/, "")
    : authorityText(authority);

function notGranted(authority: Authority): EgressDenial {
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
): readonly string[] | EgressDenial {
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

/** A requested host and port, in the one spelling that is compared, resolved and shown. */
export interface Authority {
  /** ASCII in lower case without a trailing dot; an address in its shortest form, IPv6 without brackets. */
  readonly host: string;
  readonly port: number;
  /** Whether the host is an address. */
  readonly literal: boolean;
}

/** Why a text names no host that can be judged. */
interface Unreadable {
  readonly unreadable: string;
}

export const isUnreadable = (read: object): read is Unreadable => "unreadable" in read;

const MAX_HOST_LENGTH = 253;
const LABEL = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/;

/** Characters that programs treat differently: some skip them, some stop at them, some decode them. */
const FORBIDDEN = /[\u0000-\u0020\u007f-\u00a0%@/\\?#<>^|`{}"]/;

/**
 * `host`, `host:port`, `[v6]:port`. Text that could be read in two ways is refused: NUL, control characters, spaces,
 * percent signs, userinfo, empty labels. Without a default port the text must have one.
 */
export function parseAuthority(text: string, defaultPort: number | null): Authority | Unreadable {
  if (text === "") return { unreadable: "no host is named" };
  if (text.length > MAX_HOST_LENGTH + 6) return { unreadable: "the host name is too long" };
  const match = /^(\[[^\]]*\]|[^:[\]]*)(?::([^:]*))?$/.exec(text);
  if (match === null) return { unreadable: "colons or brackets where none belong" };
  const [, named = "", written] = match;
  const port = written === undefined ? defaultPort : parsePort(written);
  if (port === null) return { unreadable: "the port is not between 1 and 65535" };
  const host = parseHost(named);
  return isUnreadable(host) ? host : { ...host, port };
}

function parsePort(text: string): number | null {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  return port >= 1 && port <= 65_535 ? port : null;
}

type Host = Omit<Authority, "port">;

/** A name, or an address in any form that programs accept: octal, hexadecimal, one number, fewer than four. */
function parseHost(text: string): Host | Unreadable {
  if (text === "") return { unreadable: "no host is named" };
  if (FORBIDDEN.test(text)) return { unreadable: "a character that is not allowed in a host name" };
  const isV6 = isIPv6(text.replace(/^\[(.*)\]$/, "$1"));
  if (text.includes(":") && !isV6) return { unreadable: "neither a host name nor an address" };
  const parsed = URL.parse(`http://${isIPv6(text) ? `[${text}]` : text}/`)?.hostname;
  if (parsed === undefined || parsed === "") return { unreadable: "neither a host name nor an address" };
  if (parsed.startsWith("[")) return { host: unmapped(parsed.slice(1, -1)), literal: true };
  if (isIP(parsed) !== 0) return { host: parsed, literal: true };
  const host = parsed.endsWith(".") ? parsed.slice(0, -1) : parsed;
  if (host.length > MAX_HOST_LENGTH) return { unreadable: "the host name is too long" };
  if (!host.split(".").every((label) => LABEL.test(label)))
    return { unreadable: "a part of the name that is not allowed in a host name" };
  return { host, literal: false };
}

/** Turns an IPv4 address in IPv6 form into the IPv4 address. */
function unmapped(host: string): string {
  const match = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(host);
  if (match === null) return host;
  const [high, low] = [Number.parseInt(match[1] ?? "", 16), Number.parseInt(match[2] ?? "", 16)];
  return [high >> 8, high & 255, low >> 8, low & 255].join(".");
}

/** The form that is used in URLs. */
export const authorityText = ({ host, port }: Authority): string =>
  `${host.includes(":") ? `[${host}]` : host}:${port}`;

/**
 * What may be behind an address. `never`: nothing that a box can be granted (any, multicast, broadcast); `loopback` and
 * `metadata` are reached only by a grant that names them, `private` by a grant that is marked so.
 */
type AddressClass = "public" | "private" | "metadata" | "loopback" | "never";

/** From the most open to the most closed: an address that embeds another one counts as the more closed of the two. */
const ORDER: readonly AddressClass[] = ["public", "private", "metadata", "loopback", "never"];

type Range = readonly [range: string, kind: AddressClass];

/** The first match counts. Addresses where clouds give machines credentials, and addresses that are not public. */
const V4: readonly Range[] = [
  ["169.254.169.254/32", "metadata"],
  ["169.254.170.2/32", "metadata"],
  ["169.254.170.23/32", "metadata"],
  ["169.254.169.123/32", "metadata"],
  ["169.254.0.23/32", "metadata"],
  ["100.100.100.200/32", "metadata"],
  ["168.63.129.16/32", "metadata"],
  ["192.0.0.192/32", "metadata"],
  ["0.0.0.0/8", "never"],
  ["127.0.0.0/8", "loopback"],
  ["10.0.0.0/8", "private"],
  ["100.64.0.0/10", "private"],
  ["169.254.0.0/16", "private"],
  ["172.16.0.0/12", "private"],
  ["192.0.0.0/24", "private"],
  ["192.0.2.0/24", "private"],
  ["192.31.196.0/24", "private"],
  ["192.52.193.0/24", "private"],
  ["192.88.99.0/24", "private"],
  ["192.168.0.0/16", "private"],
  ["192.175.48.0/24", "private"],
  ["198.18.0.0/15", "private"],
  ["198.51.100.0/24", "private"],
  ["203.0.113.0/24", "private"],
  ["224.0.0.0/4", "never"],
  ["255.255.255.255/32", "never"],
  ["240.0.0.0/4", "private"],
];

const V6: readonly Range[] = [
  ["::/128", "never"],
  ["::1/128", "loopback"],
  ["fd00:ec2::254/128", "metadata"],
  ["fd00:ec2::23/128", "metadata"],
  ["fd20:ce::254/128", "metadata"],
  ["fd00:42::42/128", "metadata"],
  ["ff00::/8", "never"],
  ["2001::/23", "private"],
  ["2001:db8::/32", "private"],
  ["2002::/16", "private"],
  ["2620:4f:8000::/48", "private"],
  ["3fff::/20", "private"],
  ["2000::/3", "public"],
  ["::/0", "private"],
];

/** Forms of IPv6 that lead to an IPv4 address: the place of its bytes, and whether they are inverted. */
const EMBEDDED: readonly (readonly [range: string, at: number, inverted?: true])[] = [
  ["::/96", 12],
  ["::ffff:0:0/96", 12],
  ["::ffff:0:0:0/96", 12],
  ["64:ff9b::/96", 12],
  ["64:ff9b:1::/96", 12],
  ["2002::/16", 2],
  ["2001::/32", 4],
  ["2001::/32", 12, true],
];

type Bytes = readonly number[];

/** Four or sixteen bytes of an address without a zone. */
export const bytesOf = (address: string): Bytes =>
  isIPv4(address) ? address.split(".").map(Number) : v6Bytes(address);

const words = (part: string | undefined): readonly number[] =>
  part === undefined || part === "" ? [] : part.split(":").map((word) => Number.parseInt(word, 16));

/** Takes any spelling of an address without a zone. */
function v6Bytes(address: string): Bytes {
  const short = URL.parse(`http://[${address}]/`)?.hostname.slice(1, -1) ?? "";
  const [before = "", after] = short.split("::");
  const [head, tail] = [words(before), words(after)];
  const all = [...head, ...Array.from({ length: 8 - head.length - tail.length }, () => 0), ...tail];
  return all.flatMap((word) => [word >> 8, word & 255]);
}

function isWithin(bytes: Bytes, [first, bits]: Subnet): boolean {
  return first.every((byte, at) => {
    const left = Math.min(Math.max(bits - at * 8, 0), 8);
    const mask = (255 << (8 - left)) & 255;
    return (byte & mask) === ((bytes[at] ?? 0) & mask);
  });
}

type Subnet = readonly [first: Bytes, bits: number];

function subnet(range: string): Subnet {
  const [address = "", bits = ""] = range.split("/");
  return [bytesOf(address), Number(bits)];
}

const V4_TABLE = V4.map(([range, kind]) => [subnet(range), kind] as const);
const V6_TABLE = V6.map(([range, kind]) => [subnet(range), kind] as const);
const EMBEDDED_TABLE = EMBEDDED.map(([range, at, inverted]) => ({ range: subnet(range), at, inverted }));

/** Takes any spelling of an address; a zone (`fe80::1%eth0`) is ignored. */
export function addressClass(address: string): AddressClass {
  const bytes = bytesOf(address.replace(/%.*$/, ""));
  return bytes.length === 4 ? v4Class(bytes) : v6Class(bytes);
}

const v4Class = (bytes: Bytes): AddressClass =>
  V4_TABLE.find(([range]) => isWithin(bytes, range))?.[1] ?? "public";

function v6Class(bytes: Bytes): AddressClass {
  const own = V6_TABLE.find(([range]) => isWithin(bytes, range))?.[1] ?? "never";
  if (own === "never" || own === "loopback") return own;
  const inner = [...EMBEDDED_TABLE, ...isatap(bytes)]
    .filter(({ range }) => isWithin(bytes, range))
    .map(({ at, inverted }) => bytes.slice(at, at + 4).map((byte) => (inverted === true ? 255 - byte : byte)))
    .map(v4Class);
  return [own, ...inner].reduce((most, each) => (ORDER.indexOf(each) > ORDER.indexOf(most) ? each : most));
}

/** Any prefix, then 0000:5efe or 0200:5efe, then a v4 address. */
const isatap = (bytes: Bytes): typeof EMBEDDED_TABLE =>
  ((bytes[8] ?? 0) & 0xfd) === 0 && bytes[9] === 0 && bytes[10] === 0x5e && bytes[11] === 0xfe
    ? [{ range: [[], 0], at: 12, inverted: undefined }]
    : [];

/** Addresses at which programs of this host may listen, however public. Read anew each time: they come and go. */
export function ownAddresses(): ReadonlySet<string> {
  const all = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  return new Set(all.map(({ address }) => bytesOf(address.replace(/%.*$/, "")).join(".")));
}

export const isAmong = (own: ReadonlySet<string>, address: string): boolean =>
  own.has(bytesOf(address.replace(/%.*$/, "")).join("."));
