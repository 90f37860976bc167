// slow: it builds an environment and pushes it
import assert from "node:assert/strict";
import test from "node:test";
import { image, skip } from "../fixtures/engine.ts";
import { giveAway } from "../fixtures/give-away.ts";
import {
  built,
  FILES,
  LOOK_BY_MODEL,
  SEEN_BY_MODEL,
  withEnvironment,
} from "../kubernetes/pod-environment.ts";
import { stubPlace } from "../kubernetes/stub-pods.ts";
import { replies, rowsText } from "./batch.ts";
import { KUBERNETES, loop, readPrinted } from "./row-loop.ts";
import { startModel } from "./run-command.ts";

const REPO = "https://git.example/team/shop";

test(
  "a row's loop starts its box from the image built for its repository, by digest, with everything installed",
  { skip },
  async () => {
    await using stub = await stubPlace("none", FILES);
    const { place, api } = stub;
    const images: string[] = [];
    api.mutate = ({ spec }) => images.push(...spec.containers.map((each) => each.image));
    const kubeconfig = place.at("kubeconfig");
    await using model = await startModel(replies);
    await withEnvironment({ place: stub, kubeconfig, engine: "kubernetes:", image }, async (user) => {
      const { type, registry, configure } = user;
      await place.write("project/.git/config", `[remote "origin"]\n\turl = git@git.example:team/shop.git\n`);
      await place.write("project/.git/HEAD", "ref: refs/heads/main\n");
      await place.write("project/.git/objects/info/none", "");
      await place.write("project/.git/refs/heads/none", "");
      const settings = { ...KUBERNETES, registry: `${registry.host}/team/env` };
      await configure(settings);
      const tasks = await place.write(
        "tasks.jsonl",
        rowsText([
          {
            repo: REPO,
            prompt: `Look. do: ${LOOK_BY_MODEL}`,
            check: `test "$(cat seen)" = "${SEEN_BY_MODEL.trimEnd()}"`,
            env: "own",
          },
        ]),
      );
      const print = ["batch", tasks, "--model", "coder:7b", "--on", "kubernetes:/team", "--print-manifests"];
      const before = await type(...print);
      assert.equal(before.code, 2);
      assert.match(
        before.stderr.replace(/\s+/g, " "),
        /row 1: no folder whose origin is .* has the environment own; next, .*: harness env build --env own/,
      );
      const { pushed } = await built(user);
      const said = await type(...print);
      assert.equal(said.code, 0, said.stderr);
      const printed = readPrinted(said.stdout);
      // What the clone of the row is there, nothing of this user's being known to its loop.
      await giveAway(place.at("project"));
      await place.write("work/x", "");
      const ran = await loop(place, printed, { OLLAMA_HOST: `127.0.0.1:${model.port}` }, "loop-0");
      assert.deepEqual([ran.code, ran.told.cause], [0, null], ran.said);
      assert.deepEqual([ran.told.changes?.added, ran.told.verified?.exit_code], [["seen"], 0], ran.said);
      assert.equal(images.at(-1), pushed?.image);
      assert.doesNotMatch(ran.said, /environment is out of date/);
    });
    assert.deepEqual([api.named("pods"), api.named("networkpolicies")], [[], []]);
  },
);
