import assert from "node:assert/strict";
import { test } from "node:test";
import { cgroupDifferences } from "../../../src/docker/box/podman-container.ts";
import { type Scratch, scratch } from "../../fixtures/scratch.ts";
import { PODMAN_PLAN } from "./podman-plan.ts";

const roots = (place: Scratch): { readonly proc: string; readonly cgroup: string } => ({
  proc: place.at("proc"),
  cgroup: place.at("cgroup"),
});

const OLD = "12:pids:/p/box\n9:cpu,cpuacct:/p/box\n4:memory:/p/box\n1:name=systemd:/p/box\n0::/elsewhere\n";

const old = (memory: string): Record<string, string> => ({
  "proc/77/cgroup": OLD,
  "cgroup/memory/p/box/memory.limit_in_bytes": `${memory}\n`,
  "cgroup/pids/p/box/pids.max": "256\n",
  "cgroup/cpu/p/box/cpu.cfs_quota_us": "150000\n",
});

const unified = (pids: string): Record<string, string> => ({
  "proc/77/cgroup": "0::/user.slice/box\n",
  "cgroup/user.slice/box/memory.max": `${2 ** 30}\n`,
  "cgroup/user.slice/box/pids.max": `${pids}\n`,
  "cgroup/user.slice/box/cpu.max": "150000 100000\n",
});

for (const [name, files, lines] of [
  ["version 1, as planned", old(String(2 ** 30)), []],
  [
    "version 1, too much",
    old("9223372036854771712"),
    [/^the limit of memory is 9223372036854772000, planned/],
  ],
  ["version 1, none", old("-1"), [/^the limit of memory is not set/]],
  ["version 2, as planned", unified("256"), []],
  ["version 2, none", unified("max"), [/^the limit of processes is not set, planned 256/]],
  [
    "version 2, a time of another period",
    { ...unified("256"), "cgroup/user.slice/box/cpu.max": "150000 10000\n" },
    [/^the limit of cpu is 1500000, planned 150000/],
  ],
  [
    "version 1, a time of another period",
    { ...old(String(2 ** 30)), "cgroup/cpu/p/box/cpu.cfs_period_us": "50000\n" },
    [/^the limit of cpu is 300000, planned 150000/],
  ],
  [
    "version 2, no controllers handed down",
    { "proc/77/cgroup": "0::/user.slice/box\n" },
    [/^the limit of memory is not set/, /^the limit of processes is not set/, /^the limit of cpu is not set/],
  ],
] as const)
  test(`limits are compared with the kernel's: ${name}`, async () => {
    await using place = await scratch(files);
    const found = await cgroupDifferences(PODMAN_PLAN, 77, roots(place));
    assert.equal(found.length, lines.length, found.join("\n"));
    for (const [at, line] of lines.entries()) assert.match(found[at] ?? "", line);
  });

test("without a process its limits cannot be confirmed", async () => {
  await using place = await scratch(unified("256"));
  for (const pid of [0, undefined, 78])
    assert.notDeepEqual(await cgroupDifferences(PODMAN_PLAN, pid, roots(place)), []);
});
