import assert from "node:assert/strict";
import test from "node:test";
import { MODES } from "../../../src/core/decision.ts";
import { inspectedDifferences, type Inspected } from "../../../src/docker/box/container-check.ts";
import type { BoxPlan } from "../../../src/docker/container-spec.ts";
import { BOXES, boxPlan } from "../../fixtures/boxes.ts";

const PLAN = boxPlan("workspace-write");

interface Container {
  HostConfig: Record<string, unknown>;
  Config: Record<string, unknown>;
  Mounts: unknown[];
  [field: string]: unknown;
}

/** The captured container after somebody changed it. */
function changed(change: (container: Container) => void): Inspected {
  const copy = structuredClone(BOXES["workspace-write"].inspected) as unknown as Container;
  change(copy);
  return copy;
}

const changedHost = (name: string, value: unknown): Inspected =>
  changed(({ HostConfig }) => (HostConfig[name] = value));
const changedConfig = (name: string, value: unknown): Inspected =>
  changed(({ Config }) => (Config[name] = value));

for (const mode of MODES)
  test(`what the engine makes of a ${mode} plan is the plan`, () => {
    assert.deepEqual(inspectedDifferences(boxPlan(mode), BOXES[mode].inspected), []);
  });

test("the container of one mode is none of another mode", () => {
  for (const planned of MODES)
    for (const made of MODES)
      assert.equal(
        inspectedDifferences(boxPlan(planned), BOXES[made].inspected).length > 0,
        planned !== made,
      );
});

const socket = { Type: "bind", Source: "/var/run/docker.sock", Target: "/s", ReadOnly: true };

const HOST: Readonly<Record<string, unknown>> = {
  Binds: ["/:/host"],
  Mounts: [socket],
  CapAdd: ["SYS_ADMIN"],
  CapDrop: [],
  Privileged: true,
  Devices: [{ PathOnHost: "/dev/sda", PathInContainer: "/dev/sda", CgroupPermissions: "rwm" }],
  DeviceRequests: [{ Driver: "", Count: -1, Capabilities: [["gpu"]] }],
  DeviceCgroupRules: ["a *:* rwm"],
  VolumesFrom: ["other"],
  ExtraHosts: ["host.docker.internal:host-gateway"],
  GroupAdd: ["docker"],
  Links: ["/other:/sandbox/other"],
  SecurityOpt: ["seccomp=unconfined"],
  ReadonlyRootfs: false,
  NetworkMode: "host",
  PidMode: "host",
  IpcMode: "host",
  UTSMode: "host",
  UsernsMode: "host",
  CgroupnsMode: "host",
  CgroupParent: "/elsewhere",
  Runtime: "nvidia",
  MaskedPaths: [],
  ReadonlyPaths: null,
  Memory: 0,
  MemorySwap: -1,
  PidsLimit: null,
  NanoCpus: 0,
  OomKillDisable: true,
  Ulimits: [],
  Sysctls: { "net.ipv4.ip_forward": "1" },
  Tmpfs: null,
  PortBindings: { "80/tcp": [{ HostPort: "80" }] },
  PublishAllPorts: true,
  Dns: null,
  LogConfig: { Type: "json-file", Config: {} },
  RestartPolicy: { Name: "always" },
  SomethingNew: { Enabled: true },
};

for (const [name, value] of Object.entries(HOST))
  test(`another ${name} is one line that names it`, () => {
    const lines = inspectedDifferences(PLAN, changedHost(name, value));
    assert.equal(lines.length, 1, lines.join("\n"));
    assert.ok(lines[0]?.startsWith(`HostConfig.${name} is `), lines[0]);
  });

const CONFIG: Readonly<Record<string, unknown>> = {
  User: "0:0",
  Tty: true,
  OpenStdin: true,
  Entrypoint: ["sh"],
  Cmd: ["more"],
  WorkingDir: "/srv/repo",
  Hostname: "host",
  Domainname: "corp",
  NetworkDisabled: true,
  Volumes: { "/data": {} },
  Healthcheck: { Test: ["CMD", "sh"] },
  MacAddress: "02:42:ac:11:00:02",
  Image: "other",
};

for (const [name, value] of Object.entries(CONFIG))
  test(`another ${name} of the configuration is one line that names it`, () => {
    const lines = inspectedDifferences(PLAN, changedConfig(name, value));
    assert.equal(lines.length, 1, lines.join("\n"));
    assert.ok(lines[0]?.startsWith(`Config.${name} is `), lines[0]);
  });

const withEnv = (...more: readonly string[]): Inspected =>
  changed(({ Config }) => (Config["Env"] = [...(Config["Env"] as string[]), ...more]));

test("variables of the image may stay unless they decide what programs load", () => {
  assert.deepEqual(
    inspectedDifferences(PLAN, withEnv("NODE_VERSION=24.1.0", "GOPATH=/go", "PYTHONUNBUFFERED=1")),
    [],
  );
  for (const name of [
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "NODE_OPTIONS",
    "NODE_PATH",
    "BASH_ENV",
    "ENV",
    "GIT_DIR",
  ])
    assert.deepEqual(inspectedDifferences(PLAN, withEnv(`${name}=/x`)), [
      `the image sets ${name}, which decides what programs load: use another image`,
    ]);
});

const env = (Config: Record<string, unknown>): string[] => Config["Env"] as string[];

test("our own variables are there, once, as planned", () => {
  assert.deepEqual(inspectedDifferences(PLAN, withEnv("HOME=/root")), ["Config.Env has HOME more than once"]);
  const other = changed(
    ({ Config }) => (Config["Env"] = env(Config).map((one) => one.replace(/^CI=1$/, "CI=2"))),
  );
  assert.deepEqual(inspectedDifferences(PLAN, other), ["Config.Env lacks CI=1"]);
  assert.equal(inspectedDifferences(PLAN, changedConfig("Env", null)).length, 8);
});

test("words of the image without effect are no deviation", () => {
  const image = changed(({ Config }) => {
    Object.assign(Config, {
      ExposedPorts: { "80/tcp": {} },
      StopSignal: "SIGQUIT",
      Shell: ["bash"],
      OnBuild: ["x"],
    });
    Config["Healthcheck"] = { Test: ["NONE"], Interval: 30 };
    Config["Labels"] = { ...(Config["Labels"] as object), vendor: "x" };
  });
  assert.deepEqual(inspectedDifferences(PLAN, image), []);
});

const git = (Mounts: unknown[]): { Destination: string; RW: boolean } | undefined =>
  (Mounts as { Destination: string; RW: boolean }[]).find(({ Destination }) => Destination.endsWith("/.git"));

test("a mount that the engine adds, drops or opens is named with both its ends", () => {
  const volume = { Type: "volume", Name: "abc", Source: "/v/abc/_data", Destination: "/data", RW: true };
  assert.deepEqual(
    inspectedDifferences(
      PLAN,
      changed(({ Mounts }) => Mounts.push(volume)),
    ),
    ['mounted but not planned: volume "abc" at "/data", writable'],
  );
  const opened = changed(({ Mounts }) => Object.assign(git(Mounts) ?? {}, { RW: true }));
  assert.deepEqual(inspectedDifferences(PLAN, opened), [
    'not mounted: bind "/srv/repo/.git" at "/srv/repo/.git", read-only',
    'mounted but not planned: bind "/srv/repo/.git" at "/srv/repo/.git", writable',
  ]);
  assert.equal(
    inspectedDifferences(
      PLAN,
      changed((container) => (container.Mounts = [])),
    ).length,
    5,
  );
});

test("labels, image and command are those of the plan, and nothing else was begun", () => {
  const lines = (value: Partial<Container>, plan: Partial<BoxPlan> = {}): readonly string[] =>
    inspectedDifferences(
      { ...PLAN, ...plan },
      changed((container) => void Object.assign(container, value)),
    );
  assert.deepEqual(inspectedDifferences(PLAN, changedConfig("Labels", { "dev.harness.box": "1" })), [
    'Config.Labels.dev.harness.uid is nothing, planned "64322"',
  ]);
  assert.deepEqual(lines({ Path: "bash" }), ['it would run ["bash","-c","true"]']);
  assert.deepEqual(lines({ ExecIDs: ["1"] }), ["something else was started in it"]);
  assert.deepEqual(lines({ NetworkSettings: { Networks: { bridge: {} } } }), [
    "a network was joined: bridge",
  ]);
  assert.deepEqual(lines({ AppArmorProfile: "mine" }), ['AppArmorProfile is "mine"']);
  const pinned = changed((container) => void Object.assign(container, { Image: "sha256:1" }));
  assert.deepEqual(
    inspectedDifferences({ ...PLAN, image: "sha256:2" }, pinned).filter((line) => line.startsWith("Image")),
    ['Image is "sha256:1", planned sha256:2'],
  );
});

test("an answer that is no container is a deviation in every respect", () => {
  assert.ok(inspectedDifferences(PLAN, {}).length > 30);
});
