import { isIP, isIPv6 } from "node:net";
import { URL } from "node:url";

/** A requested host and port, in the one spelling that is compared, resolved and shown. */
export interface Authority {
  /** ASCII in lower case without a trailing dot; an address in its shortest form, IPv6 without brackets. */
  readonly host: string;
  readonly port: number;
  /** Whether the host is an address. */
  readonly literal: boolean;
}

/** Why a text names no host that can be judged. */
export interface Unreadable {
  readonly unreadable: string;
}

export const isUnreadable = (read: object): read is Unreadable => "unreadable" in read;

const LONGEST = 253;
const LABEL = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/;

/** Characters that programs treat differently: some skip them, some stop at them, some decode them. */
const FORBIDDEN = /[\u0000-\u0020\u007f-\u00a0%@/\\?#<>^|`{}"]/;

/**
 * `host`, `host:port`, `[v6]:port`. Text that could be read in two ways is refused: NUL, control characters, spaces,
 * percent signs, userinfo, empty labels. Without a default port the text must have one.
 */
export function parseAuthority(text: string, defaultPort: number | null): Authority | Unreadable {
  if (text === "") return { unreadable: "no host is named" };
  if (text.length > LONGEST + 6) return { unreadable: "the host name is too long" };
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
  if (host.length > LONGEST) return { unreadable: "the host name is too long" };
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
export const shown = ({ host, port }: Authority): string =>
  `${host.includes(":") ? `[${host}]` : host}:${port}`;
