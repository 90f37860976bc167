import assert from "node:assert/strict";
import { readdir, writeFile } from "node:fs/promises";
import path from "node:path";
import test from "node:test";
import { readRows, type BatchRow } from "../../../src/app/batch/batch-rows.ts";
import { rowsInBucket, withoutKeys } from "../../../src/app/batch/bucket-rows.ts";
import { runIndexedRow } from "../../../src/app/batch/pod-row.ts";
import { type KeptRows, NotKept } from "../../../src/app/batch/batch-folder.ts";
import { hostFrom } from "../../../src/app/host.ts";
import { DEFAULTS } from "../../../src/config/settings-schema.ts";
import { rowResultForm, type RowResult } from "../../../src/render/batch-results.ts";
import { BUCKET, type BucketServer, startBucket } from "../../fakes/bucket-server.ts";
import { said } from "../../fixtures/cluster-batch.ts";
import { scratch, type Scratch } from "../../fixtures/scratch.ts";

const { signal } = new AbortController();
const ROWS = readRows(
  ["a", "b", "c"]
    .map((name) => JSON.stringify({ repo: `https://git.example/o/${name}`, prompt: "x" }))
    .join("\n"),
  "rows",
  { check: undefined },
);
const rowAt = (index: number): BatchRow => ROWS[index] ?? assert.fail();
const resultOf = (row: BatchRow): RowResult => rowResultForm.parse(JSON.parse(said(row).message ?? ""));

const TIME = { now: () => new Date(), wait: () => Promise.resolve(), random: () => 0 };

const rowsAt = (place: Scratch, { env }: Pick<BucketServer, "env">, below = "/of/hash"): KeptRows =>
  rowsInBucket(
    hostFrom({ HOME: place.path, HARNESS_POD_NAME: "loop", ...env }),
    `s3://${BUCKET}${below}`,
    TIME,
  );

/** As a loop does whose run leaves these files. */
async function ranTo(
  kept: KeptRows,
  row: BatchRow,
  files: Readonly<Record<string, string>>,
): Promise<RowResult> {
  await using place = await kept.open(row, signal);
  assert.equal(place.earlier, undefined);
  for (const [name, text] of Object.entries(files)) await writeFile(path.join(place.folder, name), text);
  return await place.keep(resultOf(row));
}

/** What the pod of a row tells: nothing of it may run. */
const toldOf = (kept: KeptRows, row: BatchRow, budget: Parameters<typeof runIndexedRow>[0]["budget"]) =>
  runIndexedRow(
    {
      row,
      kept,
      resultFile: null,
      budget,
      plan: {
        host: hostFrom({ HOME: "/nowhere" }),
        settings: DEFAULTS,
        flags: new Map(),
        runtime: null,
        inPlace: false,
        tree: null,
        env: {},
        bundles: true,
        warn: assert.fail,
      },
    },
    signal,
  );

test("a row is stored below the batch under its own name with the result last, and a later pod of the row reports the same result", async () => {
  await using place = await scratch();
  await using server = await startBucket();
  const row = rowAt(0);
  const name = `1-${row.id}`;
  await ranTo(rowsAt(place, server), row, { [`${name}.patch`]: "p", [`${name}.bundle.tar`]: "b" });
  const at = `of/hash/${name}`;
  assert.deepEqual(server.asked, [
    `LIST ${at}/`,
    `PUT ${at}/running`,
    `LIST ${at}/`,
    `PUT ${at}/${name}.bundle.tar`,
    `PUT ${at}/${name}.patch`,
    `PUT ${at}/results.jsonl`,
  ]);
  assert.deepEqual(await readdir(place.at(".local/state/harness")), []);
  const begun = server.objects.get(`${at}/running`)?.changed;
  const told = await toldOf(rowsAt(place, server), row, {});
  assert.deepEqual(told, resultOf(row));
  assert.equal(server.objects.get(`${at}/running`)?.changed, begun);
});

test("a result that another pod has stored meanwhile is reported and not overwritten", async () => {
  await using place = await scratch();
  await using server = await startBucket();
  const [row, kept] = [rowAt(0), rowsAt(place, server, "")];
  await using late = await kept.open(row, signal);
  await ranTo(kept, row, { p: "of the first" });
  await writeFile(path.join(late.folder, "p"), "of the second");
  const told = await late.keep({ ...resultOf(row), session: "another" });
  assert.equal(told.session, resultOf(row).session);
  assert.equal(server.objects.get(`1-${row.id}/p`)?.bytes.toString(), "of the first");
});

test("a row interrupted while it stored its files has no result and runs again", async () => {
  await using place = await scratch();
  await using server = await startBucket();
  const [row, kept] = [rowAt(0), rowsAt(place, server)];
  {
    await using cut = await kept.open(row, signal);
    await writeFile(path.join(cut.folder, "p"), "x");
    server.faults.push(...[200, 403].map((status) => ({ status, body: EMPTY_LIST })));
    await assert.rejects(cut.keep(resultOf(row)), NotKept);
  }
  assert.ok(![...server.objects.keys()].some((key) => key.endsWith("results.jsonl")));
  await ranTo(kept, row, { p: "whole" });
  assert.equal(server.objects.get(`of/hash/1-${row.id}/p`)?.bytes.toString(), "whole");
});

const EMPTY_LIST = "<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>";

/** The run of a row is what asks for its folder. */
const begins = (kept: KeptRows): KeptRows => ({
  ...kept,
  open: async (row, given) => {
    const place = await kept.open(row, given);
    return {
      ...place,
      get folder(): string {
        throw new Error("it begins");
      },
    };
  },
});

test("budgets count what all other rows have spent, however many pages the list has", async () => {
  await using place = await scratch();
  await using server = await startBucket({ page: 1 });
  const kept = rowsAt(place, server);
  // 110 tokens each.
  for (const index of [0, 1]) await ranTo(kept, rowAt(index), {});
  const spent = { cause: "budget", exit_code: 3 };
  for (const [budget, flag] of [
    [{ tokens: 220 }, "--max-tokens"],
    [{ ms: 3_600_000 }, "--max-time"],
  ] as const) {
    for (const [key, { bytes }] of server.objects)
      if (key.endsWith("running")) server.objects.set(key, { bytes, changed: Date.now() - 3_700_000 });
    const { reason, ...told } = await toldOf(kept, rowAt(2), budget);
    assert.deepEqual({ cause: told.cause, exit_code: told.exit_code }, spent);
    assert.equal(reason, `not started: the whole batch's ${flag} was used up`);
  }
  server.asked.length = 0;
  for (const budget of [{ tokens: 221 }, { ms: 7_200_000 }])
    await assert.rejects(toldOf(begins(kept), rowAt(2), budget), /it begins/);
  // The list is enough to know the time.
  assert.equal(server.asked.filter((each) => each.startsWith("GET")).length, 2);
});

for (const hours of [-5, 5])
  test(`--max-time uses only the bucket's clock, here ${hours} hours ahead of the loop's`, async () => {
    await using place = await scratch();
    const clockBehind = -hours * 3_600_000;
    await using server = await startBucket({ clockBehind });
    const kept = rowsAt(place, server);
    await ranTo(kept, rowAt(0), {});
    await assert.rejects(toldOf(begins(kept), rowAt(1), { ms: 3_600_000 }), /it begins/);
    for (const [key, { bytes }] of server.objects)
      if (key.endsWith("running"))
        server.objects.set(key, { bytes, changed: Date.now() - clockBehind - 3_700_000 });
    assert.equal((await toldOf(kept, rowAt(2), { ms: 3_600_000 })).cause, "budget");
  });

test("unrelated objects beside the rows are ignored, and an invalid result is named", async () => {
  await using place = await scratch();
  await using server = await startBucket();
  const kept = rowsAt(place, server);
  const stray = { bytes: Buffer.from("{}"), changed: 1 };
  for (const key of [
    "of/hash/x/running",
    "of/hash/1-abc/results.jsonl",
    "of/hash/2-0123456789abcdef/running/x",
    "of/hash2/1-0123456789abcdef/running",
  ])
    server.objects.set(key, stray);
  const seen: unknown[] = [];
  for await (const each of kept.results(signal)) seen.push(each);
  assert.deepEqual([seen, await kept.underWay(rowAt(2), signal)], [[], 0]);
  server.objects.set("of/hash/1-0123456789abcdef/results.jsonl", stray);
  const told = await toldOf(kept, rowAt(2), { tokens: 1 });
  assert.deepEqual([told.cause, told.exit_code], ["bucket", 2]);
  assert.match(
    told.reason,
    /s3:\/\/results-of-team\/of\/hash\/1-0123456789abcdef\/results\.jsonl is not a result/,
  );
});

test("an unavailable bucket is reported as retryable by the Job, one that refuses is not", async () => {
  await using place = await scratch();
  await using server = await startBucket();
  server.faults.push(...Array.from({ length: 7 }, () => ({ status: 503 })));
  const away = await toldOf(rowsAt(place, server), rowAt(0), {});
  assert.deepEqual([away.cause, away.status, away.exit_code, away.session], ["bucket", "failed", 6, null]);
  assert.match(away.reason, /is too busy .*; next: wait/);
  server.faults.push({ status: 403 });
  const refused = await toldOf(rowsAt(place, server), rowAt(0), {});
  assert.deepEqual([refused.cause, refused.exit_code], ["bucket", 2]);
  assert.match(refused.reason, /does not allow it .* s3:ListBucket on results-of-team/);
  const { AWS_SECRET_ACCESS_KEY: _, ...env } = server.env;
  const without = await toldOf(rowsAt(place, { env }), rowAt(0), {});
  assert.deepEqual([without.cause, without.exit_code], ["bucket", 2]);
  assert.match(
    without.reason,
    /AWS_SECRET_ACCESS_KEY is not set.*into the Secret that kubernetes\.model_secret/,
  );
  assert.equal(server.objects.size, 0);
});

test("the progress of a run is reported even if its result cannot be stored", async () => {
  await using place = await scratch();
  await using server = await startBucket();
  const row = rowAt(0);
  await using open = await rowsAt(place, server).open(row, signal);
  server.faults.push({ status: 403 });
  await assert.rejects(open.keep(resultOf(row)), (thrown) => {
    assert.ok(thrown instanceof NotKept);
    assert.match(thrown.text, /^it ran, but its result is lost: /);
    assert.deepEqual([thrown.progress.session, thrown.progress.usage?.prompt_tokens], ["session1", 100]);
    return true;
  });
});

test("a run does not see the bucket's keys, unless the user binds one as a secret", () => {
  const env = { PATH: "/bin", AWS_ACCESS_KEY_ID: "a", AWS_SECRET_ACCESS_KEY: "b", AWS_SESSION_TOKEN: "c" };
  assert.deepEqual(withoutKeys(env, { secrets: {} }), { PATH: "/bin" });
  assert.deepEqual(withoutKeys(env, { secrets: { AWS_SESSION_TOKEN: ["x"] } }), {
    PATH: "/bin",
    AWS_SESSION_TOKEN: "c",
  });
});
