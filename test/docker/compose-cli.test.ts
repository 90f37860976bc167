import assert from "node:assert/strict";
import { chmod, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import test from "node:test";
import { composeUp, findCompose } from "../../src/docker/compose/compose-cli.ts";

const ENDPOINT = { host: "tcp://engine.test:2376", origin: "docker context far", tls: "/certs" };
const VERSION = "echo Docker Compose version v2.40.3";

/** A folder with a scripted `docker` that first writes down how it was called. */
async function scripted(
  body: string,
): Promise<AsyncDisposable & { env: Record<string, string>; log: string }> {
  const folder = await mkdtemp(path.join(tmpdir(), "harness-compose-"));
  const log = path.join(folder, "log");
  const told = `"$*|$DOCKER_HOST|$DOCKER_CONTEXT|$DOCKER_TLS_VERIFY|$DOCKER_CERT_PATH|$KEPT"`;
  const file = path.join(folder, "docker");
  await writeFile(file, `#!/bin/sh\necho ${told} >> ${log}\n${body}\n`);
  await chmod(file, 0o755);
  const env = {
    PATH: `${folder}:/usr/bin:/bin`,
    DOCKER_CONTEXT: "near",
    DOCKER_CERT_PATH: "/old",
    KEPT: "yes",
  };
  return { env, log, [Symbol.asyncDispose]: () => rm(folder, { recursive: true }) };
}

test("compose is called with project, file and service, and led to the engine that was found", async () => {
  await using docker = await scripted(VERSION);
  const compose = await findCompose(ENDPOINT, docker.env);
  assert.equal(compose?.version, "2.40.3");
  const target = { project: "demo", file: "/x/docker-compose.yml", service: "qdrant" };
  assert.equal(await composeUp(compose, target), undefined);
  assert.deepEqual((await readFile(docker.log, "utf8")).trimEnd().split("\n"), [
    "compose version|tcp://engine.test:2376||1|/certs|yes",
    "compose -p demo -f /x/docker-compose.yml up -d qdrant|tcp://engine.test:2376||1|/certs|yes",
  ]);
});

test("TLS settings of another engine are not passed to one without TLS", async () => {
  await using docker = await scripted(VERSION);
  await findCompose({ host: "unix:///run/e.sock", origin: "DOCKER_HOST" }, docker.env);
  assert.equal(await readFile(docker.log, "utf8"), "compose version|unix:///run/e.sock||||yes\n");
});

for (const [what, body] of [
  ["docker does not know the command", "echo unknown command: docker compose >&2; exit 1"],
  ["docker prints its help instead", "echo Usage: docker COMMAND"],
  ["another program answers for it", "echo podman-compose version 1.5.0"],
  ["it is the first version", "echo Docker Compose version v1.29.2"],
  ["it does not answer in time", "exec sleep 60"],
] as const)
  test(`there is no compose where ${what}`, async () => {
    await using docker = await scripted(body);
    assert.equal(await findCompose(ENDPOINT, docker.env), undefined);
  });

test("there is no compose where there is no docker", async () => {
  assert.equal(await findCompose(ENDPOINT, { PATH: "/nowhere" }), undefined);
});

test("a failure is told in compose's words, on one line", async () => {
  const body = `[ "$2" = version ] && { ${VERSION}; exit; }; printf 'first\\nlast \\033[31mred\\n' >&2; exit 14`;
  await using docker = await scripted(body);
  const compose = await findCompose(ENDPOINT, docker.env);
  assert.ok(compose);
  const failure = await composeUp(compose, { project: "p", file: "f", service: "s" });
  assert.equal(failure, "docker compose ended with 14: first last [31mred");
});

test("an aborted start ends at once", async () => {
  await using docker = await scripted(`[ "$2" = version ] && { ${VERSION}; exit; }; exec sleep 60`);
  const compose = await findCompose(ENDPOINT, docker.env);
  assert.ok(compose);
  const target = { project: "p", file: "f", service: "s" };
  const failure = await composeUp(compose, target, AbortSignal.timeout(100));
  assert.match(failure ?? "", /^docker compose ended with/);
});
