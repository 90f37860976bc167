import assert from "node:assert/strict";
import test from "node:test";
import type Docker from "dockerode";
import { findGpu } from "../../src/docker/host-gpu.ts";
import { planSidecar, SIDECARS } from "../../src/docker/sidecars.ts";
import { scratch } from "../fixtures/scratch.ts";

const LOCAL = "unix:///var/run/docker.sock";
const engineWith = (runtimes: Readonly<Record<string, object>> | null): Docker =>
  ({ info: () => Promise.resolve({ Runtimes: runtimes }) }) as unknown as Docker;
const plain = engineWith({ runc: {} });

test("a runtime of NVIDIA's is what the engine hands its card on with, wherever it runs", async () => {
  await using place = await scratch();
  for (const host of [LOCAL, "tcp://elsewhere:2376"])
    assert.deepEqual(await findGpu(engineWith({ runc: {}, nvidia: {} }), host, place.path), {
      kind: "nvidia",
    });
});

test("a card that the engine cannot hand on is told apart from none", async () => {
  await using place = await scratch({ nvidia0: "", "dri/renderD128": "" });
  assert.deepEqual(await findGpu(plain, LOCAL, place.path), { kind: "not-handed-on" });
  assert.deepEqual(await findGpu(plain, "tcp://elsewhere:2376", place.path), { kind: "none" });
});

test("other cards are devices of this machine; a screen without a renderer is none", async () => {
  await using amd = await scratch({ "dri/renderD128": "", "dri/card0": "", kfd: "" });
  assert.deepEqual(await findGpu(plain, LOCAL, amd.path), {
    kind: "dri",
    devices: [amd.at("dri"), amd.at("kfd")],
  });
  assert.deepEqual(await findGpu(plain, "ssh://elsewhere", amd.path), { kind: "none" });
  await using screen = await scratch({ "dri/card0": "" });
  assert.deepEqual(await findGpu(plain, LOCAL, screen.path), { kind: "none" });
});

test("an engine that does not say what it has is no failure", async () => {
  await using place = await scratch();
  const silent = { info: () => Promise.reject(new Error("no answer")) } as unknown as Docker;
  for (const api of [silent, engineWith(null)])
    assert.deepEqual(await findGpu(api, LOCAL, place.path), { kind: "none" });
});

test("a card is added to the container's plan and loosens nothing else of it", () => {
  const bare = planSidecar(SIDECARS, "ollama");
  const nvidia = planSidecar(SIDECARS, "ollama", { kind: "nvidia" });
  const { DeviceRequests, ...rest } = nvidia.container.HostConfig ?? {};
  assert.deepEqual(DeviceRequests, [{ Driver: "nvidia", Count: -1, Capabilities: [["gpu"]] }]);
  assert.deepEqual(rest, bare.container.HostConfig);
  const dri = planSidecar(SIDECARS, "ollama", { kind: "dri", devices: ["/dev/dri"] });
  const card = { PathOnHost: "/dev/dri", PathInContainer: "/dev/dri", CgroupPermissions: "rw" };
  assert.deepEqual(
    [dri.container.HostConfig, dri.container.Env],
    [{ ...bare.container.HostConfig, Devices: [card] }, ["OLLAMA_VULKAN=1"]],
  );
  assert.equal(
    new Set([bare, nvidia, dri].map(({ hash }) => hash)).size,
    3,
    "it is made anew where a card appears",
  );
});
