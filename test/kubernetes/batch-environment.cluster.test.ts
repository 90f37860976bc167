import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import test, { after } from "node:test";
import { batchOf, replies } from "../e2e/batch.ts";
import { startImageRegistry } from "../fakes/image-registry.ts";
import { runProgram } from "../fixtures/cli.ts";
import { ownImage } from "../fixtures/own-image.ts";
import { look } from "./cluster-api.ts";
import { attached, type Cluster } from "./cluster.ts";
import { batchPlace, keptOf, noBatches, sharedTeam, tasksOf } from "./batch-place.ts";
import { FILES, LOOK_BY_MODEL, recipeOn, SEEN_BY_MODEL } from "./pod-environment.ts";

/** Rows of a Job on a real cluster whose boxes start from an environment built for their repository, and pushed. */

const cluster: Cluster = await attached(process.env["HARNESS_TEST_KUBERNETES"] ?? "tests");
const { api, image } = cluster;
const skip = noBatches(cluster);

const shared = sharedTeam(cluster);
const { team } = shared;
after(() => shared[Symbol.asyncDispose]());

const added = (patch: string): string =>
  [...patch.matchAll(/^\+(?!\+)(.*)$/gm)].map(([, line]) => `${line}\n`).join("");

test(
  "a row's box uses the environment built for its repository, by digest and at its path; another row's uses the image of the settings",
  { skip },
  async () => {
    const registry = await startImageRegistry(`/var/tmp/harness-registry-${process.pid}`);
    await using _ = registry;
    await using base = await ownImage();
    await cluster.letNodeOut(Number(registry.host.split(":")[1]));
    const repository = `${registry.host}/team/env`;
    await using place = await batchPlace(await team(), replies, { kubernetes: { registry: repository } });
    const { place: home, space } = place;
    const url = (await team()).repository(`${space.name}-shop`, { "a.txt": "one\n" });
    await home.write(".config/harness/environments/own.json", JSON.stringify(recipeOn(base.name)));
    for (const [file, text] of Object.entries(FILES)) await home.write(`project/${file}`, text);
    await home.write("project/.git/HEAD", "ref: refs/heads/main\n");
    const origin = (of: string) => home.write("project/.git/config", `[remote "origin"]\n\turl = ${of}\n`);
    await origin("https://git.example/team/another");
    const start = { home: home.path, cwd: home.at("project") };
    const built = await runProgram("bin/harness", ["env", "build", "--env", "own"], start);
    try {
      assert.equal(built.code, 0, built.stderr);
      const rows = [
        { repo: url, prompt: `Look. do: ${LOOK_BY_MODEL}; pwd >> seen`, env: "own" },
        { repo: url, prompt: "Look. do: greet > seen || echo none >> seen", env: "none" },
      ];
      const tasks = await tasksOf(await team(), place, rows);
      const words = [tasks, "--out", home.at("out"), "--jobs", "1"];
      const none = await place.run(...words);
      assert.deepEqual([none.code, await place.jobs()], [2, []]);
      assert.match(none.stderr + none.stdout, /row 1: no folder whose origin is .* has the environment own/);

      await origin(url);
      const images: string[] = [];
      const leaving = new AbortController();
      void (async () => {
        for await (const { type, object } of api.watch(`${space.pods}?watch=1`, leaving.signal)) {
          const isBox = look(object, "metadata", "labels", "dev.harness.pod") !== undefined;
          if (type === "ADDED" && isBox) images.push(String(look(object, "spec", "containers", 0, "image")));
        }
      })().catch(() => undefined);
      const ran = await place.run(...words).finally(() => leaving.abort());
      const told = batchOf(ran);
      assert.deepEqual([ran.code, told.whole.done], [0, 2], ran.stderr + ran.stdout);
      const digest = [...registry.tags.values()].at(-1);
      assert.deepEqual(
        images.toSorted((a, b) => a.localeCompare(b)),
        [`${repository}@${digest}`, image].toSorted((a, b) => a.localeCompare(b)),
      );
      const patchOf = async (row: number): Promise<string> =>
        readFile((await keptOf(place.results, row)).get("patch") ?? "", "utf8");
      assert.equal(added(await patchOf(1)), `${SEEN_BY_MODEL}${home.at("project")}\n`);
      assert.equal(added(await patchOf(2)), "none\n");
    } finally {
      const { code, stderr } = await runProgram("bin/harness", ["env", "rm", "--all"], start);
      assert.equal(code, 0, stderr);
    }
  },
);
