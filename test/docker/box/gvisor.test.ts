import assert from "node:assert/strict";
import test from "node:test";
import { reportDifferences } from "../../../src/docker/box/container-check.ts";
import { planOf } from "../../fixtures/plan.ts";

/** As runsc of 2022 says it of a box over /w with one protected path. */
const MOUNTS = [
  "8 8 0:8 / / ro  - 9p none ro,trans=fd,rfdno=4,wfdno=4",
  "9 8 0:9 / /tmp rw  - tmpfs none rw,size=134217728,uid=1000,gid=1000,mode=1777",
  "10 8 0:6 / /dev rw  - tmpfs none rw,mode=0755",
  "13 8 0:12 / /proc rw,noexec  - proc none rw",
  "14 9 0:13 / /w rw  - 9p none rw,trans=fd,rfdno=5,wfdno=5",
  "18 8 0:17 / /etc/hosts ro  - 9p none ro,trans=fd,rfdno=8,wfdno=8",
  "19 14 0:18 / /w/.git ro  - 9p none ro,trans=fd,rfdno=9,wfdno=9",
];
const STATUS = [
  "Uid:\t1000\t1000\t1000\t1000",
  "Gid:\t1000\t1000\t1000\t1000",
  "Groups:\t 1000 ",
  ...["CapInh", "CapPrm", "CapEff", "CapBnd"].map((name) => `${name}:\t0000000000000000`),
  "Seccomp:\t0",
];
const NETDEV = "Inter-|\n face |\n    lo:       0\n";

const plan = planOf({
  image: "sha256:1",
  argv: ["/runner"],
  user: { uid: 1000, gid: 1000 },
  workspace: { path: "/w" },
  readOnly: ["/w/.git"],
  host: { cpus: 2, apparmor: false, runtime: "runsc" },
});

interface Said {
  readonly mounts?: readonly string[];
  readonly status?: readonly string[];
  readonly netdev?: string;
}

const differences = ({ mounts = MOUNTS, status = STATUS, netdev = NETDEV }: Said): readonly string[] =>
  reportDifferences(
    plan,
    {
      status: `${status.join("\n")}\n`,
      mountinfo: `${mounts.join("\n")}\n`,
      netdev,
      route: "Iface\tDestination\n",
      rlimits: "",
      stats: [],
      hostname: "sandbox",
    },
    [],
  );

const swap = (lines: readonly string[], from: string, to: string): readonly string[] =>
  lines.map((line) => line.replace(from, to));

test("gVisor's report of a box as planned has no deviation", () => {
  assert.deepEqual(differences({}), []);
});

const DEVIATIONS: Readonly<Record<string, readonly [Said, RegExp]>> = {
  "another user": [{ status: swap(STATUS, "Uid:\t1000", "Uid:\t0") }, /^Uid is 0/],
  "an additional group": [{ status: swap(STATUS, "Groups:\t 1000", "Groups:\t 1000 105") }, /^Groups are/],
  "a capability": [{ status: swap(STATUS, "CapEff:\t0", "CapEff:\t1") }, /^CapEff is/],
  "a missing capability set": [{ status: STATUS.filter((line) => !line.startsWith("CapBnd")) }, /^CapBnd/],
  "a writable root": [{ mounts: swap(MOUNTS, "/ / ro ", "/ / rw ") }, /^\/: not ro/],
  "a writable protected path": [{ mounts: swap(MOUNTS, "/w/.git ro", "/w/.git rw") }, /^\/w\/\.git: not ro/],
  "a protected path that is not a mount": [
    { mounts: MOUNTS.filter((line) => !line.includes("/w/.git")) },
    /^\/w\/\.git is not a mount/,
  ],
  "an additional folder of the host": [
    { mounts: [...MOUNTS, "20 8 0:19 / /root ro  - 9p none ro"] },
    /^\/root: was not planned/,
  ],
  "an interface": [{ netdev: `${NETDEV}  eth0:       0\n` }, /interface eth0/],
};

for (const [name, [said, line]] of Object.entries(DEVIATIONS))
  test(`gVisor's report of ${name} is one deviation`, () => {
    const found = differences(said);
    assert.equal(found.length, 1, found.join("\n"));
    assert.match(found[0] ?? "", line);
  });
