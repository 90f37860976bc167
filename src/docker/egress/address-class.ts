import { isIPv4 } from "node:net";
import { networkInterfaces } from "node:os";
import { URL } from "node:url";

/**
 * What may be behind an address. `never`: nothing that a box can be granted (any, multicast, broadcast); `loopback` and
 * `metadata` are reached only by a grant that names them, `private` by a grant that is marked so.
 */
export type AddressClass = "public" | "private" | "metadata" | "loopback" | "never";

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
