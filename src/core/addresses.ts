import { percentDecoded } from "./raw-data.ts";
/** Addresses as people write them: of the engine that makes the boxes, and of buckets. Pure: nothing is contacted. */

/** The engine that makes the boxes, as people write it: `--engine`, the setting `engine`, HARNESS_ENGINE. */
export type EngineAddress =
  | { readonly kind: "unix"; readonly path: string }
  /** Uses TLS if certificates are there. Without TLS only on loopback, or if `plain` says so (`http://`). */
  | { readonly kind: "tcp"; readonly host: string; readonly port: number | null; readonly plain: boolean }
  /** Only with TLS (`https://`). */
  | { readonly kind: "tls"; readonly host: string; readonly port: number | null }
  | {
      readonly kind: "ssh";
      readonly user: string | null;
      readonly host: string;
      readonly port: number | null;
      /** The engine's socket on that host, if it is not the usual one. */
      readonly path: string | null;
    }
  | { readonly kind: "context"; readonly name: string }
  | { readonly kind: "kubernetes"; readonly context: string | null; readonly namespace: string | null };

type EngineRead =
  | { readonly kind: "address"; readonly address: EngineAddress }
  | { readonly kind: "wrong"; readonly message: string };

export const ENGINE_FORM =
  "unix:///path/to.sock, tcp://host:port, ssh://user@host, kubernetes://CONTEXT/NAMESPACE or the name of a docker context";

/** A name that docker allows for a context. */
const CONTEXT = /^[a-zA-Z0-9][a-zA-Z0-9_.+-]{0,254}$/;
/** A host never begins with a dash: the program that gets it would take it for an option. */
const HOST =
  /^(?:[a-zA-Z0-9_](?:[a-zA-Z0-9_.-]{0,253}[a-zA-Z0-9_.])?|\[[0-9a-fA-F:.]{2,45}(?:%[a-zA-Z0-9_.-]{1,30})?\])$/;
const USER = /^[a-zA-Z0-9_][a-zA-Z0-9_.@+\\-]{0,254}$/;
const REMOTE_PATH = /^\/[a-zA-Z0-9_.+@/-]{1,254}$/;
const NAMESPACE = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

export function readEngineAddress(text: string): EngineRead {
  const [, scheme, rest = ""] = /^([a-zA-Z][a-zA-Z0-9+.-]*):\/\/(.*)$/s.exec(text) ?? [];
  if (text === "") return wrongAddress("it is empty");
  const cluster = /^kubernetes:(?:\/\/)?(.*)$/is.exec(text);
  if (cluster !== null) return onKubernetes(cluster[1] ?? "");
  if (scheme === undefined)
    return CONTEXT.test(text)
      ? address({ kind: "context", name: text })
      : wrongAddress(`${JSON.stringify(text)} is neither an address nor a possible name of a docker context`);
  switch (scheme.toLowerCase()) {
    case "unix":
      return rest.startsWith("/") && rest.length > 1 && !/[\0\n]/.test(rest)
        ? address({ kind: "unix", path: rest })
        : wrongAddress("a socket needs its absolute path: unix:///path/to.sock");
    case "tcp":
    case "http":
    case "https":
      return overNetwork(scheme.toLowerCase(), rest);
    case "ssh":
      return overSsh(rest);
    default:
      return wrongAddress(`${scheme}:// is not supported`);
  }
}

const address = (found: EngineAddress): EngineRead => ({ kind: "address", address: found });
const wrongAddress = (message: string): EngineRead => ({ kind: "wrong", message });

function overNetwork(scheme: string, rest: string): EngineRead {
  if (rest.includes("@"))
    return wrongAddress("an engine over TCP takes no user name or password: use TLS certificates");
  const at = hostAndPort(rest.replace(/\/$/, ""));
  if (at === undefined) return wrongAddress(`${scheme}:// expects host:port, and nothing after it`);
  return address(
    scheme === "https" ? { kind: "tls", ...at } : { kind: "tcp", ...at, plain: scheme === "http" },
  );
}

function overSsh(rest: string): EngineRead {
  const slash = rest.indexOf("/");
  const path = slash === -1 || slash === rest.length - 1 ? null : rest.slice(slash);
  const authority = slash === -1 ? rest : rest.slice(0, slash);
  const sign = authority.lastIndexOf("@");
  const user = sign === -1 ? null : authority.slice(0, sign);
  if (user?.includes(":") === true)
    return wrongAddress("an address must not have a password: use keys, an agent or ~/.ssh/config");
  const at = hostAndPort(authority.slice(sign + 1));
  if (at === undefined || (user !== null && !USER.test(user)))
    return wrongAddress("ssh:// expects user@host, followed by :port if needed");
  if (path !== null && !REMOTE_PATH.test(path))
    return wrongAddress("only the path of a socket can follow the host");
  return address({ kind: "ssh", user, ...at, path });
}

function hostAndPort(text: string): { readonly host: string; readonly port: number | null } | undefined {
  const [, host = "", digits] = /^(\[[^\]]*\]|[^:]*)(?::(\d{1,5}))?$/.exec(text) ?? [];
  const port = digits === undefined ? null : Number(digits);
  if (!HOST.test(host) || (port !== null && (port < 1 || port > 65_535))) return undefined;
  return { host: host.replace(/^\[(.*)\]$/, "$1"), port };
}

/** A slash in a context's own name is written %2F. */
function onKubernetes(rest: string): EngineRead {
  const [context = "", namespace = "", ...more] = rest.split("/");
  if (more.length > 0)
    return wrongAddress("kubernetes:// expects CONTEXT/NAMESPACE; write a slash in a context's name as %2F");
  const name = percentDecoded(context);
  if (name === undefined || /[\0-\x1f\x7f]/.test(name))
    return wrongAddress("the context's name cannot be read");
  if (namespace !== "" && !NAMESPACE.test(namespace))
    return wrongAddress(`${JSON.stringify(namespace)} is not a valid namespace name`);
  return address({ kind: "kubernetes", context: name || null, namespace: namespace || null });
}

/** The address as it is written, without parts that were left out. */
export function engineText(found: EngineAddress): string {
  switch (found.kind) {
    case "unix":
      return `unix://${found.path}`;
    case "tcp":
      return `${found.plain ? "http" : "tcp"}://${placeText(found)}`;
    case "tls":
      return `https://${placeText(found)}`;
    case "ssh":
      return `ssh://${found.user === null ? "" : `${found.user}@`}${placeText(found)}${found.path ?? ""}`;
    case "context":
      return found.name;
    case "kubernetes":
      return `kubernetes://${encodeURIComponent(found.context ?? "")}${found.namespace === null ? "" : `/${found.namespace}`}`;
  }
}

const placeText = ({ host, port }: { readonly host: string; readonly port: number | null }): string =>
  `${host.includes(":") ? `[${host}]` : host}${port === null ? "" : `:${port}`}`;

/** Addresses that mean this machine, whatever answers there. */
export const isLoopback = (host: string): boolean =>
  host === "localhost" || host === "::1" || /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(host);

/** `s3://BUCKET/KEY`, as typed and shown. The rest after the bucket is the key, verbatim and not encoded. */
interface BucketAddress {
  readonly bucket: string;
  /** Empty for the whole bucket. */
  readonly key: string;
}

const SCHEME = /^s3:\/\//i;

export const isBucketAddress = (text: string): boolean => SCHEME.test(text);

const BUCKET = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/;

/** The address, or why the text is not one. */
export function readBucketAddress(text: string): BucketAddress | string {
  if (!isBucketAddress(text)) return "a bucket address begins with s3://";
  const rest = text.replace(SCHEME, "");
  const end = rest.indexOf("/");
  const bucket = end === -1 ? rest : rest.slice(0, end);
  const key = end === -1 ? "" : rest.slice(end + 1);
  if (!BUCKET.test(bucket) || bucket.includes(".."))
    return "a bucket has a name of 3 to 63 lower-case letters, digits, dots and dashes, as in s3://bucket/prefix";
  return badKey(key) ?? { bucket, key };
}

const MAX_KEY_BYTES = 1024;

/** Why a key cannot be requested. */
export function badKey(key: string): string | undefined {
  if (!key.isWellFormed()) return "its key is not valid Unicode";
  if (new TextEncoder().encode(key).length > MAX_KEY_BYTES)
    return `its key has more than ${MAX_KEY_BYTES} bytes`;
  // HTTP clients resolve these as path steps, and would request another key.
  if (key.split("/").some((part) => part === "." || part === ".."))
    return "a part of its key is . or .., which an address cannot contain";
  return undefined;
}

/** Key prefixes that batches may write below: the prefix becomes a word of a Job, and part of many addresses. */
const PLAIN_KEY = /^(?:[\w.=-]+(?:\/[\w.=-]+)*)?$/;

/** Why a batch's results cannot be stored there; undefined if they can. */
export function badResultsPlace(text: string): string | undefined {
  const read = readBucketAddress(text);
  if (typeof read === "string") return read;
  if (PLAIN_KEY.test(read.key) && !text.endsWith("/")) return undefined;
  return "expected s3://BUCKET or s3://BUCKET/PREFIX, the prefix of letters, digits, and . _ = - between single slashes";
}

export const bucketAddress = (bucket: string, key: string): string => `s3://${bucket}/${key}`;
