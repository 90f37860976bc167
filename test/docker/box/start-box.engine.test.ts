import assert from "node:assert/strict";
import { statSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import test from "node:test";
import { startBox } from "../../../src/docker/box/start-box.ts";
import { makeVolume, removeVolume } from "../../../src/docker/environments/environment-store.ts";
import { engine } from "../../fixtures/engine-api.ts";
import { image, ROOT, skip } from "../../fixtures/engine.ts";
import { giveAway } from "../../fixtures/give-away.ts";
import { scratch } from "../../fixtures/scratch.ts";

const SOURCES = '[source.crates-io]\nreplace-with = "own"\n';
const HOME = "/var/cache/harness/cargo";
const uid = process.getuid?.() ?? 0;
const OWNER = { uid: uid === 0 ? 1000 : uid, gid: uid === 0 ? 1000 : (process.getgid?.() ?? 0) };

/** What cargo's own folder holds in a box whose environment keeps its caches in a volume, and what is warned of. */
async function cargoIn(
  state: string,
): Promise<{ readonly said: string; readonly warned: readonly string[] }> {
  await using place = await scratch({ "work/.keep": "" });
  await giveAway(place.at("work"));
  const volume = `harness-test-cache-${process.pid}-${state.length}`;
  const stateDir = place.at(state);
  await makeVolume(engine, { id: volume, stateDir, name: volume, layer: null, image, owner: OWNER });
  await using _ = { [Symbol.asyncDispose]: () => removeVolume(engine, volume) };
  const warned: string[] = [];
  const onWarning = (text: string): void => void warned.push(text);
  const maker = { engine, root: ROOT, uid, home: place.at("home"), stateDir, onWarning };
  await using box = await startBox(
    maker,
    {
      workspace: place.at("work"),
      mode: "workspace-write",
      image: null,
      limits: { memory: 2 ** 28, cpus: null, pids: 64 },
      runtime: null,
      isolation: "bind",
      keep: null,
      watchChanges: false,
      network: { grants: [], files: { "cargo.toml": SOURCES }, trust: () => Promise.resolve("") },
      environment: {
        image: null,
        volumes: [{ volume, target: "/var/cache/harness" }],
        env: { CARGO_HOME: HOME },
        use: "run",
        services: [],
        notes: place.at("notes"),
      },
    },
    new AbortController().signal,
  );
  const words = ["sh", "-c", `cat ${HOME}/config.toml 2>&1; echo there > /tmp/there && cat /tmp/there`];
  const { stdout } = await box.exec(
    { words, timeoutMs: 30_000, keep: { head: 4096, tail: 0 } },
    AbortSignal.timeout(30_000),
  );
  return { said: Buffer.from(stdout.head).toString(), warned };
}

test("cargo in a box gets the user's sources in the environment's own cache", { skip }, async () => {
  assert.deepEqual(await cargoIn("state"), { said: `${SOURCES}there\n`, warned: [] });
});

test("a read-only cache is reported with the reason, and the box works otherwise", { skip }, async () => {
  // No layer can lie over a volume whose path, or that of the layer, has a comma in it.
  const { said, warned } = await cargoIn("state,of,commas");
  assert.match(said, /config\.toml: No such file.*\nthere\n$/);
  assert.equal(warned.length, 1, warned.join("\n"));
  assert.match(warned[0] ?? "", /^cargo in the box does not use your own sources: .*EROFS/);
});

/** A file system of its own for the state folder. */
const APART = "/dev/shm";
const isApart = (statSync(APART, { throwIfNoEntry: false })?.dev ?? 0) !== statSync(tmpdir()).dev;

test(
  "commands that fill an environment's volume are ended although the box's own folder lies on another disk",
  { skip: skip || (!isApart && `${APART} is not a file system of its own`) },
  async () => {
    await using place = await scratch({ "work/.keep": "" });
    await giveAway(place.at("work"));
    const stateDir = await mkdtemp(path.join(APART, "harness-test-"));
    await using _ = { [Symbol.asyncDispose]: () => rm(stateDir, { recursive: true, force: true }) };
    const volume = `harness-test-filled-${process.pid}`;
    await makeVolume(engine, { id: volume, stateDir, name: volume, layer: null, image, owner: OWNER });
    await using __ = { [Symbol.asyncDispose]: () => removeVolume(engine, volume) };
    const target = "/var/cache/harness";
    const environment = { image: null, volumes: [{ volume, target }], env: {}, services: [] };
    for (const [use, isolation] of [
      ["fill", "overlay"],
      ["run", "bind"],
    ] as const) {
      await using box = await startBox(
        { engine, root: ROOT, uid, home: place.at("home"), stateDir, onWarning: () => undefined },
        {
          workspace: place.at("work"),
          mode: "workspace-write",
          image: null,
          limits: { memory: 2 ** 29, cpus: null, pids: 64 },
          runtime: null,
          isolation,
          keep: null,
          watchChanges: false,
          environment: { ...environment, use, notes: place.at("notes") },
          budget: { growth: 2 ** 27, floor: 0, inodes: 0 },
        },
        new AbortController().signal,
      );
      const words = [
        "sh",
        "-c",
        `for i in $(seq 120); do head -c 8M /dev/zero >> ${target}/big; sleep 0.04; done`,
      ];
      const request = { words, timeoutMs: 60_000, keep: { head: 1000, tail: 0 } };
      const { cause } = await box.exec(request, AbortSignal.timeout(90_000));
      assert.equal(cause, "disk", use);
      const { exit_code } = await box.exec(
        { ...request, words: ["sh", "-c", `rm ${target}/big`] },
        AbortSignal.timeout(90_000),
      );
      assert.equal(exit_code, 0);
    }
  },
);
