import assert from "node:assert/strict";
import test from "node:test";
import { MODES } from "../../../src/core/decision.ts";
import { reportDifferences } from "../../../src/docker/box/container-check.ts";
import { BOXES, boxPlan } from "../../fixtures/boxes.ts";
import type { BoxReport } from "../../../src/boxes/runner-report.ts";

const PLAN = boxPlan("workspace-write");
const GOOD = BOXES["workspace-write"].report;
const HOST = GOOD.stats;

const lines = (report: Partial<BoxReport>): readonly string[] =>
  reportDifferences(PLAN, { ...GOOD, ...report }, HOST);

for (const mode of MODES)
  test(`what a ${mode} box says of itself is the plan`, () => {
    assert.deepEqual(reportDifferences(boxPlan(mode), BOXES[mode].report, BOXES[mode].report.stats), []);
  });

test("the box of one mode is none of another mode", () => {
  for (const planned of MODES)
    for (const made of MODES) {
      const found = reportDifferences(boxPlan(planned), BOXES[made].report, HOST);
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
  test(`the process is found out: ${line.replaceAll("\t", " ")}`, () => {
    assert.deepEqual(lines({ status: GOOD.status.replace(from, to) }), [line]);
  });

test("a kernel that prints no ambient capabilities has none where none are inheritable or permitted", () => {
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

test("a wall that was left open is found", () => {
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

test("a protected, pinned or planned place that is no mount is found", () => {
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

test("a mount that nobody planned is found", () => {
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

test("something else in the place of what the engine mounts is found", () => {
  assert.deepEqual(mountinfo("- sysfs sysfs", "- ext4 /dev/vda"), ["/sys: is ext4 of /, planned sysfs"]);
  assert.deepEqual(mountinfo(/(\/home\/box \S+) - tmpfs/, "$1 - ext4"), [
    "/home/box: is ext4, planned tmpfs",
  ]);
  assert.deepEqual(mountinfo("size=131072k", "size=262144k"), ["/tmp: size is 268435456, planned 134217728"]);
  assert.deepEqual(mountinfo(",nr_inodes=1000,", ","), ["/run: nr_inodes is NaN, planned 1000"]);
});

test("a way out of the box is found", () => {
  assert.deepEqual(lines({ netdev: `${GOOD.netdev}  eth0:       0       0\n` }), [
    "there is an interface eth0",
  ]);
  assert.deepEqual(lines({ netdev: `${GOOD.netdev}  sit0:       0       0\n` }), []);
  assert.deepEqual(lines({ route: `${GOOD.route}eth0\t00000000\t010011AC\n` }), [
    "there is a route: eth0 00000000 010011AC",
  ]);
  assert.deepEqual(lines({ netdev: "" }), ["there is no interface lo"]);
});

test("limits that are wider than planned are found", () => {
  const rlimits = GOOD.rlimits.replace(/(Max open files +)4096( +)4096/, "$1 4096 $2 1048576");
  assert.deepEqual(lines({ rlimits }), ["the limit nofile is 1048576, planned 4096"]);
  assert.equal(lines({ rlimits: "" }).length, 5);
  const core = GOOD.rlimits.replace(/(Max core file size +)0( +)0/, "$1 0 $2 unlimited");
  assert.deepEqual(lines({ rlimits: core }), ["the limit core is unlimited, planned 0"]);
});

test("another file than the host's at a bound path is found", () => {
  const stats = GOOD.stats.map((file) => (file.path.endsWith(".git") ? { ...file, ino: "7" } : file));
  const [, git] = GOOD.stats;
  assert.deepEqual(lines({ stats }), [
    `/srv/repo/.git is device ${git?.dev} inode 7 in the box and device ${git?.dev} inode ${git?.ino} on the host`,
  ]);
  assert.equal(lines({ stats: [] }).length, 5);
  assert.equal(reportDifferences(PLAN, { ...GOOD, stats: [] }, []).length, 5, "nobody knows: nobody vouches");
});

test("a workspace that is a volume is no file of the host", () => {
  const plan = { ...PLAN, workspace: { path: "/srv/repo", volume: "copy" } };
  const stats = GOOD.stats.map((file) =>
    file.path === "/srv/repo" ? { ...file, dev: "1", ino: "2" } : file,
  );
  assert.deepEqual(reportDifferences(plan, { ...GOOD, stats }, HOST), []);
});

test("another host name is found", () => {
  assert.deepEqual(lines({ hostname: "laptop" }), ['the host name is "laptop"']);
});
