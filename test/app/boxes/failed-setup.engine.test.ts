import assert from "node:assert/strict";
import test from "node:test";
import { buildEnvironment, type BuiltEnvironment } from "../../../src/app/boxes/environment-build.ts";
import { requireEngine } from "../../../src/app/boxes/box-access.ts";
import { environmentFor } from "../../../src/app/boxes/workspace-environment.ts";
import { ownEnvironments, removeEnvironments } from "../../../src/app/boxes/own-boxes.ts";
import { hostFrom } from "../../../src/app/host.ts";
import { DEFAULTS } from "../../../src/config/settings-schema.ts";
import { EXIT, HarnessError } from "../../../src/core/errors.ts";
import { skip } from "../../fixtures/engine.ts";
import { giveAway } from "../../fixtures/give-away.ts";
import { scratch } from "../../fixtures/scratch.ts";

interface Built {
  readonly how: string;
  readonly record?: BuiltEnvironment["record"];
  readonly fault?: HarnessError | undefined;
  readonly notes: readonly string[];
  readonly steps: readonly string[];
}

async function building(files: Readonly<Record<string, string>>, env: string | null, times = 1) {
  await using place = await scratch({ "work/.keep": "", ...files });
  await giveAway(place.at("work"));
  const host = hostFrom({ HOME: place.path, PATH: process.env["PATH"] });
  const settings = { ...DEFAULTS, env };
  const all: Built[] = [];
  const notes: string[] = [];
  try {
    for (let time = 0; time < times; time += 1) all.push(await once());
    const [engine, warn] = [
      await requireEngine(host, AbortSignal.timeout(20_000)),
      (text: string): void => void notes.push(text),
    ];
    await environmentFor(engine, { host, settings, workspace: place.at("work"), warn }).catch(
      () => undefined,
    );
    return { all, notes };
  } finally {
    const made = await ownEnvironments(host);
    await removeEnvironments(
      host,
      made.map(({ id }) => id),
    );
  }

  async function once(): Promise<Built> {
    const [said, steps]: [string[], string[]] = [[], []];
    const wanted = {
      host,
      settings,
      workspace: place.at("work"),
      rebuild: false,
      onStep: ({ title }: { readonly title: string }) => void steps.push(title),
      onOutput: () => undefined,
      warn: (text: string) => void said.push(text),
    };
    try {
      const { record, how, partly } = await buildEnvironment(wanted, AbortSignal.timeout(240_000));
      return { record, how, fault: partly, notes: said, steps };
    } catch (thrown) {
      assert.ok(thrown instanceof HarnessError, String(thrown));
      return { how: "failed", fault: thrown, notes: said, steps };
    }
  }
}

/** A project that npm installs without a registry. */
const project = (folder: string): Readonly<Record<string, string>> => ({
  [`work/${folder}/package.json`]: '{"name":"p","version":"1.0.0","dependencies":{"own":"file:own"}}',
  [`work/${folder}/own/package.json`]: '{"name":"own","version":"1.0.0"}',
  [`work/${folder}/package-lock.json`]: JSON.stringify({
    name: "p",
    version: "1.0.0",
    lockfileVersion: 3,
    packages: {
      "": { name: "p", version: "1.0.0", dependencies: { own: "file:own" } },
      "node_modules/own": { resolved: "own", link: true },
      own: { version: "1.0.0" },
    },
  }),
});
/** Its lock file contradicts it. */
const contradictory = (folder: string): Readonly<Record<string, string>> => ({
  ...project(folder),
  [`work/${folder}/package.json`]:
    '{"name":"p","version":"1.0.0","dependencies":{"own":"file:own","b":"file:b"}}',
});

test(
  "a project that cannot be set up does not stop the others; the build fails, is not complete, and begins anew",
  { skip },
  async () => {
    const { all, notes } = await building({ ...contradictory("api"), ...project("web") }, null, 2);
    for (const { how, record, fault, steps } of all) {
      assert.equal(how, "built");
      assert.deepEqual(steps, ["npm ci --ignore-scripts (in api)", "npm ci --ignore-scripts (in web)"]);
      assert.deepEqual(record?.failed, ["npm ci --ignore-scripts (in api)"]);
      assert.ok(record?.volumes.some(({ target }) => target.endsWith("/web/node_modules")));
      assert.equal(fault?.exit, EXIT.failed);
      assert.match(fault.message, /^set-up failed: npm ci --ignore-scripts \(in api\)/);
      assert.match(fault.message, /lock file/);
      assert.match(fault.message, /\nthe environment has what the other projects need$/);
      assert.match(fault.remedy, /harness env build$/);
    }
    assert.deepEqual(notes, [
      "the environment lacks what failed to install (npm ci --ignore-scripts (in api)). Build it again: harness env build",
    ]);
  },
);

test(
  "if no project can be set up, there is no environment, and each failure is shown",
  { skip },
  async () => {
    const { all } = await building({ ...contradictory("api"), ...contradictory("web") }, null);
    const [built] = all;
    assert.equal(built?.how, "failed");
    assert.match(built.fault?.message ?? "", /\(in api\)[^]*\(in web\)/);
    assert.match(built.fault?.remedy ?? "", /harness env build, which continues there$/);
  },
);

const ownRecipe = (value: object): Readonly<Record<string, string>> => ({
  ".config/harness/environments/own.json": JSON.stringify(value),
});

test("steps of a recipe build on each other, and one that may fail is reported", { skip }, async () => {
  const recipe = { setup: [{ run: "echo no compiler; exit 3", optional: true }, { run: "true" }] };
  const { all } = await building(ownRecipe(recipe), "own");
  assert.equal(all[0]?.how, "built");
  assert.equal(all[0].fault, undefined);
  assert.match(
    all[0].notes.join(),
    /^set-up failed: echo no compiler; exit 3 \(exit code 3\)\n {4}no compiler\nthe environment is kept without this step$/,
  );
  const strict = { setup: [{ run: "exit 3", folder: "." }, { run: "true" }] };
  const second = await building(ownRecipe(strict), "own");
  assert.equal(second.all[0]?.how, "failed");
  assert.deepEqual(second.all[0].steps, ["exit 3"]);
});
