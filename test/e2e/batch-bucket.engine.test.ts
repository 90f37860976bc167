import assert from "node:assert/strict";
import test from "node:test";
import { readRows } from "../../src/app/batch/batch-rows.ts";
import { keptAt, runIndexedRow } from "../../src/app/batch/pod-row.ts";
import { hostFrom } from "../../src/app/host.ts";
import { DEFAULTS } from "../../src/config/settings-schema.ts";
import { openBundle } from "../../src/sessions/session-bundle.ts";
import { BUCKET, KEY_ID, SECRET_KEY, startBucket } from "../fakes/bucket-server.ts";
import { startKubernetesApi } from "../fakes/kubernetes-api.ts";
import { COMPILED } from "../fixtures/cli.ts";
import { skip } from "../fixtures/engine.ts";
import { giveAway } from "../fixtures/give-away.ts";
import { AWAY } from "../fixtures/scratch.ts";
import { replies } from "./batch.ts";
import { household } from "./box-command.ts";
import { KUBERNETES, loop, printed } from "./row-loop.ts";
import { harness, startModel } from "./run-command.ts";

const { results_claim: _, ...WITHOUT_CLAIM } = KUBERNETES;

test(
  "a row's loop stores its session in a bucket, and another machine can list, show and replay it from there",
  { skip },
  async () => {
    await using place = await household({}, AWAY);
    await place.write("tree/notes.txt", "one\n");
    await giveAway(place.at("tree"));
    await using api = await startKubernetesApi("enforced", place.at("node"));
    await place.write("kubeconfig", api.kubeconfig);
    await using model = await startModel(replies);
    await using bucket = await startBucket({ page: 2, token: "token-of-the-session" });
    const kubernetes = { ...WITHOUT_CLAIM, results_bucket: `s3://${BUCKET}/nightly` };
    await place.write(".config/harness/config.json", JSON.stringify({ kubernetes, chat_model: "coder:7b" }));
    const row = {
      repo: "https://git.example/owner/r0",
      prompt: "Change the notes. do: echo two >> notes.txt; env | grep -c AWS_ > counted",
      limits: { max_turns: 4 },
    };
    const batch = await printed(place, row, bucket.env);
    assert.doesNotMatch(batch.text, /AWS_[A-Z]/);
    // A loop has no settings of the user's but those of its Job.
    await place.write(".config/harness/config.json", "{}");
    const secret = { OLLAMA_HOST: `127.0.0.1:${model.port}`, ...bucket.env };
    bucket.faults.push({ status: 503 }, "cut");
    const ran = await loop(place, batch, secret, "loop-0");
    assert.deepEqual([ran.code, ran.told.cause], [0, null], ran.said);

    const name = `1-${ran.told.id}`;
    const at = `${batch.out.slice(`s3://${BUCKET}/`.length)}/${name}`;
    assert.match(at, /^nightly\/[0-9a-f]{16}\/1-[0-9a-f]{16}$/);
    const ends = ["audit.jsonl", "bundle.tar", "html", "patch"].map((end) => `${at}/${name}.${end}`);
    assert.deepEqual([...bucket.objects.keys()].toSorted(), [
      ...ends,
      `${at}/results.jsonl`,
      `${at}/running`,
    ]);
    const bytesOf = (key: string): Buffer => bucket.objects.get(key)?.bytes ?? Buffer.alloc(0);
    assert.match(bytesOf(`${at}/${name}.patch`).toString(), /^\+two$/m);
    // What it counted in its box.
    assert.match(bytesOf(`${at}/${name}.patch`).toString(), /^\+0$/m);
    for (const [key, { bytes }] of bucket.objects)
      for (const value of [KEY_ID, SECRET_KEY, "token-of-the-session"])
        assert.ok(!bytes.includes(value), key);
    assert.ok(![KEY_ID, SECRET_KEY, "token-of-the-session"].some((value) => ran.said.includes(value)));

    const again = await loop(place, batch, { ...secret, OLLAMA_HOST: "127.0.0.1:9" }, "loop-1");
    assert.deepEqual([again.code, again.told], [0, ran.told], again.said);

    const there = {
      env: { XDG_STATE_HOME: place.at("another"), DOCKER_HOST: "unix:///none", ...bucket.env },
    };
    const read = (...words: readonly string[]) => harness(place, words, there);
    const listed = await read("sessions", "--bundle", `s3://${BUCKET}/nightly`, "--json");
    assert.equal(listed.code, 0, listed.stderr);
    const { id, bundle } = JSON.parse(listed.stdout) as { readonly id: string; readonly bundle: string };
    assert.deepEqual([id, bundle], [ran.told.session, `s3://${BUCKET}/${at}/${name}.bundle.tar`]);
    const report = await read("report", "--bundle", bundle);
    assert.match(report.stdout, /run 1 of 1[^]*not in it/, report.stderr);
    const replay = await read("replay", "--bundle", bundle, "--json");
    const said = JSON.parse(replay.stdout) as {
      readonly bundle: { readonly session: { readonly id: string } };
    };
    assert.deepEqual([replay.code, said.bundle.session.id], [0, id], replay.stderr);
    openBundle(bytesOf(`${at}/${name}.bundle.tar`), bundle);
    assert.deepEqual([api.named("pods"), api.named("networkpolicies")], [[], []]);
  },
);

test("the run of a row gets its loop's environment without the bucket's keys", async () => {
  await using place = await household({ "notes.txt": "one\n" });
  await using bucket = await startBucket();
  const host = hostFrom({ PATH: process.env["PATH"], HOME: place.path, ...COMPILED, ...bucket.env });
  const { kept, env } = await keptAt(host, `s3://${BUCKET}/x`, DEFAULTS);
  assert.deepEqual(
    Object.keys(env).filter((name) => name.startsWith("AWS_")),
    ["AWS_REGION", "AWS_ENDPOINT_URL"],
  );
  const [row] = readRows(JSON.stringify({ repo: "https://git.example/o/r", prompt: "x" }), "rows", {
    check: undefined,
  });
  assert.ok(row !== undefined);
  const plan = {
    host,
    settings: DEFAULTS,
    flags: new Map(),
    runtime: null,
    inPlace: false,
    tree: place.at("work"),
    // A run says which variable it cannot read.
    env: { ...env, HARNESS_MODE: "of-this-environment" },
    bundles: true,
    warn: assert.fail,
  };
  const { signal } = new AbortController();
  const told = await runIndexedRow({ row, kept, resultFile: null, budget: {}, plan }, signal);
  assert.deepEqual([told.cause, told.exit_code], ["usage", 2]);
  assert.match(told.reason, /of-this-environment/);
});
