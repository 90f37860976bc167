import assert from "node:assert/strict";
import test from "node:test";
import * as fc from "fast-check";
import { type BoxPlan, containerSpec } from "../../src/docker/spec.ts";

const MiB = 2 ** 20;

const PLAN: BoxPlan = {
  image: "harness-sandbox:0123456789ab",
  argv: ["sh", "-c", "exit 0"],
  memory: 512 * MiB,
  pids: 128,
  labels: { "dev.harness.box": "0", "dev.harness.uid": "1000" },
};

const workspace = (writable: boolean): BoxPlan["workspace"] => ({
  path: "/home/me/my repo",
  uid: 1000,
  gid: 100,
  writable,
});

interface Differing {
  readonly user: string;
  readonly folder: string;
  readonly owner: string;
  readonly mounts: readonly object[];
}

/** The whole container; what depends on the workspace is all that differs. */
const container = ({ user, folder, owner, mounts }: Differing): object => ({
  Image: "harness-sandbox:0123456789ab",
  Entrypoint: ["sh", "-c", "exit 0"],
  Cmd: [],
  User: user,
  WorkingDir: folder,
  Env: [
    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME=/home/box",
    "LANG=C.UTF-8",
    "TERM=dumb",
    "CI=1",
    "GIT_TERMINAL_PROMPT=0",
    "GIT_OPTIONAL_LOCKS=0",
    "GIT_CONFIG_GLOBAL=/dev/null",
  ],
  Hostname: "sandbox",
  NetworkDisabled: true,
  AttachStdin: false,
  AttachStdout: true,
  AttachStderr: true,
  OpenStdin: false,
  Tty: false,
  StopTimeout: 1,
  Healthcheck: { Test: ["NONE"] },
  Labels: { "dev.harness.box": "1", "dev.harness.uid": "1000" },
  HostConfig: {
    NetworkMode: "none",
    Dns: ["127.0.0.1"],
    DnsSearch: ["."],
    IpcMode: "private",
    CapDrop: ["ALL"],
    Privileged: false,
    SecurityOpt: ["no-new-privileges"],
    ReadonlyRootfs: true,
    Tmpfs: {
      "/tmp": `rw,nosuid,nodev,exec,size=134217728,nr_inodes=100000,${owner},mode=1777`,
      "/home/box": `rw,nosuid,nodev,exec,size=134217728,nr_inodes=100000,${owner},mode=0700`,
    },
    Mounts: mounts,
    Memory: 512 * MiB,
    MemorySwap: 512 * MiB,
    PidsLimit: 128,
    OomScoreAdj: 500,
    Ulimits: [
      { Name: "nofile", Soft: 4096, Hard: 4096 },
      { Name: "core", Soft: 0, Hard: 0 },
    ],
    ShmSize: 64 * MiB,
    LogConfig: { Type: "none", Config: {} },
    RestartPolicy: { Name: "no" },
    AutoRemove: false,
  },
});

const mount = (readOnly: boolean): object => ({
  Type: "bind",
  Source: "/home/me/my repo",
  Target: "/home/me/my repo",
  ReadOnly: readOnly,
  BindOptions: { Propagation: "rprivate", NonRecursive: true },
});

const MINE = { user: "1000:100", folder: "/home/me/my repo", owner: "uid=1000,gid=100" };

test("a box whose workspace may be written is this container and nothing more", () => {
  const spec = containerSpec({ ...PLAN, workspace: workspace(true) } as BoxPlan);
  assert.deepEqual(spec, container({ ...MINE, mounts: [mount(false)] }));
});

test("a box whose workspace may be read is the same container but for the mount", () => {
  const spec = containerSpec({ ...PLAN, workspace: workspace(false) } as BoxPlan);
  assert.deepEqual(spec, container({ ...MINE, mounts: [mount(true)] }));
});

test("a box without a workspace mounts nothing and runs as nobody", () => {
  const nobody = { user: "65534:65534", folder: "/", owner: "uid=65534,gid=65534" };
  assert.deepEqual(containerSpec(PLAN), container({ ...nobody, mounts: [] }));
});

/** The part of the container that no plan decides. */
const LOCKED = {
  ...containerSpec(PLAN).HostConfig,
  Tmpfs: 0,
  Mounts: 0,
  Memory: 0,
  MemorySwap: 0,
  PidsLimit: 0,
};

test("no plan changes what locks the box", () => {
  const plans = fc.record({
    image: fc.string(),
    argv: fc.array(fc.string()),
    memory: fc.integer({ min: 64 * MiB, max: 2 ** 42 }),
    pids: fc.integer({ min: 16, max: 4_000_000 }),
    labels: fc.dictionary(fc.string(), fc.string()),
    workspace: fc.record({
      path: fc.string().map((name) => `/${name}`),
      uid: fc.nat(),
      gid: fc.nat(),
      writable: fc.boolean(),
    }),
  });
  fc.assert(
    fc.property(plans, (plan) => {
      const { HostConfig, Labels, User, Image, Entrypoint, WorkingDir, NetworkDisabled } =
        containerSpec(plan);
      const { Tmpfs, Mounts, Memory, MemorySwap, PidsLimit, ...fixed } = HostConfig ?? {};
      assert.deepEqual({ ...fixed, Tmpfs: 0, Mounts: 0, Memory: 0, MemorySwap: 0, PidsLimit: 0 }, LOCKED);
      assert.deepEqual(
        [Memory, MemorySwap, PidsLimit, Mounts?.length],
        [plan.memory, plan.memory, plan.pids, 1],
      );
      assert.deepEqual([Image, Entrypoint, WorkingDir], [plan.image, plan.argv, plan.workspace.path]);
      assert.deepEqual(
        [Labels?.["dev.harness.box"], User],
        ["1", `${plan.workspace.uid}:${plan.workspace.gid}`],
      );
      assert.deepEqual([NetworkDisabled, Object.keys(Tmpfs ?? {})], [true, ["/tmp", "/home/box"]]);
    }),
  );
});

test("what the caller keeps is not what the container gets", () => {
  const argv = ["sh"];
  const labels = { mine: "1" };
  const spec = containerSpec({ ...PLAN, argv, labels });
  argv.push("-c");
  labels.mine = "2";
  assert.deepEqual([spec.Entrypoint, spec.Labels], [["sh"], { mine: "1", "dev.harness.box": "1" }]);
});
