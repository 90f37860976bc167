import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import test from "node:test";
import { skip } from "../fixtures/engine.ts";
import { giveAway } from "../fixtures/give-away.ts";
import { AWAY } from "../fixtures/scratch.ts";
import { startKubernetesApi } from "../fakes/kubernetes-api.ts";
import { replies } from "./batch.ts";
import { household } from "./box-command.ts";
import { killRun, KUBERNETES, loop, printed } from "./row-loop.ts";
import { startModel } from "./run-command.ts";
import { holding, holds, service, VALUE } from "./secret-service.ts";

/** Loops as their Job says them, with boxes at an API server whose pods are containers. */

async function auditIn(results: string): Promise<string> {
  const names = await readdir(results, { recursive: true });
  const name = names.find((each) => each.endsWith(".audit.jsonl"));
  return readFile(path.join(results, name ?? "no audit"), "utf8");
}

test(
  "a loop grants its box exactly what the batch was granted, with the value from its Secret",
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

test("a run killed while its loop lives leaves no box", { skip }, async () => {
  await using place = await household({}, AWAY);
  await place.write("tree/notes.txt", "one\n");
  await giveAway(place.at("tree"));
  await using api = await startKubernetesApi("enforced", place.at("node"));
  await place.write("kubeconfig", api.kubeconfig);
  await using model = await startModel(replies);
  const settings = { kubernetes: KUBERNETES, chat_model: "coder:7b" };
  await place.write(".config/harness/config.json", JSON.stringify(settings));
  const row = { repo: "https://git.example/owner/r0", prompt: "Wait. do: sleep 1000" };
  const batch = await printed(place, row, {});
  await place.write(".config/harness/config.json", "{}");
  const asleep = place.at("asleep");
  const seen = (lines: readonly string[]): void => {
    if (lines.some((line) => line.includes("sleep 1000"))) writeFileSync(asleep, "");
  };
  const poll = setInterval(() => {
    const [pod] = api.named("pods");
    if (pod !== undefined) api.processes(pod).then(seen, () => undefined);
  }, 200);
  try {
    const secret = { OLLAMA_HOST: `127.0.0.1:${model.port}` };
    const ended = await loop(place, batch, secret, "loop-killed", [asleep, killRun]);
    assert.deepEqual([ended.code, ended.told.cause], [137, "killed"], ended.said);
    assert.deepEqual([api.named("pods"), api.named("networkpolicies")], [[], []], ended.said);
  } finally {
    clearInterval(poll);
  }
});
