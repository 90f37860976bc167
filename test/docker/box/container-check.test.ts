import assert from "node:assert/strict";
import test from "node:test";
import { MODES } from "../../../src/core/decision.ts";
import {
  type Inspected,
  inspectedDifferences,
  reportDifferences,
} from "../../../src/docker/box/container-check.ts";
import type { BoxPlan } from "../../../src/docker/container-spec.ts";
import { BOXES, boxPlan } from "../../fixtures/boxes.ts";
import type { BoxReport } from "../../../src/boxes/runner-report.ts";

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
  test(`the container that the engine makes of a ${mode} plan matches the plan`, () => {
    assert.deepEqual(inspectedDifferences(boxPlan(mode), BOXES[mode].inspected), []);
  });

test("the container of one mode does not match another mode", () => {
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
  test(`a different ${name} is reported in one line with its name`, () => {
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
  test(`a different ${name} in the configuration is reported in one line with its name`, () => {
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

test("our own variables are set exactly once, as planned", () => {
  assert.deepEqual(inspectedDifferences(PLAN, withEnv("HOME=/root")), ["Config.Env has HOME more than once"]);
  const other = changed(
    ({ Config }) => (Config["Env"] = env(Config).map((one) => one.replace(/^CI=1$/, "CI=2"))),
  );
  assert.deepEqual(inspectedDifferences(PLAN, other), ["Config.Env lacks CI=1"]);
  assert.equal(inspectedDifferences(PLAN, changedConfig("Env", null)).length, 8);
});

test("image settings without effect are not a deviation", () => {
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

test("a mount that the engine adds, drops or makes writable is named with both ends", () => {
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

test("labels, image and command must match the plan, and nothing else may have started", () => {
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

test("an answer that is not a container deviates in every respect", () => {
  assert.ok(inspectedDifferences(PLAN, {}).length > 30);
});

const GOOD = BOXES["workspace-write"].report;
const SEEN_ON_HOST = GOOD.stats;

const lines = (report: Partial<BoxReport>): readonly string[] =>
  reportDifferences(PLAN, { ...GOOD, ...report }, SEEN_ON_HOST);

for (const mode of MODES)
  test(`the report of a ${mode} box matches the plan`, () => {
    assert.deepEqual(reportDifferences(boxPlan(mode), BOXES[mode].report, BOXES[mode].report.stats), []);
  });

test("the report of one mode does not match another mode", () => {
  for (const planned of MODES)
    for (const made of MODES) {
      const found = reportDifferences(boxPlan(planned), BOXES[made].report, SEEN_ON_HOST);
      assert.equal(found.length > 0, planned !== made, `${made} for ${planned}`);
    }
});

const STATUS: readonly (readonly [RegExp, string, string])[] = [
  [/^Uid:.*$/m, "Uid:\t1000\t0\t0\t0", "Uid is 1000\t0\t0\t0, planned 1000\t1000\t1000\t1000"],
  [/^Gid:.*$/m, "Gid:\t0\t0\t0\t0", "Gid is 0\t0\t0\t0, planned 1000\t1000\t1000\t1000"],
  [/^Groups:.*$/m, "Groups:\t1000 998 ", "Groups are 1000 998, planned none"],
  [/^Groups:.*\n/m, "", "Groups are unknown, planned none"],
  [/^CapInh:.*$/m, "CapInh:\t0000000000000001", "CapInh is 0000000000000001, planned none"],
  [/^CapPrm:.*$/m, "CapPrm:\t00000000a80425fb", "CapPrm is 00000000a80425fb, planned none"],
  [/^CapEff:.*$/m, "CapEff:\t0000000000000400", "CapEff is 0000000000000400, planned none"],
  [/^CapBnd:.*$/m, "CapBnd:\t0000000000002000", "CapBnd is 0000000000002000, planned none"],
  [/^CapAmb:.*$/m, "CapAmb:\t0000000000000400", "CapAmb is 0000000000000400, planned none"],
  [/^NoNewPrivs:.*$/m, "NoNewPrivs:\t0", "NoNewPrivs is 0, planned 1"],
  [/^Seccomp:.*$/m, "Seccomp:\t0", "Seccomp is 0, planned 2"],
];

for (const [from, to, line] of STATUS)
  test(`a deviating process is detected: ${line.replaceAll("\t", " ")}`, () => {
    assert.deepEqual(lines({ status: GOOD.status.replace(from, to) }), [line]);
  });

test("a kernel that prints no ambient capabilities has none if none are inheritable or permitted", () => {
  const without = GOOD.status.replace(/^CapAmb:.*\n/m, "");
  assert.deepEqual(lines({ status: without }), []);
  const inherits = without.replace(/^CapInh:.*$/m, "CapInh:\t0000000000000400");
  assert.deepEqual(lines({ status: inherits }), ["CapInh is 0000000000000400, planned none"]);
  const both = inherits.replace(/^CapPrm:.*$/m, "CapPrm:\t0000000000000400");
  assert.deepEqual(
    lines({ status: both }).map((line) => line.replace(/ is .*/, "")),
    ["CapInh", "CapPrm", "CapAmb"],
  );
});

const mountinfo = (from: RegExp | string, to: string): readonly string[] => {
  const changed = GOOD.mountinfo.replace(from, to);
  assert.notEqual(changed, GOOD.mountinfo, "the change changes something");
  return lines({ mountinfo: changed });
};
const added = (line: string): readonly string[] => lines({ mountinfo: `${GOOD.mountinfo}${line}\n` });

test("a protection that was left open is detected", () => {
  assert.deepEqual(mountinfo("/ / ro,", "/ / rw,"), ["/: not ro (rw,relatime)"]);
  assert.deepEqual(mountinfo("/srv/repo/.git ro,", "/srv/repo/.git rw,"), [
    "/srv/repo/.git: not ro (rw,relatime)",
  ]);
  assert.deepEqual(mountinfo("/srv/repo /srv/repo rw,", "/srv/repo /srv/repo ro,"), [
    "/srv/repo: not rw (ro,relatime)",
  ]);
  assert.deepEqual(mountinfo("/sys ro,", "/sys rw,"), ["/sys: not ro (rw,nosuid,nodev,noexec,relatime)"]);
  assert.deepEqual(mountinfo("/proc/sys ro,", "/proc/sys rw,"), [
    "/proc/sys: not ro (rw,nosuid,nodev,noexec,relatime)",
  ]);
  assert.deepEqual(mountinfo("/sys/fs/cgroup/pids ro,", "/sys/fs/cgroup/pids rw,"), [
    "/sys/fs/cgroup/pids: not ro (rw,nosuid,nodev,noexec,relatime)",
  ]);
  assert.deepEqual(mountinfo("/tmp rw,nosuid,nodev,", "/tmp rw,"), [
    "/tmp: not nosuid, not nodev (rw,relatime)",
  ]);
  assert.deepEqual(mountinfo("/run rw,nosuid,nodev,noexec,", "/run rw,nosuid,nodev,"), [
    "/run: not noexec (rw,nosuid,nodev,relatime)",
  ]);
  assert.deepEqual(mountinfo(/(\/srv\/repo \/srv\/repo rw,\S+)/, "$1 shared:7"), [
    "/srv/repo: mounts inside it propagate to the host",
  ]);
});

test("a protected, pinned or planned path that is not a mount is detected", () => {
  for (const path of [
    "/srv/repo",
    "/srv/repo/.git",
    "/srv/repo/.harness",
    "/srv/repo/sub",
    "/tmp",
    "/proc/sys",
  ]) {
    const line = new RegExp(`^\\S+ \\S+ \\S+ \\S+ ${path.replaceAll(".", "\\.")} .*\n`, "m");
    assert.deepEqual(mountinfo(line, ""), [`${path} is not a mount of its own`]);
  }
  assert.ok(lines({ mountinfo: "" }).length > 10);
});

test("an unplanned mount is detected", () => {
  assert.deepEqual(added("900 179 254:0 /run/docker.sock /run/docker.sock rw - tmpfs tmpfs rw"), [
    "/run/docker.sock: was not planned (tmpfs of /run/docker.sock)",
  ]);
  assert.deepEqual(added("900 179 254:0 / /srv/repo/.git ro - ext4 /dev/vda rw"), [
    "/srv/repo/.git is mounted more than once",
  ]);
  assert.deepEqual(added("900 179 254:0 /x /mnt/my\\040disk rw - ext4 /dev/vda rw"), [
    "/mnt/my disk: was not planned (ext4 of /x)",
  ]);
  assert.deepEqual(added("900 179 254:0 /etc/shadow /etc/hosts ro - ext4 /dev/vda rw"), [
    "/etc/hosts: was not planned (ext4 of /etc/shadow)",
  ]);
  assert.deepEqual(added("900 183 0:23 / /sys/fs/bpf rw - bpf bpf rw"), [
    "/sys/fs/bpf: was not planned (bpf of /)",
  ]);
  assert.deepEqual(added("900 180 0:9 / /proc/kcore rw - ext4 /dev/vda rw"), [
    "/proc/kcore: was not planned (ext4 of /)",
  ]);
  assert.deepEqual(added("nonsense"), ["a mount that cannot be read: nonsense"]);
});

test("a wrong file system in place of a planned mount is detected", () => {
  assert.deepEqual(mountinfo("- sysfs sysfs", "- ext4 /dev/vda"), ["/sys: is ext4 of /, planned sysfs"]);
  assert.deepEqual(mountinfo(/(\/home\/box \S+) - tmpfs/, "$1 - ext4"), [
    "/home/box: is ext4, planned tmpfs",
  ]);
  assert.deepEqual(mountinfo("size=131072k", "size=262144k"), ["/tmp: size is 268435456, planned 134217728"]);
  assert.deepEqual(mountinfo(",nr_inodes=1000,", ","), ["/run: nr_inodes is NaN, planned 1000"]);
});

test("a way out of the box is detected", () => {
  assert.deepEqual(lines({ netdev: `${GOOD.netdev}  eth0:       0       0\n` }), [
    "there is an interface eth0",
  ]);
  assert.deepEqual(lines({ netdev: `${GOOD.netdev}  sit0:       0       0\n` }), []);
  assert.deepEqual(lines({ route: `${GOOD.route}eth0\t00000000\t010011AC\n` }), [
    "there is a route: eth0 00000000 010011AC",
  ]);
  assert.deepEqual(lines({ netdev: "" }), ["there is no interface lo"]);
});

test("limits wider than planned are detected", () => {
  const rlimits = GOOD.rlimits.replace(/(Max open files +)4096( +)4096/, "$1 4096 $2 1048576");
  assert.deepEqual(lines({ rlimits }), ["the limit nofile is 1048576, planned 4096"]);
  assert.equal(lines({ rlimits: "" }).length, 5);
  const core = GOOD.rlimits.replace(/(Max core file size +)0( +)0/, "$1 0 $2 unlimited");
  assert.deepEqual(lines({ rlimits: core }), ["the limit core is unlimited, planned 0"]);
});

test("a different file at a bound path is detected", () => {
  const stats = GOOD.stats.map((file) => (file.path.endsWith(".git") ? { ...file, ino: "7" } : file));
  const [, git] = GOOD.stats;
  assert.deepEqual(lines({ stats }), [
    `/srv/repo/.git is device ${git?.dev} inode 7 in the box and device ${git?.dev} inode ${git?.ino} on the host`,
  ]);
  assert.equal(lines({ stats: [] }).length, 5);
  assert.equal(
    reportDifferences(PLAN, { ...GOOD, stats: [] }, []).length,
    5,
    "without facts about the host nothing matches",
  );
});

test("a workspace in a volume is not compared with the host's file", () => {
  const plan = { ...PLAN, workspace: { path: "/srv/repo", volume: "copy" } };
  const stats = GOOD.stats.map((file) =>
    file.path === "/srv/repo" ? { ...file, dev: "1", ino: "2" } : file,
  );
  assert.deepEqual(reportDifferences(plan, { ...GOOD, stats }, SEEN_ON_HOST), []);
});

test("a different host name is detected", () => {
  assert.deepEqual(lines({ hostname: "laptop" }), ['the host name is "laptop"']);
});
