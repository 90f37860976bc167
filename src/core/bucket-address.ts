/** `s3://BUCKET/KEY`, as typed and shown. The rest after the bucket is the key, verbatim and not encoded. */
export interface BucketAddress {
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
