// slow: it builds environments and pushes them
import assert from "node:assert/strict";
import test from "node:test";
import { engine } from "../fixtures/engine-api.ts";
import { image, skip } from "../fixtures/engine.ts";
import {
  built,
  type EnvironmentUser,
  FILES,
  LOOK,
  SEEN,
  withEnvironment,
} from "../kubernetes/pod-environment.ts";
import { stubPlace } from "../kubernetes/stub-pods.ts";

/** With the images of the pods that are made. */
async function onStub(
  work: (user: EnvironmentUser, images: readonly string[]) => Promise<void>,
): Promise<void> {
  await using place = await stubPlace("none", FILES);
  const images: string[] = [];
  place.api.mutate = ({ spec }) => images.push(...spec.containers.map((each) => each.image));
  const kubeconfig = place.place.at("kubeconfig");
  await withEnvironment({ place, kubeconfig, engine: "kubernetes:", image }, (user) => work(user, images));
}

/** Names of images that belong to a push, and so should be gone. */
const pushNames = async (id: string, host: string): Promise<readonly string[]> =>
  (await engine.api.listImages()).flatMap(({ RepoTags }) =>
    (RepoTags ?? []).filter((tag) => tag.startsWith(`harness-env:${id}-`) || tag.startsWith(host)),
  );

test(
  "an environment is built locally, pushed, and available in a pod by its digest with everything installed",
  { skip },
  () =>
    onStub(async (user, images) => {
      const { type, registry, configure, login } = user;
      const repository = `${registry.host}/team/env`;
      registry.login = { username: "me", password: "s3cr3t-word" };
      await configure({ registry: repository });
      const none = await type("sandbox", "exec", "--", "true");
      assert.deepEqual(
        [none.code, /own is not built for this workspace/.test(none.stderr)],
        [2, true],
        none.stderr,
      );
      const barred = await type("env", "build");
      assert.equal(barred.code, 1);
      assert.match(barred.stderr, /is built, but could not be pushed to .*not authorised/s);
      assert.match(
        barred.stderr.replace(/\s+/g, " "),
        /docker login 127\.0\.0\.1:\d+, then: harness env build/,
      );
      const unpushed = await type("sandbox", "exec", "--", "greet");
      assert.notEqual(unpushed.code, 0);
      assert.match(
        unpushed.stderr.replace(/\s+/g, " "),
        /not used: it was not pushed to .* Push it: harness env build --env own/,
      );

      await login("me", "s3cr3t-word");
      const first = await built(user);
      const digest = [...registry.tags.values()].at(-1);
      assert.deepEqual(
        [first.how, first.pushed?.how, first.pushed?.image],
        ["kept", "pushed", `${repository}@${digest}`],
      );
      assert.match([...registry.tags.keys()].join(), new RegExp(`^team/env:[0-9a-f]{16}-${first.id}$`));
      assert.deepEqual(await pushNames(first.id, registry.host), []);
      const sent = registry.sent.length;
      assert.partialDeepStrictEqual(await built(user), {
        how: "kept",
        pushed: { how: "kept", image: `${repository}@${digest}`, layers: 0 },
      });
      assert.equal(registry.sent.length, sent);

      registry.login = undefined;
      const looked = await type("sandbox", "exec", "--", "sh", "-c", LOOK);
      assert.deepEqual([looked.code, looked.stdout], [0, SEEN], looked.stderr);
      assert.equal(images.at(-1), `${repository}@${digest}`);
      assert.doesNotMatch(looked.stderr, /environment/);
      const shown = await type("env", "show");
      assert.match(shown.stdout, new RegExp(`^in the registry: ${repository}@${digest}$`, "m"));
      const listed = JSON.parse((await type("env", "list", "--json")).stdout) as { readonly pushed: string };
      assert.equal(listed.pushed, `${repository}@${digest}`);
      const plain = await type("sandbox", "exec", "--env", "none", "--", "sh", "-c", "ls deps; greet");
      assert.deepEqual([plain.code, plain.stdout, images.at(-1)], [127, "mine.txt\n", image]);
      const log = await type("env", "show", "--log");
      assert.match(log.stdout, /pushing to 127\.0\.0\.1:\d+\/team\/env/);
      assert.doesNotMatch(`${log.stdout}${barred.stderr}${looked.stderr}${shown.stdout}`, /s3cr3t-word|bWU6/);
    }),
);

test(
  "after a project change pods use the older environment, and a registry that is not configured is reported",
  { skip },
  () =>
    onStub(async (user) => {
      const { type, registry, configure, change } = user;
      await configure({});
      const nowhere = await type("env", "build");
      assert.equal(nowhere.code, 2);
      assert.match(
        nowhere.stderr.replace(/\s+/g, " "),
        /which get environments from a registry, and none is set/,
      );
      await configure({ registry: `${registry.host}/team/env` });
      assert.deepEqual((await built(user)).how, "built");
      await change({ env: { FLAVOUR: "y" } });
      const older = await type("sandbox", "exec", "--", "sh", "-c", 'greet; echo "$FLAVOUR"');
      assert.deepEqual([older.code, older.stdout], [0, "hello\nx\n"], older.stderr);
      assert.match(
        older.stderr.replace(/\s+/g, " "),
        /is out of date\. Rebuild it: harness env build --env own/,
      );
      const { stdout } = await type("doctor", "--json");
      const { checks } = JSON.parse(stdout) as {
        readonly checks: readonly { readonly id: string; readonly detail: string }[];
      };
      assert.match(
        checks.find(({ id }) => id === "environment")?.detail ?? "",
        /is out of date\. Rebuild it: /,
      );
      await configure({ registry: "registry.example/team/other" });
      const elsewhere = await type("sandbox", "exec", "--", "greet");
      assert.equal(elsewhere.code, 127);
      assert.match(
        elsewhere.stderr.replace(/\s+/g, " "),
        /not used: it was pushed to .*, and pods pull it from registry\.example\/team\/other/,
      );
    }),
);
