import { createHash, createHmac } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/**
 * An S3 server with one bucket on this machine. It recomputes each signature from the received bytes according to the
 * published description, with none of our code; requests that are wrongly signed, or signed for another time or region,
 * are refused.
 */
export interface BucketServer extends AsyncDisposable {
  /** Environment variables that lead here: for the loop of a row, or for a reader. */
  readonly env: Readonly<Record<string, string>>;
  readonly url: string;
  readonly objects: Map<string, StoredBytes>;
  /** `GET key`, `PUT key` or `LIST prefix`, in order, including refused requests. */
  readonly asked: string[];
  /** Faults for the next requests, before anything is checked; later requests are served. */
  readonly faults: Fault[];
}

interface StoredBytes {
  readonly bytes: Buffer;
  readonly changed: number;
}

export type Fault =
  | "cut"
  | "cut in the middle"
  | { readonly status: number; readonly headers?: Readonly<Record<string, string>>; readonly body?: string };

export interface BucketOptions {
  readonly region?: string;
  /** Keys per page of a list. */
  readonly page?: number;
  readonly token?: string;
  /** How far the server's clock is behind ours, in milliseconds. */
  readonly clockBehind?: number;
  /** The server's answers contain no time. */
  readonly tellsNoTime?: boolean;
  /** Keys in lists are written unencoded, although encoding was requested. */
  readonly plainKeys?: boolean;
  /** Objects in the bucket have a default retention, so uploads must carry a checksum. */
  readonly locks?: boolean;
  /** A path before the bucket in each address. */
  readonly below?: string;
}

export const KEY_ID = "AKIAIOSFODNN7EXAMPLE";
export const SECRET_KEY = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
export const BUCKET = "results-of-team";

class Refused extends Error {
  readonly status: number;
  readonly xml: string;
  constructor(status: number, code: string, more = "") {
    super(code);
    this.status = status;
    this.xml = `<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>${code}</Code><Message>said by ${code} to ${KEY_ID}</Message>${more}</Error>`;
  }
}

export async function startBucket(options: BucketOptions = {}): Promise<BucketServer> {
  const { region = "eu-test-1", token, below = "" } = options;
  const objects = new Map<string, StoredBytes>();
  const asked: string[] = [];
  const faults: Fault[] = [];
  const server = createServer((request, response) => {
    response.sendDate = false;
    if (options.tellsNoTime !== true) response.setHeader("date", new Date(timeOf(options)).toUTCString());
    const pieces: Buffer[] = [];
    request.on("data", (piece: Buffer) => pieces.push(piece));
    request.on("end", () => {
      const body = Buffer.concat(pieces);
      const { path, query } = partsOf(request.url ?? "");
      const inBucket = path.startsWith(`${below}/${BUCKET}/`);
      const key = path.slice(`${below}/${BUCKET}/`.length);
      asked.push(key === "" ? `LIST ${query.get("prefix") ?? ""}` : `${request.method ?? ""} ${key}`);
      const fault = faults.shift();
      if (fault === "cut") return void request.socket.destroy();
      if (fault === "cut in the middle") {
        response.writeHead(200, { "content-length": 1000 });
        return void response.write("x", () => request.socket.destroy());
      }
      if (fault !== undefined) return void response.writeHead(fault.status, fault.headers).end(fault.body);
      try {
        verify(request, body, options);
        verifySum(request, body, options);
        if (!inBucket) throw new Refused(404, "NoSuchBucket");
        serve(request, response, { key, query, body, objects, options });
      } catch (thrown) {
        if (!(thrown instanceof Refused)) throw thrown;
        response.writeHead(thrown.status, { "content-type": "application/xml" }).end(thrown.xml);
      }
    });
  });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}${below}`;
  const env = {
    AWS_ACCESS_KEY_ID: KEY_ID,
    AWS_SECRET_ACCESS_KEY: SECRET_KEY,
    AWS_REGION: region,
    AWS_ENDPOINT_URL: url,
    ...(token === undefined ? {} : { AWS_SESSION_TOKEN: token }),
  };
  return {
    env,
    url,
    objects,
    asked,
    faults,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise<void>((resolve) => void server.close(() => resolve()));
    },
  };
}

interface ServedRequest {
  readonly key: string;
  readonly query: ReadonlyMap<string, string>;
  readonly body: Buffer;
  readonly objects: Map<string, StoredBytes>;
  readonly options: BucketOptions;
}

function serve(request: IncomingMessage, response: ServerResponse, served: ServedRequest): void {
  const { key, query, body, objects, options } = served;
  if (request.method === "PUT") {
    objects.set(key, { bytes: body, changed: timeOf(options) });
    return void response.end();
  }
  if (key === "") return void response.end(listed(query, objects, options));
  const found = objects.get(key);
  if (found === undefined) throw new Refused(404, "NoSuchKey");
  response.end(found.bytes);
}

function listed(
  query: ReadonlyMap<string, string>,
  objects: ReadonlyMap<string, StoredBytes>,
  { page = 1000, plainKeys = false }: BucketOptions,
): string {
  if (query.get("list-type") !== "2") throw new Refused(400, "InvalidArgument");
  const prefix = query.get("prefix") ?? "";
  const keys = [...objects.keys()].filter((key) => key.startsWith(prefix)).toSorted();
  const token = query.get("continuation-token");
  const from = token === undefined ? 0 : Number(Buffer.from(token, "base64").toString());
  const shown = keys.slice(from, from + page);
  const more = from + page < keys.length;
  const written = (key: string): string =>
    plainKeys
      ? key.replaceAll("&", "&amp;").replaceAll("<", "&lt;")
      : encoded(Buffer.from(key)).replaceAll("%20", "+");
  const contents = shown.map((key) => {
    const { bytes, changed = 0 } = objects.get(key) ?? { bytes: "" };
    return `<Contents><Key>${written(key)}</Key><LastModified>${new Date(changed).toISOString()}</LastModified><ETag>&quot;5&quot;</ETag><Size>${bytes.length}</Size><Owner><ID>o</ID></Owner></Contents>`;
  });
  // A token with characters that a query must encode.
  const next = Buffer.from(String(from + page)).toString("base64");
  return `<?xml version="1.0" encoding="UTF-8"?>
<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>${BUCKET}</Name>${plainKeys ? "" : "<EncodingType>url</EncodingType>"}<IsTruncated>${String(more)}</IsTruncated>${contents.join("")}${more ? `<NextContinuationToken>${next}</NextContinuationToken>` : ""}</ListBucketResult>`;
}

const QUARTER_MS = 15 * 60_000;

const timeOf = ({ clockBehind = 0 }: BucketOptions): number => Date.now() - clockBehind;

/** Verifies the signature of a request according to "Signature Version 4" and its S3 variant. */
function verify(request: IncomingMessage, body: Buffer, options: BucketOptions): void {
  const form =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/s3\/aws4_request, ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})$/;
  const said = form.exec(request.headers.authorization ?? "");
  if (said === null) throw new Refused(403, "AccessDenied");
  const [, id = "", day = "", place = "", names = "", signature] = said;
  const time = String(request.headers["x-amz-date"]);
  refuseOthers(request, { id, place, time }, options);
  const signed = names.split(";");
  const must = ["host", ...Object.keys(request.headers).filter((name) => name.startsWith("x-amz-"))];
  if (must.some((name) => !signed.includes(name)) || time.slice(0, 8) !== day)
    throw new Refused(403, "AccessDenied");
  const hash = createHash("sha256").update(body).digest("hex");
  if (request.headers["x-amz-content-sha256"] !== hash) throw new Refused(400, "XAmzContentSHA256Mismatch");
  const canonical = canonicalOf(request, signed, hash);
  const digest = createHash("sha256").update(canonical).digest("hex");
  let key: Buffer = Buffer.from(`AWS4${SECRET_KEY}`);
  for (const part of [day, place, "s3", "aws4_request"])
    key = createHmac("sha256", key).update(part).digest();
  const text = `AWS4-HMAC-SHA256\n${time}\n${day}/${place}/s3/aws4_request\n${digest}`;
  if (createHmac("sha256", key).update(text).digest("hex") !== signature)
    throw new Refused(403, "SignatureDoesNotMatch");
}

/** Refuses requests for another region, with another key, or of another time. */
function refuseOthers(
  { headers }: IncomingMessage,
  { id, place, time }: { readonly id: string; readonly place: string; readonly time: string },
  { region = "eu-test-1", token, clockBehind = 0 }: BucketOptions,
): void {
  if (place !== region) throw new Refused(400, "AuthorizationHeaderMalformed", `<Region>${region}</Region>`);
  if (id !== KEY_ID) throw new Refused(403, "InvalidAccessKeyId");
  if (!(Math.abs(momentIn(time) - timeOf({ clockBehind })) < QUARTER_MS))
    throw new Refused(403, "RequestTimeTooSkewed");
  if (token !== undefined && headers["x-amz-security-token"] !== token)
    throw new Refused(400, "InvalidToken");
}

function verifySum({ method, headers }: IncomingMessage, body: Buffer, { locks }: BucketOptions): void {
  const said = headers["content-md5"];
  if (said === undefined && locks === true && method === "PUT")
    throw new Refused(400, "InvalidRequest", "<Info>Content-MD5 OR x-amz-checksum- is required</Info>");
  if (said !== undefined && said !== createHash("md5").update(body).digest("base64"))
    throw new Refused(400, "BadDigest");
}

function momentIn(time: string): number {
  const [, year, month, date, hour, minute, second] =
    /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(time) ?? [];
  return Date.parse(`${year}-${month}-${date}T${hour}:${minute}:${second}Z`);
}

function canonicalOf(
  { method = "", url = "", headers }: IncomingMessage,
  signed: readonly string[],
  hash: string,
): string {
  const { path, query } = partsOf(url);
  const pairs = [...query].map((pair) => pair.map((text) => encoded(text).replaceAll("/", "%2F")).join("="));
  const lines = signed.map((name) => `${name}:${String(headers[name] ?? "")}\n`).join("");
  return `${method}\n${encoded(path)}\n${pairs.toSorted().join("&")}\n${lines}\n${signed.join(";")}\n${hash}`;
}

/** Splits the target in the request line, and decodes its bytes once. */
function partsOf(target: string): { readonly path: string; readonly query: ReadonlyMap<string, string> } {
  const [path = "", search = ""] = target.split("?");
  const pairs = search.split("&").filter((pair) => pair !== "");
  const query = pairs.map((pair) => {
    const at = pair.indexOf("=");
    return [decodeURIComponent(pair.slice(0, at)), decodeURIComponent(pair.slice(at + 1))] as const;
  });
  return { path: decodeURIComponent(path), query: new Map(query) };
}

const PLAIN = /[A-Za-z0-9/._~-]/;

/** Encodes byte by byte, as in a path. */
function encoded(text: string | Buffer): string {
  const signs = Array.from(Buffer.from(text as string), (byte) => {
    const sign = String.fromCharCode(byte);
    return PLAIN.test(sign) ? sign : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  });
  return signs.join("");
}
