import assert from "node:assert/strict";
import test from "node:test";
import { isInside } from "../../src/core/file-names.ts";
import { fc } from "../fixtures/property.ts";
import { MODES } from "../../src/core/decision.ts";
import { type BoxPlan, containerSpec } from "../../src/docker/container-spec.ts";

const MiB = 2 ** 20;

const PLAN: BoxPlan = {
  image: "harness-sandbox:0123456789ab",
  argv: ["node", "/runner.js"],
  mode: "workspace-write",
  user: { uid: 1000, gid: 100 },
  workspace: { path: "/home/me/my repo" },
  readOnly: ["/home/me/my repo/.git", "/home/me/my repo/a/.vscode"],
  pinned: ["/home/me/my repo/a"],
  volumes: [{ volume: "runner", target: "/opt/runner" }],
  limits: { memory: 512 * MiB, cpus: null, pids: 128 },
  host: { cpus: 4, apparmor: false, runtime: null },
  seccomp: '{"defaultAction":"SCMP_ACT_ERRNO"}',
  stdin: true,
  labels: { "dev.harness.box": "0", "dev.harness.uid": "1000" },
};

const bind = (path: string, readOnly: boolean): object => ({
  Type: "bind",
  Source: path,
  Target: path,
  ReadOnly: readOnly,
  BindOptions: { Propagation: "rprivate", NonRecursive: true },
});

const volume = (name: string, target: string, readOnly: boolean): object => ({
  Type: "volume",
  Source: name,
  Target: target,
  ReadOnly: readOnly,
  VolumeOptions: { NoCopy: true },
});

const [REPO, GIT, EDITOR, FOLDER] = [
  "/home/me/my repo",
  "/home/me/my repo/.git",
  "/home/me/my repo/a/.vscode",
  "/home/me/my repo/a",
];
const RUNNER = volume("runner", "/opt/runner", true);
const NO_NETWORK = { NetworkMode: "none", Dns: ["127.0.0.1"], DnsSearch: ["."] };

const MASKED =
  "/proc/asound /proc/acpi /proc/kcore /proc/keys /proc/key-users /proc/latency_stats /proc/pressure /proc/timer_list /proc/timer_stats " +
  "/proc/sched_debug /proc/scsi /proc/cmdline /proc/partitions /proc/diskstats /proc/interrupts " +
  "/proc/kallsyms /sys/firmware /sys/block /sys/module /sys/kernel /sys/class/dmi " +
  "/sys/devices/virtual/dmi /sys/devices/virtual/powercap";

/** The whole container; what depends on the mode is all that differs. */
const container = (mounts: readonly object[], host: object): object => ({
  Image: "harness-sandbox:0123456789ab",
  Entrypoint: ["node", "/runner.js"],
  Cmd: [],
  User: "1000:100",
  WorkingDir: "/",
  Env: [
    "PATH=/usr/local/lib/harness/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME=/home/box",
    "LANG=C.UTF-8",
    "TERM=dumb",
    "CI=1",
    "GIT_TERMINAL_PROMPT=0",
    "GIT_OPTIONAL_LOCKS=0",
    "GIT_CONFIG_GLOBAL=/dev/null",
  ],
  Hostname: "sandbox",
  NetworkDisabled: false,
  AttachStdin: true,
  AttachStdout: true,
  AttachStderr: true,
  OpenStdin: true,
  StdinOnce: true,
  Tty: false,
  StopTimeout: 1,
  Healthcheck: { Test: ["NONE"] },
  Labels: { "dev.harness.box": "1", "dev.harness.uid": "1000" },
  HostConfig: {
    ...host,
    IpcMode: "private",
    PidMode: "",
    UTSMode: "",
    UsernsMode: "",
    CgroupnsMode: "private",
    CapDrop: ["ALL"],
    Privileged: false,
    SecurityOpt: ["no-new-privileges", 'seccomp={"defaultAction":"SCMP_ACT_ERRNO"}'],
    MaskedPaths: MASKED.split(" "),
    ReadonlyPaths: ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"],
    Tmpfs: {
      "/tmp": "rw,nosuid,nodev,exec,size=134217728,nr_inodes=100000,uid=1000,gid=100,mode=1777",
      "/home/box": "rw,nosuid,nodev,exec,size=67108864,nr_inodes=100000,uid=1000,gid=100,mode=0700",
      "/run": "rw,nosuid,nodev,noexec,size=4194304,nr_inodes=1000,uid=1000,gid=100,mode=0755",
    },
    ShmSize: 32 * MiB,
    Mounts: mounts,
    Memory: 512 * MiB,
    MemorySwap: 512 * MiB,
    NanoCpus: 3_750_000_000,
    CpuShares: 512,
    PidsLimit: 128,
    OomScoreAdj: 500,
    Ulimits: [
      { Name: "nofile", Soft: 4096, Hard: 4096 },
      { Name: "core", Soft: 0, Hard: 0 },
      { Name: "fsize", Soft: 4 * 2 ** 30, Hard: 4 * 2 ** 30 },
      { Name: "memlock", Soft: 65_536, Hard: 65_536 },
      { Name: "msgqueue", Soft: 0, Hard: 0 },
    ],
    Sysctls: { "kernel.shm_rmid_forced": "1", "kernel.msgmni": "32", "kernel.sem": "250 32000 32 128" },
    LogConfig: { Type: "none", Config: {} },
    RestartPolicy: { Name: "no" },
    AutoRemove: true,
  },
});

test("workspace-write is exactly this container: protected paths read-only, ancestors pinned", () => {
  const mounts = [bind(REPO, false), bind(FOLDER, false), bind(GIT, true), bind(EDITOR, true), RUNNER];
  assert.deepEqual(containerSpec(PLAN), container(mounts, { ...NO_NETWORK, ReadonlyRootfs: true }));
});

test("read-only is the same container with nothing of the workspace writable", () => {
  const mounts = [bind(REPO, true), bind(GIT, true), bind(EDITOR, true), RUNNER];
  const spec = containerSpec({ ...PLAN, mode: "read-only" });
  assert.deepEqual(spec, container(mounts, { ...NO_NETWORK, ReadonlyRootfs: true }));
});

test("danger-full-access opens the workspace, the root file system and the network, and nothing else", () => {
  const spec = containerSpec({ ...PLAN, mode: "danger-full-access" });
  const host = { NetworkMode: "bridge", ReadonlyRootfs: false };
  assert.deepEqual(spec, container([bind(REPO, false), RUNNER], host));
});

test("a granted network adds one read-only folder and an argument for the runner, and no interface", () => {
  const without = containerSpec({ ...PLAN, lease: true });
  const spec = containerSpec({
    ...PLAN,
    lease: true,
    network: { folder: "/run/harness/net/boxes/0123/box" },
  });
  const way = { ...bind("/run/harness", true), Source: "/run/harness/net/boxes/0123/box" };
  assert.deepEqual(spec, {
    ...without,
    Entrypoint: ["node", "/runner.js", "lease", "network"],
    HostConfig: { ...without.HostConfig, Mounts: [...(without.HostConfig.Mounts ?? []), way] },
  });
  assert.equal(spec.HostConfig.NetworkMode, "none");
  // Where no folder of this machine can be mounted, there is the word alone.
  const relayed = { folder: "/run/harness/far/boxes/0123/box", relayed: true as const };
  assert.deepEqual(containerSpec({ ...PLAN, lease: true, network: relayed }), {
    ...without,
    Entrypoint: ["node", "/runner.js", "lease", "network"],
  });
});

const mountsOf = (plan: Partial<BoxPlan>): unknown =>
  containerSpec({ ...PLAN, volumes: [], ...plan }).HostConfig.Mounts;

test("a workspace in a volume is mounted at the workspace's own path", () => {
  const workspace = { path: REPO, volume: "copy" };
  assert.deepEqual(mountsOf({ workspace, readOnly: [], pinned: [] }), [volume("copy", REPO, false)]);
  assert.deepEqual(mountsOf({ workspace, readOnly: [], pinned: [], mode: "read-only" }), [
    volume("copy", REPO, true),
  ]);
});

test("a workspace that is itself protected is read-only, and pinning makes nothing protected writable", () => {
  assert.deepEqual(mountsOf({ readOnly: [REPO], pinned: [FOLDER] }), [bind(REPO, true)]);
  assert.deepEqual(mountsOf({ readOnly: [FOLDER], pinned: [FOLDER, `${FOLDER}/b`, REPO] }), [
    bind(REPO, false),
    bind(FOLDER, true),
  ]);
});

test("AppArmor, another runtime and swappiness are used if the host has them, and its cores are never all taken", () => {
  const of = (
    host: BoxPlan["host"],
    cpus: number | null = null,
  ): ReturnType<typeof containerSpec>["HostConfig"] =>
    containerSpec({ ...PLAN, host, limits: { ...PLAN.limits, cpus } }).HostConfig;
  const rich = of({ cpus: 1, apparmor: true, runtime: "runsc", swappiness: true });
  assert.deepEqual(
    [rich.SecurityOpt, rich.Runtime, rich.MemorySwappiness, rich.NanoCpus],
    [["no-new-privileges", `seccomp=${PLAN.seccomp}`, "apparmor=docker-default"], "runsc", 0, 937_500_000],
  );
  assert.equal(of(PLAN.host, 1.25).NanoCpus, 1_250_000_000);
  assert.deepEqual(
    [2, 3, 4, 8, 16].map((cpus) => of({ ...PLAN.host, cpus }).NanoCpus),
    [1_875_000_000, 2_812_500_000, 3_750_000_000, 7_500_000_000, 15_500_000_000],
  );
});

test("a container that only inspects its image has no mount and no standard input, and is not removed by itself", () => {
  const { workspace: _, ...rest } = PLAN;
  const spec = containerSpec({ ...rest, volumes: [], stdin: false });
  const { OpenStdin, StdinOnce, AttachStdin, HostConfig } = spec;
  assert.deepEqual([OpenStdin, StdinOnce, AttachStdin, HostConfig.Mounts], [false, false, false, []]);
  assert.equal(HostConfig.AutoRemove, false);
});

const folder = fc
  .array(fc.constantFrom("a", "b", ".git"), { maxLength: 4 })
  .map((parts) => ["/w", ...parts].join("/"));

const plans: fc.Arbitrary<BoxPlan> = fc.record({
  image: fc.string(),
  argv: fc.array(fc.string()),
  mode: fc.constantFrom(...MODES),
  user: fc.record({ uid: fc.nat(), gid: fc.nat() }),
  workspace: fc.oneof(
    fc.constant({ path: "/w" }),
    fc.string({ minLength: 1 }).map((volume) => ({ path: "/w", volume })),
  ),
  readOnly: fc.array(folder),
  pinned: fc.array(folder),
  volumes: fc.array(fc.record({ volume: fc.string(), target: fc.string() }), { maxLength: 2 }),
  limits: fc.record({
    memory: fc.integer({ min: 64 * MiB, max: 2 ** 42 }),
    cpus: fc.option(fc.double({ min: 0.1, max: 64, noNaN: true })),
    pids: fc.integer({ min: 16, max: 4_000_000 }),
  }),
  host: fc.record({
    cpus: fc.integer({ min: 1, max: 256 }),
    apparmor: fc.boolean(),
    runtime: fc.constant(null),
  }),
  seccomp: fc.json(),
  stdin: fc.boolean(),
  labels: fc.dictionary(fc.string(), fc.string()),
});

/** What would open the box, whatever its value. */
const OPENERS = [
  "CapAdd",
  "Devices",
  "DeviceRequests",
  "DeviceCgroupRules",
  "Binds",
  "VolumesFrom",
  "GroupAdd",
];
const MORE_OPENERS = [
  "ExtraHosts",
  "Links",
  "PortBindings",
  "PublishAllPorts",
  "CgroupParent",
  "StorageOpt",
  "Init",
];

test("no plan opens the box", () => {
  const ENV = containerSpec(PLAN).Env;
  fc.assert(
    fc.property(plans, (plan) => {
      const { HostConfig, ...config } = containerSpec(plan);
      for (const name of [...OPENERS, ...MORE_OPENERS]) assert.equal(name in HostConfig, false, name);
      assert.deepEqual([HostConfig.Privileged, HostConfig.CapDrop], [false, ["ALL"]]);
      assert.deepEqual([config.Env, config.WorkingDir, config.Tty, config.Cmd], [ENV, "/", false, []]);
      assert.equal(config.Labels?.["dev.harness.box"], "1");
      assert.equal(config.NetworkDisabled, false);
      assert.equal(HostConfig.NetworkMode, plan.mode === "danger-full-access" ? "bridge" : "none");
      assert.ok((HostConfig.SecurityOpt as string[]).includes(`seccomp=${plan.seccomp}`));
    }),
  );
});

test("the engine's network is disabled where the hosts file is ours, except for Podman and full access", () => {
  const disabled = (more: Partial<BoxPlan>): unknown =>
    containerSpec({ ...PLAN, hosts: "/kept/hosts", ...more }).NetworkDisabled;
  assert.equal(disabled({}), true);
  assert.equal(disabled({ mode: "read-only" }), true);
  assert.equal(disabled({ mode: "danger-full-access" }), false);
  assert.equal(disabled({ host: { ...PLAN.host, podman: { rootless: false } } }), false);
  const mounts = containerSpec({ ...PLAN, hosts: "/kept/hosts" }).HostConfig.Mounts ?? [];
  assert.deepEqual(
    mounts.filter(({ Target }) => Target === "/etc/hosts").map(({ Source, ReadOnly }) => [Source, ReadOnly]),
    [["/kept/hosts", true]],
  );
});

test("no plan mounts anything it does not name, and no protected path is below a later writable mount", () => {
  fc.assert(
    fc.property(plans, (plan) => {
      const mounts = containerSpec(plan).HostConfig.Mounts ?? [];
      const bound = mounts.filter(({ Type }) => Type === "bind");
      for (const { Source, Target } of bound) {
        assert.equal(Source, Target);
        assert.ok(["/w", ...plan.readOnly, ...plan.pinned].includes(Target), Target);
      }
      assert.equal(new Set(bound.map(({ Target }) => Target)).size, bound.length, "no path twice");
      if (plan.mode === "danger-full-access") return;
      const inWorkspace = mounts.slice(0, mounts.length - plan.volumes.length);
      for (const path of plan.readOnly) {
        const over = inWorkspace.filter(({ Target }) => isInside(path, Target));
        assert.ok(over.length > 0 && over.every(({ ReadOnly }) => ReadOnly === true), path);
      }
      if (plan.mode === "read-only") assert.ok(mounts.every(({ ReadOnly }) => ReadOnly === true));
    }),
  );
});

test("files in memory take less than half of the memory, whatever the limit", () => {
  fc.assert(
    fc.property(plans, (plan) => {
      const { Tmpfs, ShmSize = 0, Memory = 0, MemorySwap } = containerSpec(plan).HostConfig;
      const sizes = Object.values(Tmpfs ?? {}).map((options) => Number(/size=(\d+)/.exec(options)?.[1]));
      assert.ok(sizes.reduce((sum, size) => sum + size, ShmSize) < Memory / 2);
      assert.equal(MemorySwap, Memory);
    }),
  );
});

test("changes of the caller's objects do not affect the container", () => {
  const argv = ["sh"];
  const labels = { mine: "1" };
  const spec = containerSpec({ ...PLAN, argv, labels });
  argv.push("-c");
  labels.mine = "2";
  assert.deepEqual([spec.Entrypoint, spec.Labels], [["sh"], { mine: "1", "dev.harness.box": "1" }]);
});
