import type { BoxPlan } from "../../../src/docker/container-spec.ts";

/**
 * The plan from which Podman 4.3.1 made `test/fixtures/podman-config.json`; only two rules of the profile were kept.
 */
export const PODMAN_PLAN: BoxPlan = {
  image: `sha256:${"a".repeat(64)}`,
  argv: ["/usr/local/lib/harness/runner"],
  mode: "workspace-write",
  user: { uid: 1000, gid: 1000 },
  workspace: { path: "/repo" },
  readOnly: ["/repo/.git"],
  pinned: [],
  volumes: [],
  limits: { memory: 2 ** 30, cpus: 1.5, pids: 256 },
  host: { cpus: 2, apparmor: false, runtime: null, swappiness: true, podman: { rootless: false } },
  seccomp: JSON.stringify({
    defaultAction: "SCMP_ACT_ERRNO",
    archMap: [
      { architecture: "SCMP_ARCH_X86_64", subArchitectures: [] },
      { architecture: "SCMP_ARCH_AARCH64", subArchitectures: [] },
    ],
    syscalls: [
      { comment: "files", names: ["access", "close"], action: "SCMP_ACT_ALLOW" },
      {
        names: ["prlimit64", "sched_setattr", "sched_setparam", "sched_setscheduler"],
        action: "SCMP_ACT_ALLOW",
        args: [{ index: 0, value: 0, valueTwo: 0, op: "SCMP_CMP_EQ" }],
      },
    ],
  }),
  stdin: true,
  labels: {},
};
