import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import test, { after, before } from "node:test";
import { Bucket, type BucketTime } from "../../src/s3/bucket.ts";
import { bucketAccess } from "../../src/s3/bucket-access.ts";
import { BucketTrouble } from "../../src/s3/bucket-trouble.ts";
import { type RealServer, realServer } from "./real-server.ts";

const NAME = "results-of-team";
const MAX = 256 * 2 ** 20;
const { signal } = new AbortController();

let server: RealServer;
before(async () => {
  server = await realServer();
  await server.ask("PUT", `/${NAME}`);
});
after(() => server[Symbol.asyncDispose]());

type Env = Readonly<Record<string, string>>;

/** Real waits, limited to half a second. */
const time = (now = (): Date => new Date()): BucketTime => ({
  now,
  wait: (ms) => sleep(Math.min(ms, 500)),
  random: () => 1,
});

const bucketBy = (more: Env = {}, name = NAME, now?: () => Date): Bucket =>
  new Bucket(name, bucketAccess({ ...server.env, ...more }), time(now));

async function keysBelow(bucket: Bucket, prefix: string): Promise<readonly string[]> {
  const keys: string[] = [];
  for await (const { key } of bucket.list(prefix, signal)) keys.push(key);
  return keys;
}

const X = Buffer.from("x");

async function fails(work: Promise<unknown>, says: RegExp, next: RegExp): Promise<BucketTrouble> {
  const thrown = await work.then(
    () => assert.fail(`nothing was wrong, and this was expected: ${says.source}`),
    (reason: unknown) => reason,
  );
  assert.ok(thrown instanceof BucketTrouble, String(thrown));
  assert.match(thrown.message, says);
  assert.match(thrown.remedy, next);
  return thrown;
}

const bytes = (one: string, other: string): number => Buffer.compare(Buffer.from(one), Buffer.from(other));

const ODD = [
  "%2F/%25",
  "a b+c%20.tar",
  "back\\slash",
  "e\u0301 and \u00e9",
  "last/",
  "line\nend",
  "plain.tar",
  "tab\tand\u007f",
  "~!'()*;:@&=,?#[]$\"<>",
  "ünï/код/文.tar",
  "…/..dots/.hidden",
  "🙂/x",
];

test("objects with odd keys are written, listed and read, and can be overwritten", async () => {
  const bucket = bucketBy();
  for (const key of ODD) {
    await bucket.put(`odd/${key}`, Buffer.from(`before ${key}`), signal);
    await bucket.put(`odd/${key}`, Buffer.from(`in ${key}`), signal);
    assert.equal((await bucket.get(`odd/${key}`, MAX, signal)).toString(), `in ${key}`);
  }
  assert.deepEqual(await keysBelow(bucket, "odd/"), ODD.map((key) => `odd/${key}`).toSorted(bytes));
  await bucket.put("empty", Buffer.alloc(0), signal);
  assert.equal((await bucket.get("empty", MAX, signal)).length, 0);
});

test("a list of more than a thousand keys is read in pages", async () => {
  const bucket = bucketBy();
  const keys = Array.from({ length: 2300 }, (_, at) => `many/${String(at).padStart(5, "0")} +&ü.tar`);
  for (let from = 0; from < keys.length; from += 50)
    await Promise.all(keys.slice(from, from + 50).map((key) => bucket.put(key, X, signal)));
  assert.deepEqual(await keysBelow(bucket, "many/"), keys);
});

const CASES: Readonly<Record<string, readonly [() => Promise<unknown>, RegExp, RegExp]>> = {
  "an unknown key": [
    () => bucketBy({ AWS_ACCESS_KEY_ID: "someone" }).put("x", X, signal),
    /does not know the key in AWS_ACCESS_KEY_ID/,
    /^export AWS_ACCESS_KEY_ID=…/,
  ],
  "a secret of another key": [
    () => bucketBy({ AWS_SECRET_ACCESS_KEY: "of-another" }).put("x", X, signal),
    /AWS_SECRET_ACCESS_KEY does not belong to AWS_ACCESS_KEY_ID/,
    /^export AWS_SECRET_ACCESS_KEY=…/,
  ],
  "another region": [
    () => bucketBy({ AWS_REGION: "us-west-2" }).put("x", X, signal),
    /is in the region eu-test-1, but us-west-2 was asked/,
    /^export AWS_REGION=eu-test-1$/,
  ],
  "an invalid token": [
    () => bucketBy({ AWS_SESSION_TOKEN: "none" }).put("x", X, signal),
    /the token in AWS_SESSION_TOKEN has expired, or belongs to other keys/,
    /^export AWS_SESSION_TOKEN=…/,
  ],
  "no such bucket, written to": [
    () => bucketBy({}, "not-there").put("x", X, signal),
    /has no bucket not-there/,
    /or create it/,
  ],
  "no such bucket, listed": [
    () => keysBelow(bucketBy({}, "not-there"), ""),
    /has no bucket not-there/,
    /or create it/,
  ],
  "no such object": [
    () => bucketBy().get("not-there", MAX, signal),
    /it does not exist$/,
    /^harness sessions --bundle s3:\/\/results-of-team$/,
  ],
  "TLS that it does not speak": [
    () => {
      const url = server.env["AWS_ENDPOINT_URL"] ?? "";
      return bucketBy({ AWS_ENDPOINT_URL: url.replace("http:", "https:") }).put("x", X, signal);
    },
    /does not speak TLS \([A-Z_]+\)$/,
    /http:\/\/ in AWS_ENDPOINT_URL connects without TLS/,
  ],
  "an object key that its disk does not accept": [
    () => bucketBy().put("k".repeat(300), X, signal),
    /does not accept this key \(XMinioInvalidObjectName: .*\)$/,
    /^give the object another key/,
  ],
  "two slashes": [
    () => bucketBy().get("two//slashes", MAX, signal),
    /does not accept this key/,
    /^give the object another key/,
  ],
};

for (const [name, [work, says, next]] of Object.entries(CASES))
  test(`${name} is reported with what to do`, async () => {
    const told = await fails(work(), says, next);
    assert.deepEqual([told.exit, told.passing], [2, false]);
  });

const HOUR_MS = 3_600_000;

for (const hours of [-26, -1, 1, 26])
  test(`a clock ${hours} hours off the server's causes no problem`, async () => {
    const bucket = bucketBy({}, NAME, () => new Date(Date.now() + hours * HOUR_MS));
    await bucket.put("by another clock", X, signal);
    assert.equal((await bucket.get("by another clock", MAX, signal)).toString(), "x");
    assert.deepEqual(await keysBelow(bucket, "by another"), ["by another clock"]);
    assert.ok(Math.abs(bucket.now() - Date.now()) < 60_000);
  });

test("a reader can only read, and the documented permissions suffice", async () => {
  const reader = await server.lend(["s3:GetObject", "s3:ListBucket"]);
  const writer = await server.lend(["s3:PutObject"]);
  await bucketBy(writer).put("lent", X, signal);
  assert.equal((await bucketBy(reader).get("lent", MAX, signal)).toString(), "x");
  assert.deepEqual(await keysBelow(bucketBy(reader), "lent"), ["lent"]);
  await fails(bucketBy(reader).put("lent", X, signal), /does not allow it/, /allow .* s3:PutObject on/);
  await fails(bucketBy(writer).get("lent", MAX, signal), /does not allow it/, /allow .* s3:GetObject on/);
  await fails(
    bucketBy(writer).get("none", MAX, signal),
    /does not allow it/,
    /without s3:ListBucket, an object that does not exist/,
  );
  await fails(keysBelow(bucketBy(writer), ""), /does not allow it/, /allow .* s3:ListBucket on/);
  await fails(bucketBy({ ...writer, AWS_SESSION_TOKEN: "" }).put("x", X, signal), /the token in/, /TOKEN/);
});

test("a bucket with versions or object lock stores and returns the last version", async () => {
  const versions = "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>";
  await server.ask("PUT", "/with-versions");
  await server.ask("PUT", "/with-versions?versioning=", { body: versions });
  const rule = "<Rule><DefaultRetention><Mode>COMPLIANCE</Mode><Days>1</Days></DefaultRetention></Rule>";
  const lock = `<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled>${rule}</ObjectLockConfiguration>`;
  await server.ask("PUT", "/with-locks", { headers: { "x-amz-bucket-object-lock-enabled": "true" } });
  await server.ask("PUT", "/with-locks?object-lock=", { body: lock });
  for (const name of ["with-versions", "with-locks"]) {
    const bucket = bucketBy({}, name);
    await bucket.put("x", Buffer.from("1"), signal);
    await bucket.put("x", Buffer.from("2"), signal);
    assert.deepEqual(
      [(await bucket.get("x", MAX, signal)).toString(), await keysBelow(bucket, "")],
      ["2", ["x"]],
    );
  }
});

test("the largest object is written and read, and a refusal is received before all of it was sent", async () => {
  const big = Buffer.alloc(MAX, "0123456789abcdef");
  const bucket = bucketBy();
  await bucket.put("big", big, signal);
  assert.ok((await bucket.get("big", MAX, signal)).equals(big));
  await fails(bucket.get("big", MAX / 2, signal), /it is larger than 128 MiB/, /check what it is/);
  const other = { AWS_SECRET_ACCESS_KEY: "of-another" };
  await fails(bucketBy(other).put("not", big, signal), /does not belong to/, /SECRET/);
  const reader = await server.lend(["s3:GetObject"]);
  await fails(bucketBy(reader).put("not", big, signal), /does not allow it/, /s3:PutObject/);
  assert.deepEqual(await keysBelow(bucket, "not"), []);
});

test("an interrupted write is completed once the server is back, and otherwise leaves nothing", async () => {
  const bytes = 20 * 2 ** 20;
  const big = Buffer.alloc(64 * 2 ** 20, "0123456789abcdef");
  const bucket = bucketBy();
  const back = async (): Promise<void> => {
    await server.kill("SIGKILL");
    await server.start();
  };
  let restarted: Promise<void> = Promise.resolve();
  server.wire.cutAt = { bytes, how: () => undefined };
  await bucket.put("cut", big, signal);
  server.wire.cutAt = { bytes, how: () => void (restarted = back()) };
  await bucket.put("killed", big, signal);
  await restarted;
  for (const key of ["cut", "killed"]) assert.ok((await bucket.get(key, MAX, signal)).equals(big));
  server.wire.cutAt = { bytes, how: () => void (restarted = server.kill("SIGKILL")) };
  const told = await fails(bucket.put("gone", big, signal), /does not answer \(.+\)/, /then try again$/);
  assert.deepEqual([told.exit, told.passing], [1, true]);
  await restarted;
  await server.start();
  assert.deepEqual(await keysBelow(bucket, "gone"), []);
});

test("a server that stalls for a while is waited for", async () => {
  await server.kill("SIGSTOP");
  const slow = bucketBy().put("slow", X, signal);
  await sleep(8000);
  await server.kill("SIGCONT");
  await slow;
  assert.equal((await bucketBy().get("slow", MAX, signal)).toString(), "x");
});

test(
  "a server without space reports it",
  { skip: process.getuid?.() !== 0 && "only root can give it a small disk" },
  async () => {
    await using small = await realServer({ disk: 100 });
    await small.ask("PUT", `/${NAME}`);
    const told = await fails(
      bucketBy(small.env).put("big", Buffer.alloc(64 * 2 ** 20), signal),
      /has no room for it \(XMinioStorageFull: .*\)$/,
      /^free some space there/,
    );
    assert.deepEqual([told.exit, told.passing], [2, false]);
  },
);
