import assert from "node:assert/strict";
import { test } from "node:test";
import { podmanSpec } from "../../../src/docker/podman/podman-spec.ts";
import { PODMAN_PLAN } from "./podman-plan.ts";

const WORDS = { seccompFile: "/x/seccomp.json", nproc: 32_768 };

test("nothing of the host or the engine's own is asked for", () => {
  const spec = podmanSpec(PODMAN_PLAN, WORDS);
  const asked = ["env_host", "httpproxy", "manage_password", "privileged", "terminal", "use_image_hosts"];
  assert.deepEqual(
    asked.map((name) => spec[name]),
    [false, false, false, false, false, true],
  );
  assert.deepEqual([spec["netns"], spec["cap_drop"], spec["cap_add"]], [{ nsmode: "none" }, ["ALL"], []]);
  assert.equal(spec["seccomp_profile_path"], WORDS.seccompFile);
});

test("the number of files and the owner of a scratch folder stand behind its size", () => {
  const mounts = podmanSpec(PODMAN_PLAN, WORDS)["mounts"] as readonly {
    readonly destination: string;
    readonly options: readonly string[];
  }[];
  const options = mounts.find(({ destination }) => destination === "/tmp")?.options ?? [];
  assert.deepEqual(options.slice(-1), [`size=${2 ** 28},nr_inodes=100000,uid=1000,gid=1000`]);
  assert.ok(options.includes("notmpcopyup"));
});

test("rootless, the caller's uid is the same inside", () => {
  const rootless = { ...PODMAN_PLAN, host: { ...PODMAN_PLAN.host, podman: { rootless: true } } };
  assert.deepEqual(podmanSpec(rootless, WORDS)["userns"], { nsmode: "keep-id" });
  assert.equal(podmanSpec(PODMAN_PLAN, WORDS)["userns"], undefined);
});
