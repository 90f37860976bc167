import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import test from "node:test";
import { HarnessError } from "../../src/core/errors.ts";
import { isInRegistry, pushImage, type RegistryLogin } from "../../src/docker/push-image.ts";
import { type ImageRegistry, startImageRegistry } from "../fakes/image-registry.ts";
import { engine } from "../fixtures/engine-api.ts";
import { skip } from "../fixtures/engine.ts";
import { bareImage } from "../fixtures/own-image.ts";
import { scratch } from "../fixtures/scratch.ts";

const NOBODY: RegistryLogin = { kind: "none" };

interface Place extends AsyncDisposable {
  readonly registry: ImageRegistry;
  readonly image: string;
  readonly push: (more?: {
    readonly login?: RegistryLogin;
    readonly silenceMs?: number;
  }) => ReturnType<typeof pushImage>;
}

/** A registry, and an image of one layer with so many bytes that cannot be made fewer. */
async function registryPlace(bytes = 1000): Promise<Place> {
  await using things = new AsyncDisposableStack();
  const place = things.use(await scratch());
  await writeFile(await place.write("files/a", ""), randomBytes(bytes));
  const { name: image } = things.use(await bareImage(place.at("files"), ["a"]));
  const registry = things.use(await startImageRegistry(place.at("registry")));
  const push: Place["push"] = ({ login = NOBODY, ...more } = {}) =>
    pushImage(engine, {
      image,
      repository: `${registry.host}/team/env`,
      tag: "k1",
      login,
      onLine: () => undefined,
      signal: new AbortController().signal,
      ...more,
    });
  const held = things.move();
  return { registry, image, push, [Symbol.asyncDispose]: () => held.disposeAsync() };
}

const namesLeft = async ({ registry }: Place): Promise<readonly string[]> =>
  (await engine.api.listImages()).flatMap(({ RepoTags }) =>
    (RepoTags ?? []).filter((tag) => tag.startsWith(registry.host)),
  );

async function failsAs(place: Place, words: RegExp, more?: Parameters<Place["push"]>[0]): Promise<void> {
  await assert.rejects(place.push(more), (thrown: unknown) => {
    assert.ok(thrown instanceof HarnessError);
    assert.match(thrown.message, words);
    return true;
  });
  assert.deepEqual(await namesLeft(place), []);
  assert.equal(place.registry.tags.size, 0);
}

test(
  "an image is pushed completely, identified by the registry's digest, and its layers are not pushed again",
  { skip },
  async () => {
    await using place = await registryPlace();
    const { registry, push } = place;
    const first = await push();
    assert.equal(first.moved, 1);
    assert.equal(registry.tags.get("team/env:k1"), first.digest);
    // Its layer, and its configuration.
    assert.equal(registry.sent.length, 2);
    assert.deepEqual(await push(), { digest: first.digest, moved: 0 });
    assert.equal(registry.sent.length, 2);
    assert.deepEqual(await namesLeft(place), []);
    const repository = `${registry.host}/team/env`;
    const asked = (digest: string): Promise<boolean> =>
      isInRegistry(engine, { image: `${repository}@${digest}`, repository, login: NOBODY });
    assert.equal(await asked(first.digest), true);
    assert.equal(await asked(`sha256:${"0".repeat(64)}`), false);
  },
);

test("pushing needs permission, and no failure reveals a password", { skip }, async () => {
  await using place = await registryPlace();
  const { registry, push } = place;
  registry.login = { username: "me", password: "right-word" };
  await failsAs(place, /: not authorised: /);
  const wrong = { kind: "login", username: "me", password: "wrong-word" } as const;
  await failsAs(place, /: not authorised: (?!.*wrong-word)/, { login: wrong });
  assert.deepEqual(registry.sent, []);
  const { digest } = await push({ login: { ...wrong, password: "right-word" } });
  assert.equal(registry.tags.get("team/env:k1"), digest);
});

test("a registry's refusal of this repository is quoted", { skip }, async () => {
  await using place = await registryPlace();
  place.registry.denies = "you may only read here";
  await failsAs(place, /: refused: .*you may only read here/);
  assert.deepEqual(place.registry.sent, []);
});

test("a registry that disappears during a push is given up, and nothing is stored", { skip }, async () => {
  await using place = await registryPlace(4_000_000);
  place.registry.goesAfter = 500_000;
  await failsAs(place, /: no answer: /, { silenceMs: 3000 });
  assert.deepEqual(place.registry.sent, []);
});
