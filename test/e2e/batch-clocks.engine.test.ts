// slow: it runs a batch under clocks that are wrong in each direction
import assert from "node:assert/strict";
import test from "node:test";
import { startKubernetesApi } from "../fakes/kubernetes-api.ts";
import { skip } from "../fixtures/engine.ts";
import { giveAway } from "../fixtures/give-away.ts";
import { AWAY } from "../fixtures/scratch.ts";
import { skewedClock } from "../fixtures/skewed-clock.ts";
import { replies } from "./batch.ts";
import { household } from "./box-command.ts";
import { KUBERNETES, loop, type Looped, printed } from "./row-loop.ts";
import { startModel } from "./run-command.ts";

test(
  "--max-time of a batch uses the API server's clock, whatever each loop's clock shows",
  { skip },
  async () => {
    await using place = await household({}, AWAY);
    await place.write("tree/notes.txt", "one\n");
    await giveAway(place.at("tree"));
    await using api = await startKubernetesApi("enforced", place.at("node"));
    await place.write("kubeconfig", api.kubeconfig);
    await using model = await startModel(replies);
    const settings = JSON.stringify({ kubernetes: KUBERNETES, chat_model: "coder:7b" });
    /** Another row of the one volume. */
    const looped = async (nth: number, hours: number): Promise<Looped> => {
      const row = {
        repo: `https://git.example/owner/r${nth}`,
        prompt: `Note it. do: echo ${nth} >> notes.txt`,
      };
      await place.write(".config/harness/config.json", settings);
      const batch = await printed(place, row, {}, ["--max-time", "1h"]);
      await place.write(".config/harness/config.json", "{}");
      const secret = { OLLAMA_HOST: `127.0.0.1:${model.port}`, ...skewedClock(String(hours)) };
      return loop(place, batch, secret, "results");
    };
    for (const [nth, hours] of [-5, 5, 0].entries()) {
      const { code, told, said } = await looped(nth, hours);
      assert.deepEqual([code, told.cause], [0, null], said);
    }
    api.clockAhead = 3_700_000;
    for (const [nth, hours] of [-5, 5].entries()) {
      const { code, told, said } = await looped(nth + 3, hours);
      assert.deepEqual([code, told.cause], [3, "budget"], said);
    }
  },
);
