import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from "node:crypto";
import { isIP } from "node:net";
import { createSecureContext, type SecureContext } from "node:tls";
import { bytesOf } from "./address-class.ts";

/**
 * Certificates for the hosts of one session, signed by an authority that is made for it: its key exists only in the
 * memory of this process and ends with it. Only the box is told to trust the authority.
 */
export interface SessionAuthority {
  /** The authority's own certificate. */
  readonly pem: string;
  /** For a server that acts as this host; kept, because every handshake asks for it. */
  readonly contextFor: (host: string) => SecureContext;
}

const DAY_MS = 86_400_000;
/** Longer than any run; short enough for every verifier. */
const LIFETIME_MS = 30 * DAY_MS;
const MOST_KEPT = 1000;

export function makeSessionAuthority(now = Date.now()): SessionAuthority {
  const [authority, leaf] = [keyPair(), keyPair()];
  const name = `harness session ${randomBytes(4).toString("hex")}`;
  const issuer: Issuer = { name, key: authority.privateKey, id: keyId(authority.publicKey), now };
  const pem = certificate(issuer, authority.publicKey, name, AUTHORITY);
  const key = leaf.privateKey.export({ type: "pkcs8", format: "pem" });
  const kept = new Map<string, SecureContext>();
  return {
    pem,
    contextFor: (host) => {
      const known = kept.get(host);
      if (known !== undefined) return known;
      if (kept.size >= MOST_KEPT) kept.clear();
      const cert = certificate(issuer, leaf.publicKey, "a host behind the harness proxy", leafFor(host));
      const context = createSecureContext({ key, cert, minVersion: "TLSv1.2" });
      kept.set(host, context);
      return context;
    },
  };
}

const keyPair = (): { readonly publicKey: KeyObject; readonly privateKey: KeyObject } =>
  generateKeyPairSync("ec", { namedCurve: "P-256" });

interface Issuer {
  readonly name: string;
  readonly key: KeyObject;
  readonly id: Buffer;
  readonly now: number;
}

const TAG = {
  boolean: 0x01,
  integer: 0x02,
  bits: 0x03,
  octets: 0x04,
  oid: 0x06,
  utf8: 0x0c,
  utcTime: 0x17,
  sequence: 0x30,
  set: 0x31,
} as const;

function der(tag: number, ...content: readonly Buffer[]): Buffer {
  const body = Buffer.concat(content);
  const { length } = body;
  const size =
    length < 0x80 ? [length] : length < 0x1_00 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), body]);
}

const sequence = (...content: readonly Buffer[]): Buffer => der(TAG.sequence, ...content);

/** For identifiers that begin with 0, 1 or 2 and have no number above 2 ** 21. */
function oid(text: string): Buffer {
  const [first = 0, second = 0, ...others] = text.split(".").map(Number);
  const bytes = others.flatMap((number) => [
    ...(number >= 2 ** 14 ? [0x80 | (number >> 14)] : []),
    ...(number >= 2 ** 7 ? [0x80 | ((number >> 7) & 0x7f)] : []),
    number & 0x7f,
  ]);
  return der(TAG.oid, Buffer.from([first * 40 + second, ...bytes]));
}

/** `unused`: how many bits at the end of the last byte do not count. */
const bits = (bytes: Buffer, unused = 0): Buffer => der(TAG.bits, Buffer.from([unused]), bytes);

const commonName = (name: string): Buffer =>
  sequence(der(TAG.set, sequence(oid("2.5.4.3"), der(TAG.utf8, Buffer.from(name)))));

/** Years have two digits: good until 2049. */
const time = (ms: number): Buffer =>
  der(
    TAG.utcTime,
    Buffer.from(
      `${new Date(ms)
        .toISOString()
        .replaceAll(/[-:T]|\..*/g, "")
        .slice(2)}Z`,
    ),
  );

const TRUE = der(TAG.boolean, Buffer.from([0xff]));

const extension = (id: string, value: Buffer, critical = false): Buffer =>
  sequence(oid(id), ...(critical ? [TRUE] : []), der(TAG.octets, value));

/** The authority may sign for hosts, but not for another authority. */
const AUTHORITY: readonly Buffer[] = [
  extension("2.5.29.19", sequence(TRUE, der(TAG.integer, Buffer.from([0]))), true),
  extension("2.5.29.15", bits(Buffer.from([0x04]), 2), true),
];

const leafFor = (host: string): readonly Buffer[] => [
  extension("2.5.29.19", sequence(), true),
  extension("2.5.29.15", bits(Buffer.from([0x80]), 7), true),
  extension("2.5.29.37", sequence(oid("1.3.6.1.5.5.7.3.1"))),
  extension(
    "2.5.29.17",
    sequence(isIP(host) === 0 ? der(0x82, Buffer.from(host)) : der(0x87, Buffer.from(bytesOf(host)))),
  ),
];

const publicBytes = (key: KeyObject): Buffer => key.export({ type: "spki", format: "der" });
const keyId = (key: KeyObject): Buffer =>
  createHash("sha256").update(publicBytes(key)).digest().subarray(0, 20);

const ECDSA_SHA256 = sequence(oid("1.2.840.10045.4.3.2"));

/** An X.509 certificate of version 3, as RFC 5280 specifies it. */
function certificate(issuer: Issuer, key: KeyObject, subject: string, own: readonly Buffer[]): string {
  const serial = randomBytes(16);
  serial[0] = ((serial[0] ?? 0) & 0x3f) | 0x40;
  const extensions = [
    ...own,
    extension("2.5.29.14", der(TAG.octets, keyId(key))),
    extension("2.5.29.35", sequence(der(0x80, issuer.id))),
  ];
  const signed = sequence(
    der(0xa0, der(TAG.integer, Buffer.from([2]))),
    der(TAG.integer, serial),
    ECDSA_SHA256,
    commonName(issuer.name),
    sequence(time(issuer.now - DAY_MS), time(issuer.now + LIFETIME_MS)),
    commonName(subject),
    publicBytes(key),
    der(0xa3, sequence(...extensions)),
  );
  const whole = sequence(signed, ECDSA_SHA256, bits(sign("sha256", signed, issuer.key)));
  const lines = whole.toString("base64").replaceAll(/.{1,64}/g, "$&\n");
  return `-----BEGIN CERTIFICATE-----\n${lines}-----END CERTIFICATE-----\n`;
}
