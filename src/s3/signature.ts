import { createHash, createHmac } from "node:crypto";

/**
 * Signature Version 4 in headers, as S3 wants it: the path is signed as it is sent, together with the hash of the
 * content.
 */

export interface Credentials {
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
