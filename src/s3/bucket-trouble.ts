import { errorCode, EXIT, HarnessError, reasonOf } from "../core/errors.ts";
import { isBusy } from "../core/server-wait.ts";
import { visibleLine } from "../core/visible.ts";
import type { BucketAccess } from "./bucket-access.ts";

/** What was asked of which object or bucket: enough to say what to do after a refusal. */
export interface BucketRequest {
  readonly access: BucketAccess;
  /** Completes a sentence that begins with "cannot". */
  readonly what: string;
  readonly bucket: string;
  /** The right on the bucket that may be missing. */
  readonly right: "s3:PutObject" | "s3:GetObject" | "s3:ListBucket";
}

interface Kind {
  readonly passing?: boolean;
  readonly busy?: boolean;
  readonly missing?: boolean;
  readonly skewed?: boolean;
  readonly retryAfterMs?: number | null;
  readonly cause?: unknown;
}

/** Why a bucket did not do what it was asked. */
export class BucketTrouble extends HarnessError {
  /** The trouble may pass by itself. */
  readonly passing: boolean;
  readonly busy: boolean;
  /** There is no such object. */
  readonly missing: boolean;
  /** The signature's time differs too much from the server's clock. */
  readonly skewed: boolean;
  readonly retryAfterMs: number | null;

  constructor(
    message: string,
    remedy: string,
    { passing, busy, missing, skewed, retryAfterMs, cause }: Kind = {},
  ) {
    super(passing === true ? EXIT.failed : EXIT.usage, message, remedy, cause);
    this.passing = passing ?? false;
    this.busy = busy ?? false;
    this.missing = missing ?? false;
    this.skewed = skewed ?? false;
    this.retryAfterMs = retryAfterMs ?? null;
  }
}

const serverOf = ({ endpoint, region }: BucketAccess): string =>
  endpoint === null ? `S3 in ${region}` : endpoint.origin;

const MAX_SAID_LENGTH = 300;

/** A server's message for a person: on one line, of a bounded length, without the user's credentials. */
function shownMessage(text: string, { credentials }: BucketAccess): string {
  const { accessKeyId, secretAccessKey, sessionToken } = credentials;
  const masked = [secretAccessKey, sessionToken, accessKeyId]
    .filter((value) => value !== undefined)
    .reduce((rest, value) => rest.replaceAll(value, "…"), text);
  return visibleLine(masked.slice(0, MAX_SAID_LENGTH));
}

/** For no connection, a broken one, or no answer in time. */
export function unreachable(thrown: unknown, request: BucketRequest): BucketTrouble {
  const inner = thrown instanceof Error && thrown.cause !== undefined ? thrown.cause : thrown;
  const code = errorCode(inner) ?? "";
  const where = serverOf(request.access);
  const why = visibleLine(reasonOf(thrown));
  // For these errors the library's message is a line of its source.
  if (/^ERR_SSL|^EPROTO$/.test(code))
    return new BucketTrouble(
      `cannot ${request.what}: ${where} does not speak TLS (${code})`,
      "check the port in AWS_ENDPOINT_URL; http:// in AWS_ENDPOINT_URL connects without TLS",
      { cause: thrown },
    );
  if (/CERT|SIGNATURE|^ERR_TLS/.test(code))
    return new BucketTrouble(
      `cannot ${request.what}: ${where} is not trusted (${why})`,
      "NODE_EXTRA_CA_CERTS=FILE names a certificate of your own; http:// in AWS_ENDPOINT_URL connects without TLS",
      { cause: thrown },
    );
  return new BucketTrouble(
    `cannot ${request.what}: ${where} does not answer (${why})`,
    "check AWS_ENDPOINT_URL, AWS_REGION and the network, then try again",
    { passing: true, cause: thrown },
  );
}

export interface ServerError {
  readonly code: string;
  readonly message: string;
  readonly region: string;
}

export interface BucketRefusal extends ServerError {
  readonly status: number;
  /** The server's clock; empty if it gives none. */
  readonly date: string;
  readonly retryAfterMs: number | null;
}

const TRANSIENT_STATUSES: ReadonlySet<number> = new Set([408, 425, 500, 502, 504]);
const TRANSIENT_CODES: ReadonlySet<string> = new Set(["RequestTimeout", "InternalError", "OperationAborted"]);

/** The trouble behind an answer that is not a success. */
export function refusalOf(refusal: BucketRefusal, request: BucketRequest): BucketTrouble {
  const { status, code, retryAfterMs } = refusal;
  const { access, what } = request;
  const words = shownMessage([code, refusal.message].filter((each) => each !== "").join(": "), access);
  const cannot = `cannot ${what}`;
  const message = words === "" ? `it answers with ${status}` : words;
  if (isBusy(status) || code === "SlowDown")
    return new BucketTrouble(
      `${cannot}: ${serverOf(access)} is too busy (${message})`,
      "wait for a while, then try again",
      { passing: true, busy: true, retryAfterMs },
    );
  if (TRANSIENT_STATUSES.has(status) || TRANSIENT_CODES.has(code))
    return new BucketTrouble(
      `${cannot}: ${serverOf(access)} reports an internal error (${message})`,
      "try again",
      {
        passing: true,
        retryAfterMs,
      },
    );
  return (
    bucketElsewhere(refusal, request) ??
    notThere(refusal, request) ??
    contentRefused(refusal, request, message) ??
    notAllowed(refusal, request, message) ??
    new BucketTrouble(
      `${cannot}: ${serverOf(access)} refuses the request (${message})`,
      // A server that wants TLS says so in words of its own.
      words === "" && access.endpoint?.protocol === "http:"
        ? "check that AWS_ENDPOINT_URL is the address of an S3 server, and whether it has to begin with https://"
        : "check that AWS_ENDPOINT_URL is the address of an S3 server",
    )
  );
}

/** The bucket is in another region, or at another server. */
function bucketElsewhere(
  { status, code, region }: BucketRefusal,
  { access, what, bucket }: BucketRequest,
): BucketTrouble | undefined {
  const names = status === 400 && region !== "" && region !== access.region;
  if (!names && (status < 300 || status >= 400)) return undefined;
  const where = shownMessage(region, access);
  if (where === "" || region === access.region)
    return new BucketTrouble(
      `cannot ${what}: ${serverOf(access)} redirects elsewhere (${status}${code === "" ? "" : ` ${shownMessage(code, access)}`}), which is not followed`,
      `check which region the bucket ${bucket} is in, and that AWS_ENDPOINT_URL is the address of S3 itself`,
    );
  return new BucketTrouble(
    `cannot ${what}: the bucket ${bucket} is in the region ${where}, but ${access.region} was asked`,
    access.toSet("AWS_REGION", where),
  );
}

function notThere(
  { status, code }: BucketRefusal,
  { access, what, bucket }: BucketRequest,
): BucketTrouble | undefined {
  if (status !== 404) return undefined;
  if (code === "NoSuchKey")
    return new BucketTrouble(
      `cannot ${what}: it does not exist`,
      `harness sessions --bundle s3://${bucket}`,
      {
        missing: true,
      },
    );
  if (code === "NoSuchBucket")
    return new BucketTrouble(
      `cannot ${what}: ${serverOf(access)} has no bucket ${bucket}`,
      access.endpoint === null
        ? "check the bucket's name; a bucket on a server of your own needs AWS_ENDPOINT_URL"
        : "check the bucket's name, or create it",
    );
  return new BucketTrouble(
    `cannot ${what}: ${serverOf(access)} does not know this address`,
    "check that AWS_ENDPOINT_URL is the address of an S3 server",
  );
}

/** The server refuses the key or the content. */
function contentRefused(
  { status, code }: BucketRefusal,
  { access, what }: BucketRequest,
  message: string,
): BucketTrouble | undefined {
  if (/(?:ObjectName|KeyTooLong(?:Error)?|InvalidURI|ParentIsObject)$/.test(code))
    return new BucketTrouble(
      `cannot ${what}: ${serverOf(access)} does not accept this key (${message})`,
      "give the object another key; some servers accept no key with two slashes in a row, or with a part of more than 255 bytes",
    );
  if (status === 507 || /(?:StorageFull|QuotaExceeded)$/.test(code))
    return new BucketTrouble(
      `cannot ${what}: ${serverOf(access)} has no room for it (${message})`,
      "free some space there, or ask its administrator to raise the limit",
    );
  return undefined;
}

function notAllowed(
  { status, code, date }: BucketRefusal,
  { access, what, bucket, right }: BucketRequest,
  message: string,
): BucketTrouble | undefined {
  const { toSet } = access;
  const cannot = `cannot ${what}`;
  switch (code) {
    case "RequestTimeTooSkewed":
      return new BucketTrouble(
        `${cannot}: the clocks are too far apart (here it is ${new Date().toUTCString()}${date === "" ? "" : `, there ${shownMessage(date, access)}`})`,
        "correct the clock that is wrong: timedatectl",
        { skewed: true },
      );
    case "InvalidAccessKeyId":
      return new BucketTrouble(
        `${cannot}: ${serverOf(access)} does not know the key in AWS_ACCESS_KEY_ID`,
        toSet("AWS_ACCESS_KEY_ID", "…, and AWS_SECRET_ACCESS_KEY, of that server"),
      );
    case "SignatureDoesNotMatch":
      return new BucketTrouble(
        `${cannot}: AWS_SECRET_ACCESS_KEY does not belong to AWS_ACCESS_KEY_ID, or something on the way changes requests`,
        toSet("AWS_SECRET_ACCESS_KEY", "…"),
      );
    case "ExpiredToken":
    case "InvalidToken":
    case "InvalidTokenId":
    case "TokenRefreshRequired":
      return new BucketTrouble(
        `${cannot}: the token in AWS_SESSION_TOKEN has expired, or belongs to other keys`,
        toSet("AWS_SESSION_TOKEN", "…, with the keys that came with it"),
      );
    default:
      if (status !== 401 && status !== 403) return undefined;
      return new BucketTrouble(
        `${cannot}: ${serverOf(access)} does not allow it (${message})`,
        `allow the user of that key ${right} on ${bucket}${right === "s3:GetObject" ? "; without s3:ListBucket, an object that does not exist gets the same answer" : ""}`,
      );
  }
}
