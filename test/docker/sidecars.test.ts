import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import test from "node:test";
import { parse } from "yaml";
import type Docker from "dockerode";
import { startFailure } from "../../src/docker/sidecar-lifecycle.ts";
import {
  findGpu,
  healthOfSidecar,
  planSidecar,
  type SidecarProject,
  SIDECARS,
  type SidecarService,
} from "../../src/docker/sidecars.ts";
import { scratch } from "../fixtures/scratch.ts";

const DEMO: SidecarProject<"db"> = {
  name: "demo",
  services: {
    db: {
      image: "team/db:1",
      command: ["serve"],
      environment: { MARK: "one" },
      ports: [{ host: 80, container: 8080 }],
      volumes: [{ volume: "data", target: "/data" }],
      healthcheck: {
        test: ["CMD", "ping"],
        intervalMs: 10_000,
        timeoutMs: 3000,
        startPeriodMs: 60_000,
        retries: 4,
      },
      memoryBytes: 64 * 2 ** 20,
      restart: "unless-stopped",
    },
  },
};
const edited = (keys: Partial<SidecarService>) =>
  planSidecar({ ...DEMO, services: { db: { ...DEMO.services.db, ...keys } } }, "db");

test("a service becomes the request to the engine, named and labelled as compose does", () => {
  const plan = planSidecar(DEMO, "db");
  assert.match(plan.hash, /^[0-9a-f]{64}$/);
  assert.deepEqual(plan, {
    service: "db",
    project: "demo",
    image: "team/db:1",
    name: "demo-db-1",
    hash: plan.hash,
    addresses: ["127.0.0.1:80"],
    container: {
      name: "demo-db-1",
      Image: "team/db:1",
      Env: ["MARK=one"],
      Cmd: ["serve"],
      Healthcheck: { Test: ["CMD", "ping"], Interval: 1e10, Timeout: 3e9, StartPeriod: 6e10, Retries: 4 },
      Labels: {
        "com.docker.compose.project": "demo",
        "com.docker.compose.service": "db",
        "com.docker.compose.container-number": "1",
        "com.docker.compose.oneoff": "False",
        "com.docker.compose.config-hash": plan.hash,
        "dev.harness.sidecar": "db",
      },
      ExposedPorts: { "8080/tcp": {} },
      HostConfig: {
        NetworkMode: "demo_default",
        PortBindings: { "8080/tcp": [{ HostIp: "127.0.0.1", HostPort: "80" }] },
        Mounts: [{ Type: "volume", Source: "demo_data", Target: "/data", ReadOnly: false }],
        Memory: 64 * 2 ** 20,
        RestartPolicy: { Name: "unless-stopped" },
        CapDrop: ["ALL"],
        SecurityOpt: ["no-new-privileges:true"],
      },
      NetworkingConfig: { EndpointsConfig: { demo_default: { Aliases: ["db", "demo-db-1"] } } },
    },
    network: {
      Name: "demo_default",
      Driver: "bridge",
      CheckDuplicate: true,
      Labels: {
        "com.docker.compose.project": "demo",
        "com.docker.compose.network": "default",
        "dev.harness.sidecar": "default",
      },
    },
    volumes: [
      {
        Name: "demo_data",
        Labels: {
          "com.docker.compose.project": "demo",
          "com.docker.compose.volume": "data",
          "dev.harness.sidecar": "data",
        },
      },
    ],
  });
});

for (const [what, keys, same] of [
  ["the same values", {}, true],
  ["the image", { image: "team/db:2" }, false],
  ["a value of the environment", { environment: { MARK: "two" } }, false],
  ["a port", { ports: [{ host: 81, container: 8080 }] }, false],
  ["the memory limit", { memoryBytes: 65 * 2 ** 20 }, false],
] as const)
  test(`the hash ${same ? "stays" : "changes"} with ${what}`, () => {
    assert.equal(edited(keys).hash === planSidecar(DEMO, "db").hash, same);
  });

const TWO_PORTS = edited({ ports: [80, 81].map((port) => ({ host: port, container: port })) });

for (const [reason, expected] of [
  ["Bind for 127.0.0.1:80 failed: port is already allocated", "127.0.0.1:80 is in use by another program"],
  ["listen tcp4 127.0.0.1:81: bind: address already in use", "127.0.0.1:81 is in use by another program"],
  ["address already in use", "127.0.0.1:80 or 127.0.0.1:81 is in use by another program"],
  ["no space left on device", "no space left on device"],
] as const)
  test(`the engine's "${reason}" is reported as "${expected}"`, () => {
    assert.equal(startFailure(reason, TWO_PORTS), expected);
  });

test("a sidecar that is not serving is a warning that names its replacement", () => {
  assert.deepEqual(
    [
      healthOfSidecar({ service: "qdrant", state: "running", detail: "on 127.0.0.1:6333" }),
      healthOfSidecar({ service: "qdrant", state: "no-image", detail: "no image" }),
      healthOfSidecar({ service: "other", state: "failed", detail: "it ended with 3" }),
    ],
    [
      { id: "sidecar.qdrant", state: "ok", detail: "on 127.0.0.1:6333", remedy: "" },
      {
        id: "sidecar.qdrant",
        state: "warn",
        detail: "no image; the embedded index serves instead",
        remedy: "",
      },
      { id: "sidecar.other", state: "warn", detail: "it ended with 3", remedy: "" },
    ],
  );
});

/*
 * docker-compose.yml, for people, and the values, for harness, say the same.
 */

/** Said by the file alone: what a person who types `docker compose up` gets without naming it. */
const FOR_PEOPLE: Readonly<Record<string, object>> = { qdrant: {}, ollama: { profiles: ["ollama"] } };

const label = (sidecar: string): object => ({ labels: { "dev.harness.sidecar": sidecar } });

/** The values as a compose file says them. */
function asCompose({ name, services }: SidecarProject): unknown {
  const volumes = Object.values(services).flatMap((service) => service.volumes);
  return {
    name,
    services: Object.fromEntries(
      Object.entries(services).map(([service, wanted]) => [
        service,
        { ...composeService(wanted), ...label(service), ...FOR_PEOPLE[service] },
      ]),
    ),
    volumes: Object.fromEntries(volumes.map(({ volume }) => [volume, label(volume)])),
    networks: { default: label("default") },
  };
}

const seconds = (ms: number): string => `${ms / 1000}s`;

const composeService = ({ image, environment, ports, volumes, healthcheck, ...rest }: SidecarService) => ({
  image,
  ...(Object.keys(environment).length === 0 ? {} : { environment }),
  ports: ports.map(({ host, container }) => `127.0.0.1:${host}:${container}`),
  volumes: volumes.map(({ volume, target }) => `${volume}:${target}`),
  ...(healthcheck === undefined
    ? {}
    : {
        healthcheck: {
          test: healthcheck.test.map((word) => word.replaceAll("$", "$$$$")),
          interval: seconds(healthcheck.intervalMs),
          timeout: seconds(healthcheck.timeoutMs),
          retries: healthcheck.retries,
          start_period: seconds(healthcheck.startPeriodMs),
        },
      }),
  mem_limit: `${rest.memoryBytes / 2 ** 30}g`,
  restart: rest.restart,
  cap_drop: ["ALL"],
  security_opt: ["no-new-privileges:true"],
});

const FILE = readFileSync(new URL("../../docker-compose.yml", import.meta.url), "utf8");

test("docker-compose.yml matches what harness starts, service by service and key by key", () => {
  assert.deepEqual(parse(FILE), asCompose(SIDECARS));
});

for (const [what, from, to] of [
  ["another version", "qdrant:v1.19.0", "qdrant:v1.20.0"],
  ["a port on every address", '"127.0.0.1:11434:11434"', '"11434:11434"'],
  ["a missing port", '      - "127.0.0.1:6334:6334"\n', ""],
  ["another limit", "mem_limit: 12g", "mem_limit: 12m"],
  ["another probe", "*' 200'*", "*' 2'*"],
  ["another time", "start_period: 30s", "start_period: 30m"],
  ["another folder", "qdrant_storage:/qdrant/storage", "qdrant_storage:/qdrant"],
  ["a label of another service", "dev.harness.sidecar: ollama_models", "dev.harness.sidecar: qdrant_storage"],
  ["an additional key", "    mem_limit: 1g\n", "    mem_limit: 1g\n    privileged: true\n"],
  ["a right that is kept", "    cap_drop: [ALL]\n", ""],
  ["a missing service", /\n {2}ollama:\n[\s\S]*?\n(?=volumes:)/, "\n"],
] as const)
  test(`a file with ${what} is detected`, () => {
    const planted = FILE.replace(from, to);
    assert.notEqual(planted, FILE);
    assert.notDeepEqual(parse(planted), asCompose(SIDECARS));
  });

test("sidecar images are pinned, and a container's names are fixed", () => {
  for (const { image } of Object.values(SIDECARS.services)) assert.match(image, /^[\w/]+:v?\d+\.\d+\.\d+$/);
  const { name, network, volumes } = planSidecar(SIDECARS, "qdrant");
  assert.deepEqual(
    [name, network.Name, volumes[0]?.Name],
    ["harness-qdrant-1", "harness_default", "harness_qdrant_storage"],
  );
});

for (const [status, healthy] of [
  [200, true],
  [503, false],
] as const)
  test(`qdrant's health check treats the answer ${status} as ${healthy ? "healthy" : "unhealthy"}`, async () => {
    const seen: string[] = [];
    const server = createServer((request, response) => {
      seen.push(request.url ?? "");
      response.writeHead(status).end("all shards are ready");
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    const [, ...words] = SIDECARS.services.qdrant.healthcheck?.test ?? [];
    const port = String((server.address() as AddressInfo).port);
    const [program = "", ...args] = words.map((word) => word.replace("/6333", `/${port}`));
    const { promise, resolve } = Promise.withResolvers<boolean>();
    execFile(program, args, (error) => resolve(error === null));
    const passed = await promise;
    server.close();
    assert.deepEqual({ passed, seen }, { passed: healthy, seen: ["/readyz"] });
  });

const LOCAL = "unix:///var/run/docker.sock";
const engineWith = (runtimes: Readonly<Record<string, object>> | null): Docker =>
  ({ info: () => Promise.resolve({ Runtimes: runtimes }) }) as unknown as Docker;
const plain = engineWith({ runc: {} });

test("with NVIDIA's runtime the engine passes on its card, wherever the engine runs", async () => {
  await using place = await scratch();
  for (const host of [LOCAL, "tcp://elsewhere:2376"])
    assert.deepEqual(await findGpu(engineWith({ runc: {}, nvidia: {} }), host, place.path), {
      kind: "nvidia",
    });
});

test("a card that the engine cannot pass on is distinguished from none", async () => {
  await using place = await scratch({ nvidia0: "", "dri/renderD128": "" });
  assert.deepEqual(await findGpu(plain, LOCAL, place.path), { kind: "not-handed-on" });
  assert.deepEqual(await findGpu(plain, "tcp://elsewhere:2376", place.path), { kind: "none" });
});

test("other cards are devices of this machine, and a screen without a renderer is none", async () => {
  await using amd = await scratch({ "dri/renderD128": "", "dri/card0": "", kfd: "" });
  assert.deepEqual(await findGpu(plain, LOCAL, amd.path), {
    kind: "dri",
    devices: [amd.at("dri"), amd.at("kfd")],
  });
  assert.deepEqual(await findGpu(plain, "ssh://elsewhere", amd.path), { kind: "none" });
  await using screen = await scratch({ "dri/card0": "" });
  assert.deepEqual(await findGpu(plain, LOCAL, screen.path), { kind: "none" });
});

test("an engine without information is not a failure", async () => {
  await using place = await scratch();
  const silent = { info: () => Promise.reject(new Error("no answer")) } as unknown as Docker;
  for (const api of [silent, engineWith(null)])
    assert.deepEqual(await findGpu(api, LOCAL, place.path), { kind: "none" });
});

test("a card is added to the container's plan, which is otherwise unchanged", () => {
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
    "it is recreated when a card appears",
  );
});
