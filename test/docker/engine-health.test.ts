import assert from "node:assert/strict";
import { statfs } from "node:fs/promises";
import test, { mock } from "node:test";
import { unhealthy, type Health, healthy } from "../../src/core/errors.ts";
import { type Engine, findEngine, isEngine, EnginePatience } from "../../src/docker/engine.ts";
import { diskHealth, engineHealth, readCheck, readInfo } from "../../src/docker/engine-health.ts";
import { imageExists } from "../../src/docker/box-image.ts";
import { removeBoxes } from "../../src/docker/box/box-list.ts";
import { scratch } from "../fixtures/scratch.ts";
import { onRequest, versionAnswer } from "./loopback.ts";
import { waited } from "../fixtures/waited.ts";

type Info = Parameters<typeof readInfo>[0];

const GOOD: Info = {
  Driver: "overlay2",
  CgroupVersion: "2",
  CgroupDriver: "systemd",
  MemoryLimit: true,
  PidsLimit: true,
  SecurityOptions: ["name=apparmor", "name=seccomp,profile=builtin", "name=cgroupns"],
};

const WELL: readonly Health[] = [
  { id: "storage", state: "ok", detail: "overlay2", remedy: "" },
  { id: "cgroup", state: "ok", detail: "version 2, driver systemd", remedy: "" },
  { id: "security", state: "ok", detail: "apparmor, seccomp, cgroupns", remedy: "" },
];

const LIMITS = "run the engine as root, or boot with cgroup v2 and systemd";

/** What differs from a good engine, and the check that says so. */
const ILL: Readonly<Record<string, readonly [Info, Health]>> = {
  "copies whole images": [
    { Driver: "vfs" },
    {
      id: "storage",
      state: "warn",
      detail: "vfs: every container copies its whole image",
      remedy: "put the engine's data on ext4, xfs or btrfs",
    },
  ],
  "cannot limit memory": [
    { MemoryLimit: false },
    unhealthy("cgroup", "version 2, driver systemd: no limit on memory can be set", LIMITS),
  ],
  "cannot limit processes": [
    { PidsLimit: false },
    unhealthy("cgroup", "version 2, driver systemd: no limit on pids can be set", LIMITS),
  ],
  "can limit nothing": [
    { MemoryLimit: false, PidsLimit: false, CgroupVersion: "1", CgroupDriver: "none" },
    unhealthy("cgroup", "version 1, driver none: no limit on memory and pids can be set", LIMITS),
  ],
  "has no seccomp": [
    { SecurityOptions: ["name=apparmor"] },
    unhealthy("security", "the engine has no seccomp", "use an engine and a kernel with seccomp"),
  ],
  "has no security options": [
    { SecurityOptions: null },
    unhealthy("security", "the engine has no seccomp", "use an engine and a kernel with seccomp"),
  ],
  "has only seccomp": [
    { SecurityOptions: ["name=seccomp,profile=default"] },
    healthy("security", "seccomp; no AppArmor or SELinux"),
  ],
  "has SELinux": [
    { SecurityOptions: ["name=selinux", "name=seccomp"] },
    healthy("security", "selinux, seccomp"),
  ],
  "names its options in the old way": [
    { SecurityOptions: ["seccomp", "apparmor"] },
    healthy("security", "seccomp, apparmor"),
  ],
  "has btrfs": [{ Driver: "btrfs" }, healthy("storage", "btrfs")],
};

test("a good engine passes all three checks", () => {
  assert.deepEqual(readInfo(GOOD), WELL);
});

for (const [name, [info, check]] of Object.entries(ILL))
  test(`an engine that ${name} differs in one check`, () => {
    const expected = WELL.map((row) => (row.id === check.id ? check : row));
    assert.deepEqual(readInfo({ ...GOOD, ...info }), expected);
  });

test("an engine without information does not pass", () => {
  assert.deepEqual(
    readInfo({}).map(({ id, state }) => [id, state]),
    [
      ["storage", "ok"],
      ["cgroup", "ok"],
      ["security", "fail"],
    ],
  );
});

function engineOf(api: string, info: Info, components: readonly object[] | undefined): Engine {
  const answers = {
    info: () => Promise.resolve(info),
    version: () => Promise.resolve({ Components: components }),
  };
  return {
    api: answers as unknown as Engine["api"],
    endpoint: { host: "unix:///e.sock", origin: "usual socket" },
    version: { name: "Docker", version: "28.1.0", api, arch: "amd64" },
    patience: new EnginePatience(),
  };
}

test("the checks of an engine start with its version and its runtime", async () => {
  const info = { ...GOOD, DefaultRuntime: "crun", Runtimes: { crun: {}, runsc: {} } };
  assert.deepEqual(await engineHealth(engineOf("1.49", info, [{ Name: "crun", Version: "1.20" }])), [
    healthy("engine", "Docker 28.1.0, API 1.49, at unix:///e.sock"),
    healthy("runtime", "crun 1.20; gVisor is there"),
    ...WELL,
  ]);
});

test("an engine without runtime and components has a runtime of unknown version", async () => {
  const [, runtime] = await engineHealth(engineOf("1.49", GOOD, undefined));
  assert.deepEqual(runtime, healthy("runtime", "runc version unknown; no gVisor"));
});

const APIS: Readonly<Record<string, Health["state"]>> = {
  "1.41": "ok",
  "1.52": "ok",
  "2.0": "ok",
  "1.40": "fail",
  "1.24": "fail",
  "": "fail",
  nonsense: "fail",
};

for (const [api, state] of Object.entries(APIS))
  test(`an engine of API ${JSON.stringify(api)} is ${state === "ok" ? "new enough" : "too old"}`, async () => {
    const [engine] = await engineHealth(engineOf(api, GOOD, []));
    assert.deepEqual([engine?.id, engine?.state], ["engine", state]);
  });

test("API versions are compared as two numbers, not as fractions", async () => {
  const states = await Promise.all(
    ["1.5", "1.9", "1.100"].map(async (api) => (await engineHealth(engineOf(api, GOOD, [])))[0]?.state),
  );
  assert.deepEqual(states, ["fail", "fail", "ok"]);
});

test("a folder that does not exist yet is judged by its nearest parent", async () => {
  await using place = await scratch();
  const here = await diskHealth("disk", place.path);
  const below = await diskHealth("disk", place.at("not", "yet"));
  assert.deepEqual(below, here);
  const { bavail, bsize } = await statfs(place.path);
  const free = (bavail * bsize) / 2 ** 30;
  assert.equal(here.state, free < 1 ? "fail" : free < 5 ? "warn" : "ok");
  assert.ok(here.detail.endsWith(` free in ${place.path}`), here.detail);
});

/** An engine that said its version and nothing since, as one does whose daemon hangs. */
async function hanging(work: (engine: Engine, silence: () => Promise<void>) => Promise<void>): Promise<void> {
  const asked = Promise.withResolvers<void>();
  const answer = versionAnswer(200, '{"Version": "28.1.0", "ApiVersion": "1.49", "Arch": "amd64"}');
  await using loopback = await onRequest((request, response) => {
    if (request.url === "/version") answer(request, response);
    else asked.resolve();
  });
  const engine = await findEngine({ DOCKER_HOST: loopback.host }, 0);
  assert.ok(isEngine(engine));
  await work(engine, async () => {
    await asked.promise;
    waited(mock.timers, 10_000);
  });
}

const ASKED: Readonly<Record<string, (engine: Engine) => Promise<unknown>>> = {
  "its description": engineHealth,
  "an image": (engine) => imageExists(engine, "debian:bookworm"),
  "its boxes": (engine) => removeBoxes(engine, 0),
};

for (const [what, ask] of Object.entries(ASKED))
  test(`an engine that hangs when asked for ${what} is given up after ten seconds`, async (context) => {
    await hanging(async (engine, silence) => {
      mock.timers.enable({ apis: ["setTimeout"] });
      context.after(() => mock.timers.reset());
      await Promise.all([assert.rejects(ask(engine), /no answer within 10 s/), silence()]);
    });
  });

const CHECKS: Readonly<
  Record<string, readonly [stdout: string, exit_code: number | null, missing: readonly string[]]>
> = {
  "with all": ["v24.21.0\nready\n", 0, []],
  "without node": ["no node\nready\n", 0, []],
  "without a shell": ["no sh\nready\n", 0, ["sh"]],
  "whose node does not run": ["ready\n", 0, []],
  "whose sh says nothing": ["", 0, ["a sh that works"]],
  "whose sh never ends": ["", null, ["a sh that ends within 30 s"]],
};

for (const [name, [stdout, exit_code, missing]] of Object.entries(CHECKS))
  test(`an image ${name} lacks ${missing.join() || "nothing"}`, () => {
    assert.deepEqual(readCheck({ stdout, exit_code }).missing, missing);
  });
