import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import test from "node:test";
import { EXIT, HarnessError } from "../../src/core/errors.ts";
import { parseComposeFile } from "../../src/docker/compose/compose-file.ts";

const REAL = new URL("../../docker-compose.yml", import.meta.url);
const real = () => parseComposeFile(readFileSync(REAL, "utf8"), "docker-compose.yml");

test("every key of the subset is read into its typed form", () => {
  const text = `
name: demo
services:
  db:
    image: team/db:1.2.3
    command: serve --fast
    entrypoint: [/bin/db, "-v"]
    environment: { A: text, B: 2, C: true }
    labels: [x=1, y=a=b]
    ports: ["127.0.0.1:80:8080", "[::1]:81:8081/udp"]
    volumes: ["data:/var/data", "seed:/seed:ro"]
    healthcheck: { test: db ping $$HOME, interval: 1m30s, timeout: 500ms, retries: 3, start_period: 10s }
    mem_limit: 256m
    restart: unless-stopped
    profiles: [extra]
    cap_drop: [ALL]
    security_opt: ["no-new-privileges:true"]
    read_only: true
    tmpfs: /tmp:size=8m
    user: 1000
volumes:
  data:
  seed: { labels: { z: "1" } }
networks:
  default: { labels: { n: "1" } }
`;
  assert.deepEqual(parseComposeFile(text, "demo.yml"), {
    path: "demo.yml",
    name: "demo",
    services: {
      db: {
        image: "team/db:1.2.3",
        command: ["serve", "--fast"],
        entrypoint: ["/bin/db", "-v"],
        environment: { A: "text", B: "2", C: "true" },
        labels: { x: "1", y: "a=b" },
        ports: [
          { address: "127.0.0.1", host: 80, container: 8080, protocol: "tcp" },
          { address: "::1", host: 81, container: 8081, protocol: "udp" },
        ],
        volumes: [
          { volume: "data", target: "/var/data", readOnly: false },
          { volume: "seed", target: "/seed", readOnly: true },
        ],
        healthcheck: {
          test: ["CMD-SHELL", "db ping $HOME"],
          interval: 90_000,
          timeout: 500,
          retries: 3,
          start_period: 10_000,
        },
        mem_limit: 256 * 2 ** 20,
        restart: "unless-stopped",
        profiles: ["extra"],
        cap_drop: ["ALL"],
        security_opt: ["no-new-privileges:true"],
        read_only: true,
        tmpfs: ["/tmp:size=8m"],
        user: "1000",
      },
    },
    volumes: { data: { labels: {} }, seed: { labels: { z: "1" } } },
    networks: { default: { labels: { n: "1" } } },
  });
});

test("a service that says nothing more than its image gets the plain values", () => {
  assert.deepEqual(parseComposeFile("name: a\nservices: { s: { image: 'i:1' } }", "a.yml").services, {
    s: {
      image: "i:1",
      environment: {},
      labels: {},
      ports: [],
      volumes: [],
      restart: "no",
      profiles: [],
      cap_drop: [],
      security_opt: [],
      read_only: false,
      tmpfs: [],
    },
  });
});

const service = (rest: string): string => `name: a\nservices: { s: { image: "i:1", ${rest} } }`;
const image = (text: string): string => `name: a\nservices: { s: { image: ${text} } }`;
const LOOPBACK = "services.s.ports.0: expected a port bound to loopback, such as 127.0.0.1:6333:6333";
const PINNED = "services.s.image: expected an image with a version, such as name:1.2.3";
const VOLUME = "services.s.volumes.0: expected a named volume such as data:/var/data or data:/var/data:ro";
const VARIABLE = "variables are not supported; write the value, or $$ for $";

const REFUSED: readonly (readonly [what: string, text: string, start: string])[] = [
  ["an unknown key at the top", "name: a\nservices: {}\nx-a: 1", "x-a: harness does not know this key"],
  ["an unknown key of a service", service("privileged: true"), "services.s.privileged: harness does"],
  [
    "an unknown key of a health check",
    service("healthcheck: {test: a, x: 1}"),
    "services.s.healthcheck.x: h",
  ],
  ["an option of a volume", "name: a\nservices: {}\nvolumes: {v: {external: true}}", "volumes.v.external: h"],
  ["another network", "name: a\nservices: {}\nnetworks: {host: {}}", "networks.host: harness does not know"],
  ["a port on every address", service('ports: ["6333:6333"]'), `${LOOPBACK}, found "6333:6333"`],
  ["a port on 0.0.0.0", service('ports: ["0.0.0.0:1:1"]'), `${LOOPBACK}, found "0.0.0.0:1:1"`],
  ["a port of a neighbour of loopback", service('ports: ["127.0.0.256:1:1"]'), LOOPBACK],
  ["a port beyond the last", service('ports: ["127.0.0.1:70000:1"]'), LOOPBACK],
  ["a range of ports", service('ports: ["127.0.0.1:1-2:1-2"]'), LOOPBACK],
  ["a folder of the host", service('volumes: ["/etc:/etc"]'), `${VOLUME}, found "/etc:/etc"`],
  ["a relative folder", service('volumes: ["./x:/x"]'), VOLUME],
  ["a volume that is not declared", service('volumes: ["v:/x"]'), "services.s.volumes.0: expected a volume"],
  ["a variable", image('"i:${TAG:-1}"'), `services.s.image: ${VARIABLE}`],
  ["a variable without braces", service("command: [echo, $A]"), `services.s.command.1: ${VARIABLE}`],
  ["an image without a version", image("i"), `${PINNED}, found "i"`],
  ["an image that moves", image('"i:latest"'), PINNED],
  ["a registry's port for a version", image('"localhost:5000/i"'), PINNED],
  ["a value from the caller", service("environment: [A]"), "services.s.environment: expected KEY: value"],
  [
    "a bare number as duration",
    service("healthcheck: {test: a, interval: 5}"),
    "services.s.healthcheck.interval: expected",
  ],
  ["quotes in a line of words", service(`command: "sh -c 'a b'"`), "services.s.command: expected a list"],
  [
    "a probe that says not what it is",
    service("healthcheck: {test: [a]}"),
    "services.s.healthcheck.test: ex",
  ],
  ["a size of nothing", service("mem_limit: 0"), "services.s.mem_limit: expected a size such as 256m"],
  ["no services", "name: a", "services: expected a map, found nothing"],
  ["no project name", "services: {}", "name: expected a project name, found nothing"],
  ["a list for a service", "name: a\nservices: { s: [] }", "services.s: expected a map, found []"],
  ["no text", "", "(top): expected a map, found null"],
  ["the same key twice", "name: a\nname: b", "Map keys must be unique at line 2, column 1"],
  ["broken YAML", "a: [", "Flow sequence in block collection"],
  ["an alias to nothing", "name: *x\nservices: {}", "Unresolved alias"],
];

/** The message of the error of usage that the text ends in. */
function refusalOf(text: string): string {
  try {
    parseComposeFile(text, "some.yml");
    return "nothing was refused";
  } catch (thrown) {
    if (thrown instanceof HarnessError && thrown.exit === EXIT.usage) return thrown.message;
    throw thrown;
  }
}

for (const [what, text, start] of REFUSED)
  test(`${what} is refused, with file and key`, () => {
    const expected = `some.yml: ${start}`;
    assert.equal(refusalOf(text).slice(0, expected.length), expected);
  });

test("the real file is bound to loopback, pinned, limited, watched, and every part carries our label", () => {
  const { services, volumes, networks } = real();
  const picture = Object.entries(services).map(([name, s]) => ({
    name,
    image: s.image,
    profiles: s.profiles,
    ports: s.ports.map(({ address, host }) => `${address}:${host}`),
    limited: (s.mem_limit ?? 0) > 0,
    watched: s.healthcheck !== undefined,
    label: s.labels["dev.harness.sidecar"],
  }));
  assert.deepEqual(picture, [
    {
      name: "qdrant",
      image: "qdrant/qdrant:v1.19.0",
      profiles: [],
      ports: ["127.0.0.1:6333", "127.0.0.1:6334"],
      limited: true,
      watched: true,
      label: "qdrant",
    },
    {
      name: "ollama",
      image: "ollama/ollama:0.32.15",
      profiles: ["ollama"],
      ports: ["127.0.0.1:11434"],
      limited: true,
      watched: true,
      label: "ollama",
    },
  ]);
  assert.deepEqual(
    { volumes, networks },
    {
      volumes: {
        qdrant_storage: { labels: { "dev.harness.sidecar": "qdrant_storage" } },
        ollama_models: { labels: { "dev.harness.sidecar": "ollama_models" } },
      },
      networks: { default: { labels: { "dev.harness.sidecar": "default" } } },
    },
  );
});

for (const [status, healthy] of [
  [200, true],
  [503, false],
] as const)
  test(`qdrant's health check takes an answer of ${status} as ${healthy ? "healthy" : "unhealthy"}`, async () => {
    const seen: string[] = [];
    const server = createServer((request, response) => {
      seen.push(request.url ?? "");
      response.writeHead(status).end("all shards are ready");
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    const [, ...probe] = real().services["qdrant"]?.healthcheck?.test ?? [];
    const port = String((server.address() as AddressInfo).port);
    const [program = "", ...args] = probe.map((word) => word.replace("/6333", `/${port}`));
    const { promise, resolve } = Promise.withResolvers<boolean>();
    execFile(program, args, (error) => resolve(error === null));
    const passed = await promise;
    server.close();
    assert.deepEqual({ passed, seen }, { passed: healthy, seen: ["/readyz"] });
  });
