import { createHash, createHmac } from "node:crypto";
import { EXIT, HarnessError } from "../core/errors.ts";
import { visibleLine } from "../core/visible.ts";

/** Where buckets are, and the credentials, from the variables that other S3 programs also read. */
export interface BucketAccess {
  readonly credentials: Credentials;
  readonly region: string;
  /** A server of one's own, with the bucket name in the path; null: Amazon's, by region. */
  readonly endpoint: URL | null;
  /** A person's next step: how to set the variable of this name. */
  readonly toSet: (name: string, value: string) => string;
}

type Env = Readonly<Record<string, string | undefined>>;

/** Variables that no run of a row may have. */
export const CREDENTIAL_VARIABLES = [
  "AWS_ACCESS_KEY_ID",
  "AWS_SECRET_ACCESS_KEY",
  "AWS_SESSION_TOKEN",
] as const;

export function bucketAccess(env: Env): BucketAccess {
  const inLoop = env["HARNESS_POD_NAME"] !== undefined;
  const toSet = (name: string, value: string): string =>
    inLoop
      ? `put ${name}=${value} into the Secret that kubernetes.model_secret names`
      : `export ${name}=${value}`;
  const variable = (name: string): string | undefined => (env[name] === "" ? undefined : env[name]);
  const needed = (name: string): string => {
    const value = variable(name);
    if (value === undefined)
      throw refused(
        `${name} is not set, but a bucket requires it`,
        `${toSet(name, "…")} (docs/kubernetes.md)`,
      );
    return value;
  };
  const credential = (name: string, value: string): string => {
    if (/^[\u0021-\u007e]+$/.test(value)) return value;
    throw refused(
      `${name} contains a space, a line break or another character that no key has`,
      `set it again, without anything around it: ${toSet(name, "…")}`,
    );
  };
  const token = variable("AWS_SESSION_TOKEN");
  const [id, secret] = [CREDENTIAL_VARIABLES[0], CREDENTIAL_VARIABLES[1]];
  const credentials: Credentials = {
    accessKeyId: credential(id, needed(id)),
    secretAccessKey: credential(secret, needed(secret)),
    sessionToken: token === undefined ? undefined : credential("AWS_SESSION_TOKEN", token),
  };
  const address = variable("AWS_ENDPOINT_URL_S3") ?? variable("AWS_ENDPOINT_URL");
  const endpoint = address === undefined ? null : endpointIn(address, toSet);
  const region =
    variable("AWS_REGION") ??
    variable("AWS_DEFAULT_REGION") ??
    (endpoint === null ? needed("AWS_REGION") : "us-east-1");
  if (!/^[a-z0-9-]{1,40}$/.test(region))
    throw refused(`AWS_REGION is not a region: ${visibleLine(region)}`, toSet("AWS_REGION", "eu-central-1"));
  return { credentials, region, endpoint, toSet };
}

function endpointIn(text: string, toSet: BucketAccess["toSet"]): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (
    url !== undefined &&
    /^https?:$/.test(url.protocol) &&
    `${url.username}${url.password}${url.search}${url.hash}` === ""
  )
    return url;
  // The value may hold a password.
  throw refused(
    "AWS_ENDPOINT_URL is not a plain http or https address",
    toSet("AWS_ENDPOINT_URL", "https://minio.example:9000"),
  );
}

const refused = (message: string, remedy: string): HarnessError =>
  new HarnessError(EXIT.usage, message, remedy);

/**
 * Signature Version 4 in headers, as S3 wants it: the path is signed as it is sent, together with the hash of the
 * content.
 */

interface Credentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken: string | undefined;
}

export interface UnsignedRequest {
  readonly method: string;
  /** Path and query must be encoded with `uriEncoded`. */
  readonly url: URL;
  readonly payload: Uint8Array;
  readonly headers?: Readonly<Record<string, string>>;
}

const sha256Hex = (bytes: Uint8Array | string): string => createHash("sha256").update(bytes).digest("hex");

const hmac = (key: Uint8Array | string, text: string): Buffer =>
  createHmac("sha256", key).update(text).digest();

/** Encodes everything except letters, digits and -._~ as bytes. */
export const uriEncoded = (text: string): string =>
  encodeURIComponent(text).replaceAll(
    /[!'()*]/g,
    (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`,
  );

/** All headers of the request except `host`, which the sender derives from the address. */
export function signedHeaders(
  { method, url, payload, headers = {} }: UnsignedRequest,
  { accessKeyId, secretAccessKey, sessionToken }: Credentials,
  { region, at }: { readonly region: string; readonly at: Date },
): Readonly<Record<string, string>> {
  const time = at.toISOString().replaceAll(/[-:]|\.\d+/g, "");
  const day = time.slice(0, 8);
  const payloadHash = sha256Hex(payload);
  const sent: Record<string, string> = {
    ...headers,
    "x-amz-content-sha256": payloadHash,
    "x-amz-date": time,
    ...(sessionToken === undefined ? {} : { "x-amz-security-token": sessionToken }),
  };
  const signed = Object.entries({ ...sent, host: url.host }).toSorted(byName);
  const names = signed.map(([name]) => name).join(";");
  const canonical = [
    method,
    url.pathname,
    sortedQuery(url),
    ...signed.map(([name, value]) => `${name}:${value.trim()}`),
    "",
    names,
    payloadHash,
  ].join("\n");
  const scope = `${day}/${region}/s3/aws4_request`;
  const toSign = `AWS4-HMAC-SHA256\n${time}\n${scope}\n${sha256Hex(canonical)}`;
  const key = [day, region, "s3", "aws4_request"].reduce<Uint8Array | string>(hmac, `AWS4${secretAccessKey}`);
  const signature = hmac(key, toSign).toString("hex");
  const authorization = `AWS4-HMAC-SHA256 Credential=${accessKeyId}/${scope},SignedHeaders=${names},Signature=${signature}`;
  return { ...sent, authorization };
}

type Named = readonly [name: string, value: string];

const byName = ([a]: Named, [b]: Named): number => (a < b ? -1 : 1);

const sortedQuery = ({ search }: URL): string =>
  search
    .slice(1)
    .split("&")
    .filter((pair) => pair !== "")
    .map((pair): Named => {
      const [name = "", value = ""] = pair.split("=");
      return [name, value];
    })
    .toSorted(byName)
    .map(([name, value]) => `${name}=${value}`)
    .join("&");
