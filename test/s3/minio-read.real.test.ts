import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import path from "node:path";
import test from "node:test";
import { printed, loop, KUBERNETES } from "../e2e/row-loop.ts";
import { household } from "../e2e/box-command.ts";
import { replies } from "../e2e/batch.ts";
import { harness, startModel } from "../e2e/run-command.ts";
import { startKubernetesApi } from "../fakes/kubernetes-api.ts";
import { type Ended, runProgram } from "../fixtures/cli.ts";
import { skip } from "../fixtures/engine.ts";
import { giveAway } from "../fixtures/give-away.ts";
import { kept } from "../fixtures/kept-session.ts";
import { AWAY } from "../fixtures/scratch.ts";
import { Bucket } from "../../src/s3/bucket.ts";
import { bucketAccess } from "../../src/s3/bucket-access.ts";
import { realServer } from "./real-server.ts";

const NAME = "results-of-team";
const { signal } = new AbortController();

test("each command that reads a bundle gives the same result for an object on a TLS server as for the file", async () => {
  await using server = await realServer({ tls: true });
  await using session = await kept();
  const { place, id } = session;
  await session.harness(["sessions", "export", id, "--bundle", "s.tar"]);
  const file = place.at("work/s.tar");
  const read = (words: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Ended> =>
    runProgram("bin/harness", words, {
      home: place.path,
      cwd: place.at("other"),
      env: {
        XDG_STATE_HOME: place.at("there"),
        DOCKER_HOST: "unix:///none",
        NODE_EXTRA_CA_CERTS: server.authority,
        ...server.env,
        ...env,
      },
    });
  await server.ask("PUT", `/${NAME}`);
  const key = "of/a batch/two+two/ü.tar";
  const at = key.split("/").map(encodeURIComponent).join("/");
  await server.ask("PUT", `/${NAME}/${at}`, { body: await readFile(file) });
  const address = `s3://${NAME}/${key}`;
  const same = (text: string): string =>
    text
      .replaceAll(file, "PLACE")
      .replaceAll(address, "PLACE")
      .replace(/ changed \d+ s ago/, " changed just now");
  for (const words of [["report"], ["sessions", "show"], ["diff"], ["replay"], ["report", "--verify"]]) {
    const here = await read([...words, "--bundle", file]);
    const there = await read([...words, "--bundle", address]);
    assert.deepEqual([here.code, there.code, same(there.stdout)], [0, 0, same(here.stdout)], there.stderr);
  }
  const listed = await read(["sessions", "--bundle", `s3://${NAME}/of`, "--json"]);
  assert.equal((JSON.parse(listed.stdout) as { readonly bundle: string }).bundle, address, listed.stderr);

  const untrusted = await read(["report", "--bundle", address], { NODE_EXTRA_CA_CERTS: "" });
  assert.equal(untrusted.code, 2);
  assert.match(untrusted.stderr, /is not trusted \(.*certificate.*\)[^]*NODE_EXTRA_CA_CERTS=FILE/);
  const plain = { AWS_ENDPOINT_URL: (server.env["AWS_ENDPOINT_URL"] ?? "").replace("https:", "http:") };
  const unencrypted = await read(["report", "--bundle", address], plain);
  assert.equal(unencrypted.code, 2);
  assert.match(unencrypted.stderr, /answers with 400[^]*whether it has to begin with https:/);
});

const { results_claim: _, ...WITHOUT_CLAIM } = KUBERNETES;

test(
  "the loop of a row stores its session there with temporary keys, and it can be read from there",
  { skip },
  async () => {
    await using server = await realServer();
    await server.ask("PUT", `/${NAME}`);
    await using place = await household({}, AWAY);
    await place.write("tree/notes.txt", "one\n");
    await giveAway(place.at("tree"));
    await using api = await startKubernetesApi("enforced", place.at("node"));
    await place.write("kubeconfig", api.kubeconfig);
    await using model = await startModel(replies);
    const kubernetes = { ...WITHOUT_CLAIM, results_bucket: `s3://${NAME}/nightly` };
    const config = JSON.stringify({ kubernetes, chat_model: "coder:7b" });
    await place.write(".config/harness/config.json", config);
    const prompt = "Change the notes. do: echo two >> notes.txt; env | grep -c AWS_ > counted";
    const row = { repo: "https://git.example/owner/r0", prompt, limits: { max_turns: 4 } };
    // Only the permissions that docs/scale.md requires.
    const keys = await server.lend(["s3:PutObject", "s3:GetObject", "s3:ListBucket"]);
    const batch = await printed(place, row, keys);
    await place.write(".config/harness/config.json", "{}");
    const secret = { OLLAMA_HOST: `127.0.0.1:${model.port}`, ...keys };
    const ran = await loop(place, batch, secret, "loop-0");
    assert.deepEqual([ran.code, ran.told.cause], [0, null], ran.said);
    const again = await loop(place, batch, { ...secret, OLLAMA_HOST: "127.0.0.1:9" }, "loop-1");
    assert.deepEqual([again.code, again.told], [0, ran.told], again.said);

    const bucket = new Bucket(NAME, bucketAccess(keys));
    const found: string[] = [];
    for await (const { key } of bucket.list("nightly/", signal)) found.push(path.basename(key));
    const name = `1-${ran.told.id}`;
    const ends = ["audit.jsonl", "bundle.tar", "html", "patch"].map((end) => `${name}.${end}`);
    assert.deepEqual(found, [...ends, "results.jsonl", "running"]);

    const env = { XDG_STATE_HOME: place.at("another"), DOCKER_HOST: "unix:///none", ...keys };
    const listed = await harness(place, ["sessions", "--bundle", `s3://${NAME}/nightly`, "--json"], { env });
    const { id, bundle } = JSON.parse(listed.stdout) as { readonly id: string; readonly bundle: string };
    assert.equal(id, ran.told.session, listed.stderr);
    const replay = await harness(place, ["replay", "--bundle", bundle], { env });
    assert.equal(replay.code, 0, replay.stderr);

    const gone = await printed(place, { ...row, prompt: `${prompt} again` }, keys).catch(() => batch);
    await server.kill("SIGKILL");
    const lost = await loop(place, gone, secret, "loop-2");
    assert.deepEqual([lost.code, lost.told.cause], [6, "bucket"], lost.said);
  },
);
