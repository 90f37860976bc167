import assert from "node:assert/strict";
import test from "node:test";
import { type ImageRegistry, startImageRegistry } from "../fakes/image-registry.ts";
import { type Ended, runProgram } from "../fixtures/cli.ts";
import { engine } from "../fixtures/engine-api.ts";
import { image, skip } from "../fixtures/engine.ts";
import { ownImage } from "../fixtures/own-image.ts";
import { type StubPlace, stubPlace } from "../kubernetes/stub-pods.ts";

const GREET = "printf '#!/bin/sh\\necho hello\\n' > /usr/local/bin/greet; chmod 755 /usr/local/bin/greet";
/** No step of it wants a network. The image is a small one of others, as a registry takes all of it anew. */
const recipeOn = (base: string) => ({
  image: base,
  system: [{ run: GREET }],
  folders: ["deps"],
  setup: [
    {
      run: "echo real > deps/lib.txt; umask 077; mkdir /var/cache/harness/shut; echo kept > /var/cache/harness/shut/a",
    },
  ],
  env: { FLAVOUR: "x" },
  services: [{ name: "clock", start: "touch /tmp/ready; exec sleep 600", health: "test -f /tmp/ready" }],
});

interface Place {
  readonly type: (...words: readonly string[]) => Promise<Ended>;
  /** The settings of pods, beside the cluster's own. */
  readonly configure: (kubernetes: object) => Promise<string>;
  readonly recipe: (recipe: object) => Promise<string>;
  /** What `docker login` keeps. */
  readonly login: (config: object) => Promise<string>;
  readonly images: readonly string[];
}

/** What a user types whose boxes are pods, and whose folder has the recipe `own`. */
async function typing({ place, api }: StubPlace): Promise<Place> {
  const start = {
    home: place.at("home"),
    cwd: place.at("project"),
    env: { KUBECONFIG: place.at("kubeconfig") },
  };
  const images: string[] = [];
  api.mutate = ({ spec }) => images.push(...spec.containers.map((each) => each.image));
  const own = "home/.config/harness";
  const configure = (kubernetes: object): Promise<string> => {
    const settings = {
      engine: "kubernetes:",
      env: "own",
      kubernetes: { image, start_timeout: "60s", ...kubernetes },
    };
    return place.write(`${own}/config.json`, JSON.stringify(settings));
  };
  const recipe = (what: object): Promise<string> =>
    place.write(`${own}/environments/own.json`, JSON.stringify(what));
  const login = (what: object): Promise<string> =>
    place.write("home/.docker/config.json", JSON.stringify(what));
  return { login, type: (...words) => runProgram("bin/harness", words, start), configure, recipe, images };
}

async function withEnvironment(
  work: (place: Place, registry: ImageRegistry, recipe: object) => Promise<void>,
): Promise<void> {
  await using base = await ownImage();
  await using stub = await stubPlace("none", { "a.txt": "one\n", "deps/mine.txt": "the host's" });
  await using registry = await startImageRegistry(stub.place.at("registry"));
  const place = await typing(stub);
  const recipe = recipeOn(base.name);
  await place.recipe(recipe);
  try {
    await work(place, registry, recipe);
  } finally {
    const { code, stderr } = await place.type("env", "rm", "--all");
    assert.equal(code, 0, stderr);
  }
}

interface Built {
  readonly id: string;
  readonly how: string;
  readonly pushed: { readonly image: string; readonly how: string; readonly layers: number } | null;
}

async function built({ type }: Place): Promise<Built> {
  const { code, stdout, stderr } = await type("env", "build", "--json");
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout) as Built;
}

const LOOK =
  'greet; cat deps/lib.txt /var/cache/harness/shut/a; ls deps; echo "$FLAVOUR"; test -f /tmp/ready && touch deps/new /var/cache/harness/new && cat a.txt';

/** Names of images that belong to a push, and so should be gone. */
const pushNames = async (id: string, host: string): Promise<readonly string[]> =>
  (await engine.api.listImages()).flatMap(({ RepoTags }) =>
    (RepoTags ?? []).filter((tag) => tag.startsWith(`harness-env:${id}-`) || tag.startsWith(host)),
  );

test(
  "an environment is built here, pushed, and there in a pod by its digest, with what was installed",
  { skip },
  () =>
    withEnvironment(async (place, registry) => {
      const { type } = place;
      const repository = `${registry.host}/team/env`;
      registry.login = { username: "me", password: "s3cr3t-word" };
      await place.configure({ registry: repository });
      const none = await type("sandbox", "exec", "--", "true");
      assert.deepEqual(
        [none.code, /own is not built for this workspace/.test(none.stderr)],
        [2, true],
        none.stderr,
      );
      const barred = await type("env", "build");
      assert.equal(barred.code, 1);
      assert.match(barred.stderr, /is built, and could not be pushed to .*not authorised/s);
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

      const auth = Buffer.from("me:s3cr3t-word").toString("base64");
      await place.login({ auths: { [registry.host]: { auth } } });
      const first = await built(place);
      const digest = [...registry.tags.values()].at(-1);
      assert.deepEqual(
        [first.how, first.pushed?.how, first.pushed?.image],
        ["kept", "pushed", `${repository}@${digest}`],
      );
      assert.match([...registry.tags.keys()].join(), new RegExp(`^team/env:[0-9a-f]{16}-${first.id}$`));
      assert.deepEqual(await pushNames(first.id, registry.host), []);
      const sent = registry.sent.length;
      assert.partialDeepStrictEqual(await built(place), {
        how: "kept",
        pushed: { how: "kept", image: `${repository}@${digest}`, layers: 0 },
      });
      assert.equal(registry.sent.length, sent);

      registry.login = undefined;
      const looked = await type("sandbox", "exec", "--", "sh", "-c", LOOK);
      assert.deepEqual(
        [looked.code, looked.stdout],
        [0, "hello\nreal\nkept\nlib.txt\nx\none\n"],
        looked.stderr,
      );
      assert.equal(place.images.at(-1), `${repository}@${digest}`);
      assert.doesNotMatch(looked.stderr, /environment/);
      const shown = await type("env", "show");
      assert.match(shown.stdout, new RegExp(`^in the registry: ${repository}@${digest}$`, "m"));
      const listed = JSON.parse((await type("env", "list", "--json")).stdout) as { readonly pushed: string };
      assert.equal(listed.pushed, `${repository}@${digest}`);
      const plain = await type("sandbox", "exec", "--env", "none", "--", "sh", "-c", "ls deps; greet");
      assert.deepEqual([plain.code, plain.stdout, place.images.at(-1)], [127, "mine.txt\n", image]);
      const log = await type("env", "show", "--log");
      assert.match(log.stdout, /pushing to 127\.0\.0\.1:\d+\/team\/env/);
      assert.doesNotMatch(`${log.stdout}${barred.stderr}${looked.stderr}${shown.stdout}`, /s3cr3t-word|bWU6/);
    }),
);

test(
  "where the project changes, pods go on with the older one, and a registry that is not named is said",
  { skip },
  () =>
    withEnvironment(async (place, registry, recipe) => {
      const { type } = place;
      await place.configure({});
      const nowhere = await type("env", "build");
      assert.equal(nowhere.code, 2);
      assert.match(
        nowhere.stderr.replace(/\s+/g, " "),
        /which have environments from a registry, and none is named/,
      );
      await place.configure({ registry: `${registry.host}/team/env` });
      assert.deepEqual((await built(place)).how, "built");
      await place.recipe({ ...recipe, env: { FLAVOUR: "y" } });
      const older = await type("sandbox", "exec", "--", "sh", "-c", 'greet; echo "$FLAVOUR"');
      assert.deepEqual([older.code, older.stdout], [0, "hello\nx\n"], older.stderr);
      assert.match(
        older.stderr.replace(/\s+/g, " "),
        /is an older one\. Renew it: harness env build --env own/,
      );
      const { stdout } = await type("doctor", "--json");
      const { checks } = JSON.parse(stdout) as {
        readonly checks: readonly { readonly id: string; readonly detail: string }[];
      };
      assert.match(
        checks.find(({ id }) => id === "environment")?.detail ?? "",
        /is an older one\. Renew it: /,
      );
      await place.configure({ registry: "registry.example/team/other" });
      const elsewhere = await type("sandbox", "exec", "--", "greet");
      assert.equal(elsewhere.code, 127);
      assert.match(
        elsewhere.stderr.replace(/\s+/g, " "),
        /not used: it was pushed to .*, and pods have it from registry\.example\/team\/other/,
      );
    }),
);
