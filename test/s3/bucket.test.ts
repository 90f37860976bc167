import assert from "node:assert/strict";
import test from "node:test";
import { badResultsPlace, readBucketAddress } from "../../src/core/addresses.ts";
import { Bucket, type BucketTime } from "../../src/s3/bucket.ts";
import { bucketAccess } from "../../src/s3/bucket-access.ts";
import { BucketTrouble } from "../../src/s3/bucket-trouble.ts";
import {
  BUCKET,
  type BucketServer,
  type Fault,
  KEY_ID,
  SECRET_KEY,
  startBucket,
} from "../fakes/bucket-server.ts";

const { signal } = new AbortController();
const MAX = 1000;

/** Waits are recorded, and end at once. */
function timed(): { readonly time: BucketTime; readonly waits: number[] } {
  const waits: number[] = [];
  const wait = (ms: number): Promise<void> => {
    waits.push(ms);
    return Promise.resolve();
  };
  return { waits, time: { now: () => new Date(), wait, random: () => 1 } };
}

const bucketOf = (
  { env }: Pick<BucketServer, "env">,
  more: Readonly<Record<string, string>> = {},
  { time } = timed(),
): Bucket => new Bucket(BUCKET, bucketAccess({ ...env, ...more }), time);

const keysOf = async (bucket: Bucket, prefix = ""): Promise<readonly string[]> => {
  const keys: string[] = [];
  for await (const { key } of bucket.list(prefix, signal)) keys.push(key);
  return keys;
};

const ODD = [
  "plain.tar",
  "a b+c%20.tar",
  "ünï/код/文.tar",
  "two//slashes//.tar",
  "/first",
  "last/",
  "~!'()*;:@&=,?#[]$\"\\<>",
  "line\nend",
  "…/..dots/.hidden",
];

for (const plainKeys of [false, true])
  test(`objects with odd keys are written, listed${plainKeys ? " unencoded" : ""} and read, with valid signatures`, async () => {
    await using server = await startBucket({
      plainKeys,
      page: 2,
      token: "a/token+of=signs",
      below: "/s3/api",
    });
    const bucket = bucketOf(server);
    for (const key of ODD) await bucket.put(key, Buffer.from(`in ${key}`), signal);
    assert.deepEqual(await keysOf(bucket), ODD.toSorted());
    assert.deepEqual(await keysOf(bucket, "a b+"), ["a b+c%20.tar"]);
    for (const key of ODD) assert.equal((await bucket.get(key, MAX, signal)).toString(), `in ${key}`);
    // Five pages of the whole, one of the part.
    assert.equal(server.asked.filter((each) => each.startsWith("LIST")).length, 6);
  });

test("the stand-in server refuses unsigned and wrongly signed requests", async () => {
  await using server = await startBucket();
  const bare = await fetch(`${server.url}/${BUCKET}/x`, { method: "PUT", body: "x" });
  assert.equal(bare.status, 403);
  await bare.text();
  await assert.rejects(
    bucketOf(server, { AWS_SECRET_ACCESS_KEY: "other" }).put("x", Buffer.from("x"), signal),
  );
  assert.equal(server.objects.size, 0);
  await bucketOf(server).put("x", Buffer.from("x"), signal);
  assert.equal(server.objects.get("x")?.bytes.toString(), "x");
});

test("a bucket with object lock accepts objects, because a checksum is sent", async () => {
  await using server = await startBucket({ locks: true });
  const bucket = bucketOf(server);
  await bucket.put("x", Buffer.from("whole"), signal);
  assert.equal((await bucket.get("x", MAX, signal)).toString(), "whole");
});

test("a server that does not speak TLS is reported as such", async () => {
  await using server = await startBucket();
  const bucket = bucketOf(server, { AWS_ENDPOINT_URL: server.url.replace("http:", "https:") });
  await assert.rejects(bucket.put("x", Buffer.from("x"), signal), /does not speak TLS \([A-Z_]+\)$/);
});

const SLOW: Fault = { status: 503, body: "<Error><Code>SlowDown</Code><Message>less</Message></Error>" };

test("a server that is busy, fails or cuts the connection is asked again, after the time it requests", async () => {
  await using server = await startBucket();
  const clock = timed();
  const bucket = bucketOf(server, {}, clock);
  server.faults.push(SLOW, "cut", { status: 500 }, { status: 429, headers: { "retry-after": "7" } });
  await bucket.put("x", Buffer.from("whole"), signal);
  assert.deepEqual([server.asked.length, server.objects.get("x")?.bytes.toString()], [5, "whole"]);
  assert.deepEqual(clock.waits.slice(0, 3), [500, 1000, 2000]);
  assert.ok((clock.waits[3] ?? 0) >= 7000);
  server.faults.push("cut in the middle");
  assert.equal((await bucket.get("x", MAX, signal)).toString(), "whole");
  server.faults.push(SLOW);
  assert.deepEqual(await keysOf(bucket), ["x"]);
});

test("repeated requests end with an error, and an abort ends the wait", async () => {
  await using server = await startBucket();
  const clock = timed();
  server.faults.push(...Array.from({ length: 9 }, () => SLOW));
  await assert.rejects(bucketOf(server, {}, clock).put("x", Buffer.from("x"), signal), (thrown) => {
    assert.ok(thrown instanceof BucketTrouble && thrown.passing);
    assert.equal(thrown.exit, 1);
    assert.match(thrown.message, /cannot write s3:\/\/results-of-team\/x: .* is too busy \(SlowDown: less\)/);
    return true;
  });
  assert.deepEqual([server.asked.length, server.objects.size], [7, 0]);
  assert.ok(clock.waits.reduce((sum, ms) => sum + ms, 0) <= 35_000);
  const leaving = new AbortController();
  const time = { ...clock.time, wait: async () => leaving.abort(new Error("left")) };
  server.faults.push(SLOW);
  await assert.rejects(
    new Bucket(BUCKET, bucketAccess(server.env), time).put("x", Buffer.from("x"), leaving.signal),
    {
      message: "left",
    },
  );
});

for (const hours of [-7, 7])
  test(`a clock ${-hours} hours off the bucket's costs one request: later signatures use the bucket's time`, async () => {
    await using server = await startBucket({ clockBehind: -hours * 3_600_000 });
    const clock = timed();
    const bucket = bucketOf(server, {}, clock);
    await bucket.put("x", Buffer.from("whole"), signal);
    assert.equal((await bucket.get("x", MAX, signal)).toString(), "whole");
    assert.deepEqual(await keysOf(bucket), ["x"]);
    assert.deepEqual(server.asked, ["PUT x", "PUT x", "GET x", "LIST "]);
    assert.deepEqual(clock.waits, []);
    assert.ok(Math.abs(bucket.now() - (Date.now() + hours * 3_600_000)) < 60_000);
  });

test("a bucket that refuses its own time is asked only once more", async () => {
  await using server = await startBucket();
  const skewed = { status: 403, body: "<Error><Code>RequestTimeTooSkewed</Code></Error>" };
  server.faults.push(skewed, skewed, skewed);
  await assert.rejects(bucketOf(server).put("x", Buffer.from("x"), signal), {
    message: /the clocks are too far apart \(here it is .* GMT, there .* GMT\)/,
  });
  assert.deepEqual(server.asked, ["PUT x", "PUT x"]);
});

interface Case {
  readonly env?: Readonly<Record<string, string>>;
  readonly options?: Parameters<typeof startBucket>[0];
  readonly fault?: Fault;
  readonly bucket?: string;
  readonly says: RegExp;
  readonly next: RegExp;
}

const CASES: Readonly<Record<string, Case>> = {
  "another region, by its name": {
    env: { AWS_REGION: "us-east-1" },
    says: /the bucket results-of-team is in the region eu-test-1, but us-east-1 was asked/,
    next: /^export AWS_REGION=eu-test-1$/,
  },
  "another region, by a redirect": {
    fault: { status: 301, headers: { "x-amz-bucket-region": "ap-south-2", location: "http://127.0.0.1:1/" } },
    says: /is in the region ap-south-2/,
    next: /AWS_REGION=ap-south-2/,
  },
  "a redirect without a region": {
    fault: { status: 307, headers: { location: "http://127.0.0.1:1/" } },
    says: /redirects elsewhere \(307\), which is not followed/,
    next: /AWS_ENDPOINT_URL/,
  },
  "a wrong clock, with a server that does not send its time": {
    options: { clockBehind: 3_600_000, tellsNoTime: true },
    says: /the clocks are too far apart \(here it is .* GMT\)/,
    next: /correct the clock/,
  },
  "an unknown key": {
    env: { AWS_ACCESS_KEY_ID: "AKIAOTHER" },
    says: /does not know the key in AWS_ACCESS_KEY_ID/,
    next: /export AWS_ACCESS_KEY_ID=…/,
  },
  "a secret of another key": {
    env: { AWS_SECRET_ACCESS_KEY: "of+another" },
    says: /AWS_SECRET_ACCESS_KEY does not belong to AWS_ACCESS_KEY_ID/,
    next: /AWS_SECRET_ACCESS_KEY=…/,
  },
  "an expired token": {
    env: { AWS_SESSION_TOKEN: "old" },
    options: { token: "new" },
    says: /the token in AWS_SESSION_TOKEN has expired/,
    next: /AWS_SESSION_TOKEN=…/,
  },
  "a missing permission": {
    fault: {
      status: 403,
      body: "<Error><Code>AccessDenied</Code><Message>no &lt;way&gt;\u001b[2J</Message></Error>",
    },
    says: /does not allow it \(AccessDenied: no <way>[^\u001b]*\)$/,
    next: /allow the user of that key s3:GetObject on results-of-team; .*s3:ListBucket/,
  },
  "no such bucket": {
    bucket: "another-one",
    says: /has no bucket another-one/,
    next: /check the bucket.s name/,
  },
  "no such object": {
    says: /cannot read s3:\/\/results-of-team\/x: it does not exist/,
    next: /^harness sessions --bundle s3:\/\/results-of-team$/,
  },
  "a server of something else": {
    fault: { status: 404, body: "<html>no</html>" },
    says: /does not know this address/,
    next: /AWS_ENDPOINT_URL is the address of an S3 server/,
  },
  "a token of other keys, as another server words it": {
    fault: { status: 403, body: "<Error><Code>InvalidTokenId</Code></Error>" },
    says: /the token in AWS_SESSION_TOKEN has expired/,
    next: /AWS_SESSION_TOKEN=…/,
  },
  "an object key that it does not accept": {
    fault: {
      status: 400,
      body: "<Error><Code>XMinioInvalidObjectName</Code><Message>signs</Message></Error>",
    },
    says: /does not accept this key \(XMinioInvalidObjectName: signs\)$/,
    next: /^give the object another key/,
  },
  "a full disk": {
    fault: { status: 507, body: "<Error><Code>XMinioStorageFull</Code></Error>" },
    says: /has no room for it \(XMinioStorageFull\)$/,
    next: /^free some space there/,
  },
  "a reached quota": {
    fault: { status: 403, body: "<Error><Code>QuotaExceeded</Code></Error>" },
    says: /has no room for it \(QuotaExceeded\)$/,
    next: /^free some space there/,
  },
  "a server that requires TLS": {
    fault: { status: 400, body: "Client sent an HTTP request to an HTTPS server.\n" },
    says: /refuses the request \(it answers with 400\)$/,
    next: /whether it has to begin with https:\/\/$/,
  },
  "an unsupported request": {
    fault: { status: 501, body: "<Error><Code>NotImplemented</Code></Error>" },
    says: /refuses the request \(NotImplemented\)/,
    next: /S3 server/,
  },
};

for (const [name, { env = {}, options = {}, fault, bucket = BUCKET, says, next }] of Object.entries(CASES))
  test(`${name} is reported with what to do, and not tried again`, async () => {
    await using server = await startBucket(options);
    if (fault !== undefined) server.faults.push(fault);
    const access = bucketAccess({ ...server.env, ...env });
    await assert.rejects(new Bucket(bucket, access, timed().time).get("x", MAX, signal), (thrown) => {
      assert.ok(thrown instanceof BucketTrouble && !thrown.passing);
      assert.deepEqual([thrown.exit, thrown.missing], [2, name === "no such object"]);
      assert.match(thrown.message, says);
      assert.match(thrown.remedy, next);
      return true;
    });
    assert.equal(server.asked.length, 1);
  });

test("no secret that was sent appears in a message", async () => {
  const token = "token-of-mine-0123456789";
  await using server = await startBucket({ token });
  const echo = `${KEY_ID} ${SECRET_KEY} ${token}`;
  server.faults.push({ status: 403, body: `<Error><Code>${token}</Code><Message>${echo}</Message></Error>` });
  await assert.rejects(bucketOf(server).get("x", MAX, signal), (thrown) => {
    assert.ok(thrown instanceof BucketTrouble);
    for (const value of [KEY_ID, SECRET_KEY, token])
      assert.ok(!`${thrown.message}${thrown.remedy}`.includes(value), thrown.message);
    return true;
  });
});

test("answers are bounded: an object, a list and a refusal", async () => {
  await using server = await startBucket();
  const bucket = bucketOf(server);
  await bucket.put("x", Buffer.alloc(MAX + 1), signal);
  await assert.rejects(bucket.get("x", MAX, signal), /cannot read .*\/x: it is larger than /);
  await bucket.put("x", Buffer.alloc(MAX), signal);
  assert.equal((await bucket.get("x", MAX, signal)).length, MAX);
  server.faults.push({ status: 200, body: " ".repeat(9 * 2 ** 20) });
  await assert.rejects(keysOf(bucket), /cannot list s3:\/\/results-of-team\/: it is larger than 8 MiB/);
  server.faults.push({ status: 403, body: "x".repeat(2 ** 20) });
  await assert.rejects(keysOf(bucket), /does not allow it \(it answers with 403\)/);
  for (const body of ["", "<html></html>", "<ListBucketResult>"].slice(0, 2)) {
    server.faults.push({ status: 200, body });
    await assert.rejects(keysOf(bucket), /the answer is not an S3 listing/);
  }
});

test("an object key that would be altered on its way, or that no server accepts, is not requested", async () => {
  await using server = await startBucket();
  for (const key of ["a/../b", "./a", "a/..", "ü".repeat(513), "\ud800"])
    await assert.rejects(bucketOf(server).get(key, MAX, signal), { exit: 2, message: /cannot be requested/ });
  assert.deepEqual(server.asked, []);
});

test("addresses are read literally, and an invalid one is explained", () => {
  const read: unknown[] = ["s3://team-a", "s3://team-a/", "S3://team-a/a b+c//d%20/ü"].map(readBucketAddress);
  assert.deepEqual(read, [
    { bucket: "team-a", key: "" },
    { bucket: "team-a", key: "" },
    { bucket: "team-a", key: "a b+c//d%20/ü" },
  ]);
  for (const bad of [
    "s3://",
    "s3:///key",
    "s3://A",
    "s3://ab",
    "s3://a..b/x",
    "s3://user:pw@host/x",
    "https://x",
  ])
    assert.equal(typeof readBucketAddress(bad), "string", bad);
  for (const bad of [
    "s3://team-a/$(HOME)",
    "s3://team-a/a b",
    "s3://team-a/",
    "s3://team-a//x",
    "s3://team-a/x/",
    "team",
  ])
    assert.equal(typeof badResultsPlace(bad), "string", bad);
  for (const good of ["s3://team-a", "s3://team.a/x_1/y=2/.z"])
    assert.equal(badResultsPlace(good), undefined);
});

const KEYS = { AWS_ACCESS_KEY_ID: KEY_ID, AWS_SECRET_ACCESS_KEY: SECRET_KEY };

test("a missing or invalid variable is named, with how to set it", () => {
  const cases: readonly (readonly [Readonly<Record<string, string>>, RegExp, RegExp])[] = [
    [{}, /AWS_ACCESS_KEY_ID is not set/, /^export AWS_ACCESS_KEY_ID=…/],
    [{ AWS_ACCESS_KEY_ID: KEY_ID }, /AWS_SECRET_ACCESS_KEY is not set/, /export/],
    [KEYS, /AWS_REGION is not set/, /export AWS_REGION=…/],
    [{ ...KEYS, AWS_REGION: "Europe\u001b" }, /AWS_REGION is not a region/, /AWS_REGION=eu-central-1/],
    [
      { ...KEYS, AWS_SECRET_ACCESS_KEY: `${SECRET_KEY}\n` },
      /AWS_SECRET_ACCESS_KEY contains/,
      /without anything around/,
    ],
    [
      { ...KEYS, AWS_ENDPOINT_URL: "minio:9000" },
      /AWS_ENDPOINT_URL is not a plain http or https address/,
      /https:\/\/minio/,
    ],
    [
      { ...KEYS, AWS_ENDPOINT_URL: "https://u:p@minio" },
      /AWS_ENDPOINT_URL is not a plain http or https address/,
      /https:\/\/minio/,
    ],
    [
      { HARNESS_POD_NAME: "x" },
      /AWS_ACCESS_KEY_ID is not set/,
      /^put .* into the Secret that kubernetes.model_secret/,
    ],
  ];
  for (const [env, message, remedy] of cases)
    assert.throws(
      () => bucketAccess(env),
      (thrown: Error & { readonly remedy?: string }) => {
        assert.match(thrown.message, message);
        assert.match(thrown.remedy ?? "", remedy);
        assert.ok(!thrown.message.includes(SECRET_KEY));
        return true;
      },
    );
  assert.deepEqual(bucketAccess({ ...KEYS, AWS_DEFAULT_REGION: "eu-west-1" }).region, "eu-west-1");
  assert.deepEqual(bucketAccess({ ...KEYS, AWS_ENDPOINT_URL: "http://minio:9000" }).region, "us-east-1");
});
