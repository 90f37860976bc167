import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { readFile, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import test from "node:test";
import { HarnessError } from "../../src/core/errors.ts";
import { isInRegistry, pushImage, type RegistryLogin } from "../../src/docker/push-image.ts";
import { engine } from "../fixtures/engine-api.ts";
import { image as sandbox } from "../fixtures/engine.ts";
import { bareImage } from "../fixtures/own-image.ts";
import { scratch } from "../fixtures/scratch.ts";
import { PASSWORD, realRegistry, type RealRegistry, REFRESH, USER } from "./real-registry.ts";

const NOBODY: RegistryLogin = { kind: "none" };
const ME: RegistryLogin = { kind: "login", username: USER, password: PASSWORD };

interface Small extends AsyncDisposable {
  readonly name: string;
}

/** An image of one layer with this many incompressible bytes. */
async function small(bytes = 100_000): Promise<Small> {
  await using things = new AsyncDisposableStack();
  const place = things.use(await scratch());
  await writeFile(await place.write("files/a", ""), randomBytes(bytes));
  const { name } = things.use(await bareImage(place.at("files"), ["a"]));
  const held = things.move();
  return { name, [Symbol.asyncDispose]: () => held.disposeAsync() };
}

const pushTo = (
  { host }: RealRegistry,
  image: string,
  login: RegistryLogin = NOBODY,
  silenceMs?: number,
): ReturnType<typeof pushImage> =>
  pushImage(engine, {
    image,
    repository: `${host}/team/env`,
    tag: "k1",
    login,
    onLine: () => undefined,
    signal: new AbortController().signal,
    ...(silenceMs === undefined ? {} : { silenceMs }),
  });

const isThere = ({ host }: RealRegistry, digest: string, login: RegistryLogin = NOBODY): Promise<boolean> => {
  const repository = `${host}/team/env`;
  return isInRegistry(engine, { image: `${repository}@${digest}`, repository, login });
};

async function fails(work: Promise<unknown>, says: RegExp): Promise<void> {
  await assert.rejects(work, (thrown: unknown) => {
    assert.ok(thrown instanceof HarnessError, String(thrown));
    assert.match(thrown.message, says);
    assert.doesNotMatch(`${thrown.message}${thrown.remedy ?? ""}`, /word\+1|refresh-token/);
    return true;
  });
}

for (const tls of [false, true])
  for (const auth of ["htpasswd", "token"] as const)
    test(`an authorised user can push with ${auth} ${tls ? "over TLS" : "over plain http"}, and nobody else can`, async () => {
      await using image = await small();
      await using registry = await realRegistry({ auth, tls });
      await fails(pushTo(registry, image.name), /: not authorised: /);
      await fails(pushTo(registry, image.name, { ...ME, password: "wrong" }), /: not authorised: /);
      const { digest, moved } = await pushTo(registry, image.name, ME);
      assert.equal(moved, 1);
      assert.deepEqual([await isThere(registry, digest), await isThere(registry, digest, ME)], [false, true]);
      assert.deepEqual(await pushTo(registry, image.name, ME), { digest, moved: 0 });
      if (auth === "token") {
        assert.deepEqual(await pushTo(registry, image.name, { kind: "token", token: REFRESH }), {
          digest,
          moved: 0,
        });
        await fails(
          pushTo(registry, image.name, { kind: "token", token: "refresh-token-of-another" }),
          /: not authorised: /,
        );
      }
    });

test("a read-only registry refuses the push", async () => {
  await using image = await small();
  await using registry = await realRegistry({ readOnly: true });
  await fails(pushTo(registry, image.name), /: refused: .*405/);
});

test(
  "a registry with a full disk is reported as a fault of the registry",
  { skip: process.getuid?.() !== 0 && "only root can give it a small disk" },
  async () => {
    await using image = await small(8_000_000);
    await using registry = await realRegistry({ disk: 4 });
    await fails(pushTo(registry, image.name), /: a fault of the registry: .*500/);
  },
);

const BLOBS = "docker/registry/v2/blobs/sha256";

test("a manifest or a layer that was deleted in the registry is sent again", async () => {
  await using image = await small();
  await using registry = await realRegistry();
  const { digest } = await pushTo(registry, image.name);
  const blobs = path.join(registry.data, BLOBS);
  const [, hash = ""] = digest.split(":");
  const manifest = await readFile(path.join(blobs, hash.slice(0, 2), hash, "data"), "utf8");
  const { layers } = JSON.parse(manifest) as { readonly layers: readonly { readonly digest: string }[] };
  const [, layer = ""] = layers[0]?.digest.split(":") ?? [];
  const removed = async (what: string): Promise<void> => {
    await rm(path.join(blobs, what.slice(0, 2), what), { recursive: true });
    await registry.kill();
    await registry.start();
  };
  await removed(layer);
  // An engine cannot be asked for more than the manifest.
  assert.equal(await isThere(registry, digest), true);
  assert.deepEqual(await pushTo(registry, image.name), { digest, moved: 1 });
  await removed(hash);
  assert.equal(await isThere(registry, digest), false);
  await pushTo(registry, image.name);
  assert.equal(await isThere(registry, digest), true);
});

test("the whole sandbox image is pushed, also when the registry is briefly down", async () => {
  await using registry = await realRegistry();
  let back: Promise<void> = Promise.resolve();
  const restart = async (): Promise<void> => {
    await registry.kill();
    await registry.start();
  };
  registry.cutAt = { bytes: 100 * 2 ** 20, how: () => void (back = restart()) };
  const whole = await pushTo(registry, sandbox);
  await back;
  assert.equal(registry.cutAt, undefined);
  assert.equal(await isThere(registry, whole.digest), true);
  assert.deepEqual(await pushTo(registry, sandbox), { digest: whole.digest, moved: 0 });
});

test("a push to a registry that stays away is abandoned, and the layers that arrived are not sent again", async () => {
  await using image = await small(30_000_000);
  await using registry = await realRegistry();
  let gone: Promise<void> = Promise.resolve();
  registry.cutAt = { bytes: 10 * 2 ** 20, how: () => void (gone = registry.kill()) };
  await fails(pushTo(registry, image.name, NOBODY, 20_000), /: no answer: /);
  await gone;
  await registry.start();
  const { digest } = await pushTo(registry, image.name);
  assert.equal(await isThere(registry, digest), true);
});
