import assert from "node:assert/strict";
import { test } from "node:test";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { ociDifferences, podmanSpec } from "../../../src/docker/box/podman-spec.ts";
import { PODMAN_PLAN } from "./podman-plan.ts";

const WORDS = { seccompFile: "/x/seccomp.json", nproc: 32_768 };

test("nothing of the host or of the engine's defaults is requested", () => {
  const spec = podmanSpec(PODMAN_PLAN, WORDS);
  const asked = ["env_host", "httpproxy", "manage_password", "privileged", "terminal", "use_image_hosts"];
  assert.deepEqual(
    asked.map((name) => spec[name]),
    [false, false, false, false, false, true],
  );
  assert.deepEqual([spec["netns"], spec["cap_drop"], spec["cap_add"]], [{ nsmode: "none" }, ["ALL"], []]);
  assert.equal(spec["seccomp_profile_path"], WORDS.seccompFile);
});

test("the number of files and the owner of a scratch folder follow its size", () => {
  const mounts = podmanSpec(PODMAN_PLAN, WORDS)["mounts"] as readonly {
    readonly destination: string;
    readonly options: readonly string[];
  }[];
  const options = mounts.find(({ destination }) => destination === "/tmp")?.options ?? [];
  assert.deepEqual(options.slice(-1), [`size=${2 ** 28},nr_inodes=100000,uid=1000,gid=1000`]);
  assert.ok(options.includes("notmpcopyup"));
});

test("rootless, the caller keeps the same uid inside", () => {
  const rootless = { ...PODMAN_PLAN, host: { ...PODMAN_PLAN.host, podman: { rootless: true } } };
  assert.deepEqual(podmanSpec(rootless, WORDS)["userns"], { nsmode: "keep-id" });
  assert.equal(podmanSpec(PODMAN_PLAN, WORDS)["userns"], undefined);
});

const file = path.join(import.meta.dirname, "../../fixtures/podman-config.json");
const CONFIG = JSON.parse(await readFile(file, "utf8")) as object;

/** The captured configuration with something else at this place; undefined takes it away. */
function changed(at: string, value: unknown): object {
  const copy = structuredClone(CONFIG);
  const names = at.split(".");
  const last = names.pop() ?? "";
  let inner = copy as Record<string, unknown>;
  for (const name of names) inner = inner[name] as Record<string, unknown>;
  inner[last] = value;
  return JSON.parse(JSON.stringify(copy)) as object;
}

const namespaces = (type: string, path?: string): readonly object[] =>
  ["pid", "network", "ipc", "uts", "mount", "cgroup"].map((one) =>
    one === type && path !== undefined ? { type: one, path } : { type: one },
  );

test("the container that Podman makes of a plan matches the plan", () => {
  assert.deepEqual(ociDifferences(PODMAN_PLAN, CONFIG), []);
});

const BREACHES: readonly (readonly [string, unknown])[] = [
  ["annotations", { "run.oci.keep_original_groups": "1" }],
  ["annotations", { "io.podman.annotations.init": "FALSE", "run.oci.systemd.subgroup": "x" }],
  ["process.user.uid", 0],
  ["process.user.additionalGids", [1000, 998]],
  ["process.args", ["sh"]],
  ["process.cwd", "/repo"],
  ["process.noNewPrivileges", false],
  ["process.noNewPrivileges", undefined],
  ["process.oomScoreAdj", -500],
  ["process.capabilities", { bounding: ["CAP_SYS_ADMIN"] }],
  ["process.rlimits", []],
  ["process.rlimits.0.hard", 2 ** 20],
  ["process.terminal", true],
  ["root.readonly", undefined],
  ["hooks", { prestart: [{ path: "/bin/sh" }] }],
  ["linux.namespaces", namespaces("none").slice(1)],
  ["linux.namespaces", namespaces("network", "/proc/1/ns/net")],
  ["linux.uidMappings", [{ containerID: 0, hostID: 0, size: 10 }]],
  ["linux.devices", [{ path: "/dev/sda" }]],
  ["linux.rootfsPropagation", "shared"],
  ["linux.intelRdt", { closID: "x" }],
  ["linux.maskedPaths", []],
  ["linux.readonlyPaths", []],
  ["linux.sysctl", {}],
  ["linux.sysctl", { "kernel.shm_rmid_forced": "1", "kernel.sem": "250 32000 32 128" }],
  [
    "linux.sysctl",
    {
      "kernel.shm_rmid_forced": "1",
      "kernel.msgmni": "32",
      "kernel.sem": "250 32000 32 128",
      "net.ipv4.ip_forward": "1",
    },
  ],
  ["linux.resources", {}],
  ["linux.resources.memory.limit", undefined],
  ["linux.resources.memory.swap", -1],
  ["linux.resources.memory.disableOOMKiller", true],
  ["linux.resources.pids", undefined],
  ["linux.resources.cpu.quota", 400_000],
  ["linux.resources.devices", [{ allow: true, access: "rwm" }]],
  ["linux.resources.unified", { "memory.max": "max" }],
  ["linux.seccomp", undefined],
  ["linux.seccomp.defaultAction", "SCMP_ACT_ALLOW"],
  ["linux.seccomp.architectures", ["SCMP_ARCH_X86_64", "SCMP_ARCH_X86"]],
  ["linux.seccomp.syscalls.0.names", ["access", "close", "ptrace"]],
  ["linux.seccomp.syscalls.1.args", undefined],
  ["linux.seccomp.listenerPath", "/run/x"],
];

for (const [at, value] of BREACHES)
  test(`a deviation from the plan is reported: ${at} ${JSON.stringify(value) ?? "left out"}`, () => {
    assert.notDeepEqual(ociDifferences(PODMAN_PLAN, changed(at, value)), []);
  });

interface Mounted {
  readonly destination: string;
  readonly options: readonly string[];
}

const mountsOf = (): readonly Mounted[] => (structuredClone(CONFIG) as { mounts: Mounted[] }).mounts;

const remade = (destination: string, change: (mount: Mounted) => object | undefined): readonly object[] =>
  mountsOf().flatMap((one) => (one.destination === destination ? (change(one) ?? []) : one));

const written = ({ options }: Mounted): readonly string[] =>
  options.map((one) => (one === "ro" ? "rw" : one));

for (const [what, mounts] of [
  [
    "an additional socket",
    [...mountsOf(), { destination: "/s", type: "bind", source: "/run/s", options: ["ro"] }],
  ],
  ["the host's list of hosts", [...mountsOf(), { destination: "/etc/hosts", type: "bind", source: "/h" }]],
  ["a missing protected path", remade("/repo/.git", () => undefined)],
  ["a writable protected path", remade("/repo/.git", (one) => ({ ...one, options: written(one) }))],
  ["another folder in its place", remade("/repo", (one) => ({ ...one, source: "/" }))],
  ["a mount below it", remade("/repo", (one) => ({ ...one, options: ["rw", "rbind", "rprivate"] }))],
  [
    "a mount that propagates to the host",
    remade("/repo", (one) => ({ ...one, options: [...one.options, "shared"] })),
  ],
  ["a missing scratch folder", remade("/tmp", () => undefined)],
] as const)
  test(`a wrong mount is reported: ${what}`, () => {
    assert.equal(ociDifferences(PODMAN_PLAN, changed("mounts", mounts)).length, 1);
  });

test("only a rootless container has its own user namespace", () => {
  const host = { ...PODMAN_PLAN.host, podman: { rootless: true } };
  const mapped = changed("linux.namespaces", [...namespaces("none"), { type: "user" }]);
  assert.deepEqual(ociDifferences({ ...PODMAN_PLAN, host }, mapped), []);
  assert.equal(ociDifferences({ ...PODMAN_PLAN, host }, CONFIG).length, 1);
  assert.equal(ociDifferences(PODMAN_PLAN, mapped).length, 1);
});

test("on a machine with AppArmor a container must be confined", () => {
  const plan = { ...PODMAN_PLAN, host: { ...PODMAN_PLAN.host, apparmor: true } };
  assert.equal(ociDifferences(plan, CONFIG).length, 1);
  assert.deepEqual(ociDifferences(plan, changed("process.apparmorProfile", "containers-default")), []);
});
