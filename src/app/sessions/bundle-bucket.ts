import { bucketAddress, readBucketAddress } from "../../core/addresses.ts";
import { EXIT, HarnessError } from "../../core/errors.ts";
import { visibleLine } from "../../core/visible.ts";
import { Bucket } from "../../s3/bucket.ts";
import { bucketAccess } from "../../s3/bucket-access.ts";
import { BucketTrouble } from "../../s3/bucket-trouble.ts";
import type { Host } from "../host.ts";

/** Bundles in a bucket, as a batch in a cluster leaves them. Loaded only for such an address. */
export function bucketAt(
  env: Host["env"],
  address: string,
): { readonly bucket: Bucket; readonly key: string } {
  const read = readBucketAddress(address);
  if (typeof read !== "string") return { bucket: new Bucket(read.bucket, bucketAccess(env)), key: read.key };
  throw new HarnessError(EXIT.usage, `${visibleLine(address)}: ${read}`, "--bundle s3://BUCKET/KEY");
}

/** Addresses of the objects ending in `.tar` below a prefix, at any depth. */
export async function* bundlesBelow(env: Host["env"], address: string): AsyncGenerator<string> {
  const { bucket, key } = bucketAt(env, address);
  const prefix = key === "" || key.endsWith("/") ? key : `${key}/`;
  for await (const object of bucket.list(prefix, new AbortController().signal))
    if (object.key.endsWith(".tar")) yield bucketAddress(bucket.name, object.key);
}

/** Transient trouble of the bucket, which affects all of its objects. */
export const isTransient = (thrown: unknown): boolean => thrown instanceof BucketTrouble && thrown.passing;
