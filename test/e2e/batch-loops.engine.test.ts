import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import test from "node:test";
import { parseAllDocuments } from "yaml";
import { rowResultForm, type RowResult } from "../../src/render/batch-results.ts";
import type { ConfigMap, Job } from "../../src/kubernetes/manifest.ts";
import { image, skip } from "../fixtures/engine.ts";
import { giveAway } from "../fixtures/give-away.ts";
import { AWAY, type Scratch } from "../fixtures/scratch.ts";
import { startKubernetesApi } from "../fakes/kubernetes-api.ts";
import { replies, rowsText } from "./batch.ts";
import { household } from "./box-command.ts";
import { harness, startModel } from "./run-command.ts";
import { holding, holds, service, VALUE } from "./secret-service.ts";

/** Loops as their Job says them, with boxes at an API server whose pods are containers. */

const KUBERNETES = {
  image,
  loop_image: "registry.example/harness-loop:1",
  results_claim: "results",
  model_secret: "model",
  start_timeout: "60s",
};

interface Printed {
  readonly text: string;
  /** What the loop has of its Job: words behind the folder of its rows, and variables. */
  readonly words: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly rows: ConfigMap;
}

/** The batch of one row as it is printed where the user has `env`. */
async function printed(place: Scratch, row: object, env: Readonly<Record<string, string>>): Promise<Printed> {
  const tasks = await place.write("tasks.jsonl", rowsText([row]));
  const words = ["batch", tasks, "--on", "kubernetes:/team", "--print-manifests"];
  const { code, stdout, stderr } = await harness(place, words, { env });
  assert.equal(code, 0, stderr);
  const objects = parseAllDocuments(stdout).map((each) => each.toJS() as Job | ConfigMap);
  const job = objects.find((each): each is Job => each.kind === "Job");
  const rows = objects.find((each): each is ConfigMap => each.kind === "ConfigMap");
  const [loop] = job?.spec?.template.spec?.containers ?? [];
  assert.ok(rows !== undefined && loop !== undefined);
  const own = /^(?:HOME|TMPDIR|XDG_.*)$/;
  const said = (loop.env ?? []).flatMap(({ name, value }) =>
    value === undefined || own.test(name) ? [] : [[name, value] as const],
  );
  const kept = (loop.args ?? []).filter((word) => /^--(?!index|tree|out|told)/.test(word));
  return { text: stdout, words: kept, env: Object.fromEntries(said), rows };
}

interface Looped {
  readonly code: number | null;
  readonly told: RowResult;
  readonly said: string;
  readonly results: string;
}

/** As its pod runs it, over a clone that lies there. */
async function loop(
  place: Scratch,
  { words, env, rows }: Printed,
  secret: Readonly<Record<string, string>>,
  name: string,
): Promise<Looped> {
  for (const [file, text] of Object.entries(rows.data ?? {})) await place.write(`rows/${file}`, text);
  const pod = { HARNESS_POD_NAME: name, HARNESS_POD_NAMESPACE: "team", HARNESS_POD_UID: `uid-of-${name}` };
  const kubeconfig = { KUBECONFIG: place.at("kubeconfig") };
  const results = place.at(name);
  const own = ["--index=0", `--tree=${place.at("tree")}`, `--out=${results}`, `--told=${place.at("told")}`];
  const start = { env: { ...secret, ...env, ...pod, ...kubeconfig } };
  const { code, stdout, stderr } = await harness(place, ["batch", place.at("rows"), ...own, ...words], start);
  const told = rowResultForm.parse(JSON.parse(await readFile(place.at("told"), "utf8")));
  return { code, told, said: stdout + stderr, results };
}

async function auditIn(results: string): Promise<string> {
  const names = await readdir(results, { recursive: true });
  const name = names.find((each) => each.endsWith(".audit.jsonl"));
  return readFile(path.join(results, name ?? "no audit"), "utf8");
}

test(
  "a loop grants its box what the batch was granted and nothing else, with the value that its Secret has",
  { skip },
  async () => {
    const { at, pem, asked } = await service();
    await using place = await household({}, AWAY);
    await place.write("tree/notes.txt", "one\n");
    await giveAway(place.at("tree"));
    await using api = await startKubernetesApi("enforced", place.at("node"));
    await place.write("kubeconfig", api.kubeconfig);
    await using model = await startModel(replies);
    const settings = {
      allow_domains: [`${at}:private`],
      secrets: { API_TOKEN: ["localhost"] },
      kubernetes: KUBERNETES,
      chat_model: "coder:7b",
    };
    await place.write(".config/harness/config.json", JSON.stringify(settings));
    const curl = `curl -sS --noproxy '' -H "Authorization: Bearer $API_TOKEN" -d x`;
    const row = {
      repo: "https://git.example/owner/r0",
      prompt: `Ask them. do: ${curl} https://${at}/who > said`,
      // A user's check is run as it is: what it asks for only the proxy can refuse.
      check: "grep harness-secret- said && curl -sS http://elsewhere.test/ | grep elsewhere.test",
      limits: { max_turns: 4 },
    };
    // What the user has set here is another one, and goes nowhere.
    const batch = await printed(place, row, { API_TOKEN: VALUE });
    assert.ok(!holds(batch.text));
    // A loop has no settings of the user's but those of its Job.
    await place.write(".config/harness/config.json", "{}");
    const secret = {
      OLLAMA_HOST: `127.0.0.1:${model.port}`,
      NODE_EXTRA_CA_CERTS: await place.write("ca.pem", pem),
    };
    const without = await loop(place, batch, secret, "loop-without");
    assert.deepEqual([without.code, without.told.cause], [2, "usage"], without.said);
    assert.match(
      without.told.reason,
      /API_TOKEN is not set in the loop's environment.*put API_TOKEN into the Secret/,
    );
    assert.deepEqual(asked, []);
    const ran = await loop(place, batch, { ...secret, API_TOKEN: VALUE }, "loop-with");
    assert.deepEqual([ran.code, ran.told.cause], [0, null], ran.said);
    assert.deepEqual(asked, [`Bearer ${VALUE} x`]);
    const audit = await auditIn(ran.results);
    assert.match(audit, /"host":"elsewhere\.test",.*"verdict":"denied","rule":"not-granted"/);
    assert.deepEqual([await holding(ran.results), holds(ran.said)], [[], false]);
    assert.deepEqual([api.named("pods"), api.named("networkpolicies")], [[], []]);
  },
);
