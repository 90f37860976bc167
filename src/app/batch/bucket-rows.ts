import { mkdtemp, readdir, rm } from "node:fs/promises";
import path from "node:path";
import type { Settings } from "../../config/settings-schema.ts";
import { bucketAddress, readBucketAddress } from "../../core/addresses.ts";
import { EXIT, HarnessError, reasonOf } from "../../core/errors.ts";
import { parsedJson } from "../../core/raw-data.ts";
import { makeFolder } from "../../platform/folders.ts";
import { readRegular, TooLargeError } from "../../platform/safe-files.ts";
import { type RowResult, rowResultForm } from "../../render/batch-results.ts";
import { Bucket, type BucketTime } from "../../s3/bucket.ts";
import { bucketAccess, CREDENTIAL_VARIABLES } from "../../s3/bucket-access.ts";
import { BucketTrouble } from "../../s3/bucket-trouble.ts";
import { MAX_BUNDLE_BYTES } from "../../sessions/session-bundle.ts";
import type { Host } from "../host.ts";
import { type KeptRow, type KeptRows, NotKept, RESULTS, ROW_NAME, rowName, RUNNING } from "./batch-folder.ts";
import { visibleLine } from "../../core/visible.ts";

/**
 * Rows as objects, named like the files of a volume. The object with the result is written last: if it exists, the
 * row's other objects do too. Nothing is locked here; the Job ensures that one pod at a time works on a row.
 */
export function rowsInBucket(
  { env, places }: Pick<Host, "env" | "places">,
  address: string,
  time?: BucketTime,
): KeptRows {
  const read = readBucketAddress(address);
  if (typeof read === "string")
    throw new HarnessError(EXIT.usage, `--out ${address}: ${read}`, "--out s3://BUCKET/PREFIX");
  const { key: base } = read;
  const keyOf = (...parts: readonly string[]): string =>
    [base, ...parts].filter((part) => part !== "").join("/");
  const opened = (): Bucket => new Bucket(read.bucket, bucketAccess(env), time);
  return {
    open: (row, signal) =>
      orNotKept(async () => {
        const bucket = opened();
        const name = rowName(row);
        const { earlier, begun } = await earlierWork(bucket, keyOf(name), signal);
        if (earlier === undefined && !begun)
          await bucket.put(keyOf(name, RUNNING), Buffer.from("begun\n"), signal);
        makeFolder(places.state);
        const folder = await mkdtemp(path.join(places.state, "row-"));
        return {
          folder,
          earlier,
          begun: notNoted,
          ended: notNoted,
          keep: (result) => keep({ bucket, at: keyOf(name), folder }, result),
          [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
        } satisfies KeptRow;
      }),
    results: async function* (signal) {
      const bucket = opened();
      for await (const { key } of rowObjects(bucket, keyOf(""), RESULTS, signal))
        yield await orNotKept(() => resultIn(bucket, key, signal));
    },
    // Both the time of writing and the current time come from the bucket's clock, in the same answer.
    underWay: async (_, signal) => {
      const bucket = opened();
      let first = Number.POSITIVE_INFINITY;
      for await (const { changed } of rowObjects(bucket, keyOf(""), RUNNING, signal))
        if (!Number.isNaN(changed)) first = Math.min(first, changed);
      return Math.max(0, bucket.now() - Math.min(bucket.now(), first));
    },
  };
}

/** The objects with this file name, of all rows. */
async function* rowObjects(
  bucket: Bucket,
  root: string,
  file: string,
  signal: AbortSignal,
): ReturnType<Bucket["list"]> {
  const prefix = root === "" ? "" : `${root}/`;
  for await (const object of listPages(bucket, prefix, signal)) {
    const [name = "", ...behind] = object.key.slice(prefix.length).split("/");
    if (ROW_NAME.test(name) && behind.length === 1 && behind[0] === file) yield object;
  }
}

/** Nothing is noted: a process in a pod ends with the pod. */
const notNoted = (): Promise<void> => Promise.resolve();

async function orNotKept<T>(work: () => Promise<T>, ran?: RowResult): Promise<T> {
  try {
    return await work();
  } catch (thrown) {
    if (!(thrown instanceof HarnessError)) throw thrown;
    throw new NotKept(thrown, thrown instanceof BucketTrouble && thrown.passing, ran);
  }
}

async function* listPages(bucket: Bucket, prefix: string, signal: AbortSignal): ReturnType<Bucket["list"]> {
  const pages = bucket.list(prefix, signal);
  for (;;) {
    const next = await orNotKept(() => pages.next());
    if (next.done === true) return;
    yield next.value;
  }
}

/** The result and the mark of a beginning that another pod has left for this row. */
async function earlierWork(
  bucket: Bucket,
  at: string,
  signal: AbortSignal,
): Promise<{ readonly earlier: RowResult | undefined; readonly begun: boolean }> {
  const keys = new Set<string>();
  for await (const { key } of bucket.list(`${at}/`, signal)) keys.add(key);
  const key = `${at}/${RESULTS}`;
  const earlier = keys.has(key) ? await resultIn(bucket, key, signal) : undefined;
  return { earlier, begun: keys.has(`${at}/${RUNNING}`) };
}

const MAX_RESULT_BYTES = 16 * 2 ** 20;

async function resultIn(bucket: Bucket, key: string, signal: AbortSignal): Promise<RowResult> {
  const text = (await bucket.get(key, MAX_RESULT_BYTES, signal)).toString("utf8");
  const result = rowResultForm.safeParse(parsedJson(text));
  if (result.success) return result.data;
  throw new HarnessError(
    EXIT.usage,
    `s3://${bucket.name}/${key} is not a result of harness batch`,
    "find out what wrote it; once it is deleted, --resume runs the row again",
  );
}

/** Keeps a finished run even while its pod is told to end: the pod has a minute. */
function keep(
  { bucket, at, folder }: { readonly bucket: Bucket; readonly at: string; readonly folder: string },
  result: RowResult,
): Promise<RowResult> {
  const { signal } = new AbortController();
  return orNotKept(async () => {
    const { earlier } = await earlierWork(bucket, at, signal);
    if (earlier !== undefined) return earlier;
    for (const name of (await readdir(folder)).toSorted()) {
      await bucket.put(`${at}/${name}`, await bytesOf(path.join(folder, name)), signal);
    }
    await bucket.put(`${at}/${RESULTS}`, Buffer.from(`${JSON.stringify(result)}\n`), signal);
    return result;
  }, result);
}

const bytesOf = (file: string): Promise<Buffer> =>
  readRegular(file, { links: "refuse", max: MAX_BUNDLE_BYTES }).catch((thrown: unknown) => {
    const why =
      thrown instanceof TooLargeError
        ? `it is larger than ${MAX_BUNDLE_BYTES / 2 ** 20} MiB`
        : reasonOf(thrown);
    throw new HarnessError(
      EXIT.usage,
      `${path.basename(file)} cannot be saved: ${why}`,
      "split the task so that each row changes less",
      thrown,
    );
  });

/**
 * The environment for the run of a row: without the keys of the bucket, except those that the user declared as secrets.
 */
export function withoutKeys(
  env: NodeJS.ProcessEnv,
  { secrets }: Pick<Settings, "secrets">,
): NodeJS.ProcessEnv {
  const keys = new Set<string>(CREDENTIAL_VARIABLES.filter((name) => !Object.hasOwn(secrets, name)));
  return Object.fromEntries(Object.entries(env).filter(([name]) => !keys.has(name)));
}

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
