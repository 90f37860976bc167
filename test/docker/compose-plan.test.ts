import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { EXIT, HarnessError } from "../../src/core/errors.ts";
import { parseComposeFile } from "../../src/docker/compose/compose-file.ts";
import { startFailure, planSidecars } from "../../src/docker/compose/compose-plan.ts";
import { healthOfSidecar } from "../../src/docker/compose/sidecar.ts";

const TEXT = `
name: demo
services:
  db:
    image: team/db:1
    command: [serve]
    environment: { MARK: one }
    labels: { mine: "1" }
    ports: ["127.0.0.1:80:8080", "[::1]:80:8080"]
    volumes: ["data:/data", "data:/again:ro"]
    healthcheck: { test: [CMD, ping], interval: 10s, timeout: 3s, retries: 4, start_period: 1m }
    mem_limit: 64m
    restart: unless-stopped
    cap_drop: [ALL]
    security_opt: ["no-new-privileges:true"]
    read_only: true
    tmpfs: [/run, "/tmp:size=8m"]
    user: "7:7"
  extra: { image: "team/extra:2", entrypoint: [/x], profiles: [more] }
volumes: { data: }
`;
const file = parseComposeFile(TEXT, "demo.yml");
const edited = (from: string, to: string) => parseComposeFile(TEXT.replace(from, to), "demo.yml");

test("a service becomes what the engine is asked for, named and labelled as compose does", () => {
  const [plan, ...others] = planSidecars(file);
  assert.equal(others.length, 0);
  assert.match(plan?.hash ?? "", /^[0-9a-f]{64}$/);
  const dataVolume = {
    Name: "demo_data",
    Labels: {
      "com.docker.compose.project": "demo",
      "com.docker.compose.volume": "data",
      "dev.harness.sidecar": "data",
    },
  };
  assert.deepEqual(plan, {
    service: "db",
    project: "demo",
    image: "team/db:1",
    name: "demo-db-1",
    hash: plan?.hash,
    addresses: ["127.0.0.1:80", "[::1]:80"],
    container: {
      name: "demo-db-1",
      Image: "team/db:1",
      Env: ["MARK=one"],
      Cmd: ["serve"],
      User: "7:7",
      Healthcheck: { Test: ["CMD", "ping"], Interval: 1e10, Timeout: 3e9, StartPeriod: 6e10, Retries: 4 },
      Labels: {
        mine: "1",
        "com.docker.compose.project": "demo",
        "com.docker.compose.service": "db",
        "com.docker.compose.container-number": "1",
        "com.docker.compose.oneoff": "False",
        "com.docker.compose.config-hash": plan?.hash,
        "dev.harness.sidecar": "db",
      },
      ExposedPorts: { "8080/tcp": {} },
      HostConfig: {
        NetworkMode: "demo_default",
        PortBindings: {
          "8080/tcp": [
            { HostIp: "127.0.0.1", HostPort: "80" },
            { HostIp: "::1", HostPort: "80" },
          ],
        },
        Mounts: [
          { Type: "volume", Source: "demo_data", Target: "/data", ReadOnly: false },
          { Type: "volume", Source: "demo_data", Target: "/again", ReadOnly: true },
        ],
        Memory: 64 * 2 ** 20,
        RestartPolicy: { Name: "unless-stopped" },
        CapDrop: ["ALL"],
        SecurityOpt: ["no-new-privileges:true"],
        ReadonlyRootfs: true,
        Tmpfs: { "/run": "", "/tmp": "size=8m" },
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
    volumes: [dataVolume, dataVolume],
  });
});

test("what the file leaves open is left to the image and the engine", () => {
  const [plan] = planSidecars(file, ["extra"]);
  const { Cmd, Entrypoint, User, Healthcheck, HostConfig } = plan?.container ?? {};
  assert.deepEqual(
    { Cmd, Entrypoint, User, Healthcheck, HostConfig },
    {
      Cmd: undefined,
      Entrypoint: ["/x"],
      User: undefined,
      Healthcheck: undefined,
      HostConfig: {
        NetworkMode: "demo_default",
        PortBindings: {},
        Mounts: [],
        RestartPolicy: { Name: "no" },
        CapDrop: [],
        SecurityOpt: [],
        ReadonlyRootfs: false,
        Tmpfs: {},
      },
    },
  );
});

const namesOf = (names?: readonly string[]): readonly string[] =>
  planSidecars(file, names).map(({ service }) => service);

test("a service under a profile is planned only by name, and no name at all is no service", () => {
  assert.deepEqual(
    [namesOf(), namesOf(["extra"]), namesOf(["extra", "db"]), namesOf([])],
    [["db"], ["extra"], ["extra", "db"], []],
  );
});

for (const name of ["cache", "constructor"])
  test(`asking for the service ${name}, which the file does not hold, is an error of usage`, () => {
    const expected = { exit: EXIT.usage, message: `demo.yml: no service ${name}; there is db, extra` };
    assert.throws(
      () => planSidecars(file, [name]),
      (thrown) => {
        assert.ok(thrown instanceof HarnessError);
        assert.deepEqual({ exit: thrown.exit, message: thrown.message }, expected);
        return true;
      },
    );
  });

for (const [what, from, to, same] of [
  ["the same text", "x", "x", true],
  ["a comment", "name: demo", "# new\nname: demo", true],
  ["another service's image", "team/extra:2", "team/extra:3", true],
  ["the image", "team/db:1", "team/db:2", false],
  ["a value of the environment", "MARK: one", "MARK: two", false],
  ["a port", "127.0.0.1:80:", "127.0.0.1:81:", false],
  ["the memory limit", "64m", "65m", false],
  ["a label", 'mine: "1"', 'mine: "2"', false],
] as const)
  test(`the hash ${same ? "stays" : "changes"} with ${what}`, () => {
    const before = planSidecars(file)[0]?.hash;
    assert.equal(planSidecars(edited(from, to))[0]?.hash === before, same);
  });

for (const [reason, expected] of [
  ["Bind for 127.0.0.1:80 failed: port is already allocated", "127.0.0.1:80 is in use by another program"],
  ["listen tcp6 [::1]:80: bind: address already in use", "[::1]:80 is in use by another program"],
  ["address already in use", "127.0.0.1:80 or [::1]:80 is in use by another program"],
  ["no space left on device", "no space left on device"],
] as const)
  test(`the engine's "${reason}" is told as "${expected}"`, () => {
    const [plan] = planSidecars(file);
    assert.ok(plan);
    assert.equal(startFailure(reason, plan), expected);
  });

test("a sidecar that does not serve is a warning that says what serves instead", () => {
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

test("the real file gives one container by default, harness-qdrant-1", () => {
  const path = new URL("../../docker-compose.yml", import.meta.url);
  const real = parseComposeFile(readFileSync(path, "utf8"), "docker-compose.yml");
  assert.deepEqual(
    planSidecars(real).map(({ name, network, volumes }) => [name, network.Name, volumes[0]?.Name]),
    [["harness-qdrant-1", "harness_default", "harness_qdrant_storage"]],
  );
});
