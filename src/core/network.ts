/**
 * What a box may reach, how a user writes it, and what it did reach. The filter is the egress proxy in
 * src/docker/egress.
 */
import { EXIT, HarnessError } from "./errors.ts";

/** A host, or all hosts below a name, that a box may reach. */
export interface Grant {
  /** Lower case and ASCII: `registry.example.org`, `*.example.org` (below it, not itself), or an address as text. */
  readonly host: string;
  /** Empty: 443 and 80. */
  readonly ports: readonly number[];
  /**
   * In upper case: for every path (`GET`), for one path (`POST /graphql`), or for the end of one (`POST
   * …/git-upload-pack`); null allows any. To see the methods, the proxy terminates TLS itself when some are named.
   */
  readonly methods: readonly string[] | null;
  /** Whether the name may resolve to private or reserved addresses; otherwise those are refused. */
  readonly private: boolean;
  /** What the user wrote, or the preset that it stands for: `npm`, `example.org:443`. */
  readonly origin: string;
}

/** How long a person's grant lasts: for that call, the rest of the session, or always, by the user's settings. */
export const GRANT_TERMS = ["call", "session", "always"] as const;

/** What a person grants with an answer: what the box may reach from then on, in the form of `allow_domains`. */
export interface AnswerGrant {
  readonly domains: readonly string[];
  readonly for: (typeof GRANT_TERMS)[number];
}

/** A value of the user that a box never sees: its commands get the placeholder, and the proxy puts in the value. */
export interface SecretBinding {
  /** The variable's name, also in the box. */
  readonly name: string;
  readonly placeholder: string;
  readonly value: string;
  /** In the form of `Grant.host`: only requests to these hosts carry the value. */
  readonly hosts: readonly string[];
}

/** One line of the ledger: a connection that a box asked for, or one request in it if the proxy sees requests. */
export interface Connection {
  /** Milliseconds since 1970. */
  readonly at: number;
  /** As requested, escaped and cut; empty when it could not be read. */
  readonly host: string;
  readonly port: number;
  /** Null in a tunnel that is only passed through. */
  readonly method: string | null;
  readonly verdict: "allowed" | "denied";
  /** Short and stable: `not-granted`, `port`, `method`, `private-address`, `sni`, `not-tls`, `authority`, `budget` … */
  readonly rule: string;
  /** For people and models, including what would grant it. */
  readonly reason: string;
  /** Bytes towards the host and back, known once the connection has ended. */
  readonly up: number;
  readonly down: number;
}

/** The methods of a read-only grant: git requests what it fetches with a POST. */
export const READING: readonly string[] = ["GET", "HEAD", "OPTIONS", "POST …/git-upload-pack"];

/** A connection that a command was refused. */
export interface BlockedConnection extends Pick<Connection, "host" | "port" | "method" | "rule" | "reason"> {
  readonly times: number;
}

/** A request that harness makes itself, for a tool or a server that somebody added. */
export interface OwnRequest {
  readonly url: string;
  readonly method: string;
  /** The only headers that are sent: no cookies, credentials or Referer from elsewhere. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
}

/** Every way in which the request can end; nothing throws. */
export type OwnAnswer =
  | {
      readonly kind: "answered";
      readonly status: number;
      /** Names in lower case, in the order received. */
      readonly headers: readonly (readonly [name: string, value: string])[];
      /** As received, not decompressed. Rejects if the connection breaks off; stopping early ends the connection. */
      readonly body: AsyncIterable<Uint8Array>;
    }
  | { readonly kind: "refused"; readonly rule: string; readonly reason: string }
  | { readonly kind: "unreachable"; readonly reason: string };

/**
 * Requests of harness itself, judged by the grants like a box's requests. Redirects are not followed: the caller has to
 * send another request.
 */
export interface OwnRequests {
  readonly send: (request: OwnRequest, signal: AbortSignal) => Promise<OwnAnswer>;
}

/*
 * How a user writes what a box may reach: `NAME[:PORTS][:METHODS][:private]`, the name of a preset, or `PRESET=` before
 * the first form, which states where that preset's registry is. Strict: ambiguous text is refused, with the position
 * and a correct form.
 */

/** Names for the registries that the user's own tools are set to. */
export const PRESETS = ["npm", "pip", "cargo", "go", "maven", "apt", "git"] as const;
export type Preset = (typeof PRESETS)[number];

/** Whether this entry grants a source of packages: a preset, or a registry stated by hand (`npm=HOST`). */
export const installs = (text: string): boolean => {
  const [name = ""] = text.split("=", 1);
  return isPreset(name) && name !== "git";
};

export const isPreset = (text: string): text is Preset => PRESETS.some((preset) => preset === text);

/** The methods of `read` in a grant. */
const READS: readonly string[] = READING.filter((method) => !method.includes(" "));
const METHODS: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"]);

type GrantReading =
  | { readonly kind: "grant"; readonly grant: Grant }
  | { readonly kind: "wrong"; readonly message: string };

/** A problem, and its offset in the text. */
class GrantProblem extends Error {
  readonly at: number;
  constructor(at: number, message: string) {
    super(message);
    this.at = at;
  }
}

/** One grant, not the name of a preset. `origin`: the preset that it stands for, if any. */
export function readGrant(text: string, origin = text): GrantReading {
  const word = /^[a-z]+(?==)/.exec(text)?.[0] ?? "";
  const start = isPreset(word) ? word.length + 1 : 0;
  try {
    const grant = grantIn(text.slice(start));
    if (start === 0) return { kind: "grant", grant: { ...grant, origin } };
    return { kind: "grant", grant: { ...grant, methods: grant.methods ?? readsOf(word), origin: word } };
  } catch (thrown) {
    if (!(thrown instanceof GrantProblem)) throw thrown;
    return { kind: "wrong", message: `${thrown.message}, at character ${thrown.at + start + 1}` };
  }
}

export function parseGrant(text: string, origin = text): Grant {
  const read = readGrant(text, origin);
  if (read.kind === "grant") return read.grant;
  throw new HarnessError(EXIT.usage, `${JSON.stringify(text)}: ${read.message}`, `--allow-domain ${EXAMPLE}`);
}

const EXAMPLE = "registry.example.org:443:read";

/** The canonical text of a grant. */
export function grantText({ host, ports, methods, private: own, origin }: Grant): string {
  const preset = isPreset(origin);
  const reads = isSame(methods, READS);
  const all = methods === null || (preset && isSame(methods, readsOf(origin)));
  return [
    `${preset ? `${origin}=` : ""}${host.includes(":") ? `[${host}]` : host}`,
    ...(ports.length === 0 ? [] : [ports.join(",")]),
    ...(all ? [] : [reads ? "read" : methods.join(",")]),
    ...(own ? ["private"] : []),
  ].join(":");
}

const readsOf = (preset: string): readonly string[] => (preset === "git" ? READING : READS);

const isSame = (one: readonly string[] | null, other: readonly string[]): boolean =>
  one?.length === other.length && other.every((method) => one.includes(method));

/** Whether the name, in the form of `Grant.host`, is the granted one or lies below it. */
export const coversHost = ({ host }: Pick<Grant, "host">, name: string): boolean =>
  host.startsWith("*.") ? name.endsWith(host.slice(1)) : name === host;

/** Ports that a grant opens if it names none. */
export const USUAL_PORTS: readonly number[] = [443, 80];

export const coversPort = ({ ports }: Pick<Grant, "ports">, port: number): boolean =>
  (ports.length === 0 ? USUAL_PORTS : ports).includes(port);

/** The host of an address, with its port unless that is 443: the form of `Facts.hosts`. */
export function hostOfUrl({ hostname, port, protocol }: URL): string {
  const name = hostname.endsWith(".") ? hostname.slice(0, -1) : hostname;
  const explicit = port === "" && protocol === "http:" ? "80" : port;
  return explicit === "" || explicit === "443" ? name : `${name}:${explicit}`;
}

/** Splits several grants in one text: `a.org,b.org:443,8443:GET,HEAD` are two. */
export function splitGrants(text: string): readonly string[] {
  const pieces: string[] = [];
  for (const piece of text.split(",").map((each) => each.trim())) {
    const last = pieces.length - 1;
    const [head = ""] = piece.split(":");
    const goesOn = last >= 0 && pieces[last]?.includes(":") === true;
    if (goesOn && (/^\d+$/.test(head) || METHODS.has(head.toUpperCase()))) pieces[last] += `,${piece}`;
    else if (piece !== "") pieces.push(piece);
  }
  return pieces;
}

function grantIn(text: string): Omit<Grant, "origin"> {
  if (text.length > MAX_LENGTH) throw new GrantProblem(MAX_LENGTH, `more than ${MAX_LENGTH} characters`);
  const scheme = /^[a-z][a-z0-9+.-]*:\/\//i.exec(text)?.[0];
  if (scheme !== undefined)
    throw new GrantProblem(0, `this is an address; give only a host name, such as ${nameIn(text, scheme)}`);
  const bad = /[^\p{L}\p{M}\p{N}.*_,:[\]-]/u.exec(text);
  if (bad !== null) throw new GrantProblem(bad.index, `${JSON.stringify(bad[0])} is not allowed in a grant`);
  const end = hostEnd(text);
  const host = hostOf(text.slice(0, end), end < text.length);
  let at = end;
  const found: GrantParts = { ports: null, methods: null, private: false };
  for (const part of text.slice(end).split(":").slice(1)) {
    at += 1;
    readPart(part, at, found);
    at += part.length;
  }
  return { host, ports: found.ports ?? [], methods: found.methods, private: found.private };
}

/** The longest host name, with room for ports and methods. */
const MAX_LENGTH = 400;

const nameIn = (text: string, scheme: string): string => {
  const [name = ""] = text.slice(scheme.length).split(/[/?#]/);
  const host = name.slice(name.lastIndexOf("@") + 1);
  return readGrant(host).kind === "grant" ? host : EXAMPLE;
};

function hostEnd(text: string): number {
  if (text.startsWith("[")) {
    const close = text.indexOf("]");
    if (close === -1) throw new GrantProblem(0, "[ has no matching ], as in [2001:db8::1]:443");
    if (![undefined, ":"].includes(text[close + 1]))
      throw new GrantProblem(close + 1, "only a port can follow ], as in [2001:db8::1]:443");
    return close + 1;
  }
  const bracket = text.search(/[[\]]/);
  if (bracket !== -1)
    throw new GrantProblem(bracket, "[ ] are only for an IPv6 address, as in [2001:db8::1]:443");
  if (/^[0-9a-f]*:[0-9a-f]*:[0-9a-f:.]*$/i.test(text) && !/^\d+:\d+:\d+$/.test(text))
    throw new GrantProblem(0, `an IPv6 address needs brackets, as in [${text}]:443`);
  const colon = text.indexOf(":");
  return colon === -1 ? text.length : colon;
}

/** In the form of `Grant.host`. */
function hostOf(text: string, more: boolean): string {
  if (text.startsWith("[")) return addressOf(text);
  const below = text.startsWith("*.");
  const name = below ? text.slice(2) : text;
  if (name === "") throw new GrantProblem(0, `a host name is missing, as in ${EXAMPLE}`);
  const offset = below ? 2 : 0;
  const odd = name.search(/[*,]/);
  if (odd !== -1)
    throw new GrantProblem(
      odd + offset,
      `${name[odd]} is not allowed here; write the hosts below a name as *.example.org`,
    );
  const ascii = asciiOf(name, offset);
  const isNumber = /^(?:\d+|0x[0-9a-f]*)$/i.test(name.split(".").at(-1) ?? "");
  if (isNumber && (below || ascii !== name))
    throw new GrantProblem(0, `a number that is not a plain address; perhaps ${ascii} is meant`);
  if (!ascii.includes(".")) refuseShort(ascii, { below, more });
  return `${below ? "*." : ""}${ascii}`;
}

/** A misspelt preset is not a host. */
function refuseShort(name: string, { below, more }: Readonly<Record<"below" | "more", boolean>>): void {
  if (below) throw new GrantProblem(0, `*.${name} is too broad; use a longer name, as in *.example.${name}`);
  if (name === "localhost" || more) return;
  throw new GrantProblem(
    0,
    `neither a preset (${PRESETS.join(", ")}) nor a full host name; write a host of your own network with its port, as in ${name}:443`,
  );
}

function asciiOf(name: string, offset: number): string {
  const ascii = hostnameOf(name);
  if (ascii === undefined) throw new GrantProblem(offset, "not a host name");
  const labels = ascii.split(".");
  const wrong = labels.find((label) => !/^(?!-)[a-z0-9_-]{1,63}(?<!-)$/.test(label));
  if (wrong === undefined && ascii.length <= 253) return ascii;
  const at = wrong === undefined ? 0 : Math.max(0, name.toLowerCase().indexOf(wrong));
  throw new GrantProblem(offset + at, "not a host name");
}

function addressOf(text: string): string {
  const host = hostnameOf(text);
  if (host === undefined) throw new GrantProblem(0, "not an IPv6 address such as [2001:db8::1]:443");
  return host.slice(1, -1);
}

/** IDNA and the shortest form of an address, as browsers have them. */
function hostnameOf(text: string): string | undefined {
  const url = URL.parse(`https://${text.normalize("NFC")}`);
  return url === null ? undefined : url.hostname;
}

interface GrantParts {
  ports: readonly number[] | null;
  methods: readonly string[] | null;
  private: boolean;
}

function readPart(part: string, at: number, found: GrantParts): void {
  if (part === "") throw new GrantProblem(at, "a port, a method or private is missing after :");
  if (/^\d/.test(part)) {
    if (found.ports !== null) throw new GrantProblem(at, "ports are given twice; write several as 443,8443");
    found.ports = unique(eachOf(part, at, portOf));
    return;
  }
  if (part.toLowerCase() === "private") {
    if (found.private) throw new GrantProblem(at, "private is given twice");
    found.private = true;
    return;
  }
  if (found.methods !== null)
    throw new GrantProblem(at, "methods are given twice; write several as GET,POST");
  found.methods = part.toLowerCase() === "read" ? READS : unique(eachOf(part, at, methodOf));
}

const unique = <T>(values: readonly T[]): readonly T[] => [...new Set(values)];

function eachOf<T>(part: string, at: number, read: (text: string, at: number) => T): readonly T[] {
  let offset = at;
  return part.split(",").map((piece) => {
    const value = read(piece, offset);
    offset += piece.length + 1;
    return value;
  });
}

function portOf(text: string, at: number): number {
  const port = /^[1-9]\d{0,4}$/.test(text) ? Number(text) : 0;
  if (port >= 1 && port <= 65_535) return port;
  throw new GrantProblem(at, `${JSON.stringify(text)} is not a port from 1 to 65535`);
}

function methodOf(text: string, at: number): string {
  const method = text.toUpperCase();
  if (METHODS.has(method)) return method;
  throw new GrantProblem(
    at,
    `${JSON.stringify(text)} is neither a port, a method (${[...METHODS].join(", ")}), read nor private`,
  );
}
