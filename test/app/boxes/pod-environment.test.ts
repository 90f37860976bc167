import assert from "node:assert/strict";
import test from "node:test";
import { podEnvironmentFor } from "../../../src/app/boxes/pod-environment.ts";
import { DEFAULTS } from "../../../src/config/settings-schema.ts";
import {
  type BuiltPlace,
  builtPlace,
  DIGEST,
  type Pushed,
  RECIPE,
  REGISTRY,
} from "../../fixtures/built-environment.ts";

interface Asked {
  readonly env?: string | null;
  readonly image?: string;
  readonly registry?: string | null;
}

async function asked(built: BuiltPlace, wants: Asked = {}) {
  const { env = "own", image = null, registry = REGISTRY } = wants;
  const kubernetes = { ...DEFAULTS.kubernetes, registry };
  const said: string[] = [];
  const warn = (text: string): void => void said.push(text);
  const settings = { ...DEFAULTS, env, image, kubernetes };
  const found = await podEnvironmentFor({ host: built.host, settings, workspace: built.workspace, warn });
  return { found, said };
}

async function on<T>(more: Partial<Pushed> | null, work: (built: BuiltPlace) => Promise<T>) {
  const built = await builtPlace(more);
  await using _ = built.place;
  return await work(built);
}

test("a pushed environment is started by its digest, with the contents of its volumes", () =>
  on({}, async (built) => {
    const { found, said } = await asked(built);
    assert.deepEqual(said, []);
    assert.equal(found?.image, `${REGISTRY}@${DIGEST}`);
    assert.deepEqual(found.brought, [
      { from: "/usr/local/lib/harness/environment/0", to: "/var/cache/harness" },
      { from: "/usr/local/lib/harness/environment/1", to: `${built.workspace}/deps` },
    ]);
    assert.equal(found.env["A"], "b");
  }));

const BUILD = "harness env build --env own";
const UNUSED: readonly (readonly [string, Partial<Pushed> | null, Asked, RegExp])[] = [
  ["not pushed", null, {}, new RegExp(`not used: it was not pushed to ${REGISTRY}\\. Push it: ${BUILD}$`)],
  [
    "pushed elsewhere",
    { registry: "r.example/x" },
    {},
    new RegExp(`pushed to r\\.example/x, and pods pull it from ${REGISTRY}\\. Push it: ${BUILD}$`),
  ],
  [
    "no registry named",
    {},
    { registry: null },
    /not used: pods get .*none is set\. Set one: harness config set kubernetes /,
  ],
];

for (const [what, pushed, wants, words] of UNUSED)
  test(`${what}: it is not used, and the notice says what to type`, () =>
    on(pushed, async (built) => {
      const { found, said } = await asked(built, wants);
      assert.equal(found, undefined);
      assert.equal(said.length, 1);
      assert.match(said[0] ?? "", words);
    }));

const OLDER: readonly (readonly [string, Partial<Pushed>])[] = [
  ["lock files", { bases: { base: "sha256:another", stages: [] } }],
  ["the sandbox image", { sandbox: "harness-sandbox:another" }],
];

for (const [what, pushed] of OLDER)
  test(`after a change of ${what} the older environment is used with a notice, as in boxes of an engine`, () =>
    on(pushed, async (built) => {
      const { found, said } = await asked(built);
      assert.equal(found?.image, `${REGISTRY}@${DIGEST}`);
      assert.deepEqual(said, [
        `lock files or an image that it is built from have changed since, so the environment is out of date. Rebuild it: ${BUILD}`,
      ]);
    }));

test("the older environment is also used with a notice when the recipe has changed", () =>
  on({}, async (built) => {
    await built.place.write(
      ".config/harness/environments/own.json",
      JSON.stringify({ ...RECIPE, env: { A: "c" } }),
    );
    const { found, said } = await asked(built);
    assert.notEqual(found, undefined);
    assert.match(
      said.join("\n"),
      /^what the project needs has changed since it was built, .* Rebuild it: harness env build --env own$/,
    );
  }));

test("a custom image, no environment, and a folder without one cause no notice", () =>
  on({}, async (built) => {
    for (const wants of [{ image: "own:1" }, { env: "none" }, { env: null }])
      assert.deepEqual(await asked(built, wants), { found: undefined, said: [] });
    await assert.rejects(asked(built, { env: "other" }), {
      message: "the environment other is not built for this workspace",
      remedy: "harness env build --env other",
    });
  }));
