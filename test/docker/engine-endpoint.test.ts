import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import test from "node:test";
import { promisify } from "node:util";
import { endpointsFrom } from "../../src/docker/engine-endpoint.ts";
import { refusalOf } from "../fixtures/refusal.ts";
import { scratch, type Scratch } from "../fixtures/scratch.ts";

type Env = Readonly<Record<string, string>>;

const NAMED = [
  "unix:///var/run/docker.sock",
  "unix:///path/with blank.sock",
  "tcp://127.0.0.1:2375",
  "tcp://engine.example:2376",
  "tcp://[::1]:2375",
  "http://127.0.0.1:2375",
  "https://engine.example",
  "ssh://me@engine.example",
  "ssh://me@engine.example:2222",
  "npipe:////./pipe/docker_engine",
];

for (const host of NAMED)
  test(`DOCKER_HOST ${host} is the only address tried`, async () => {
    const env = { DOCKER_HOST: host, DOCKER_CONTEXT: "other", HOME: "/none" };
    assert.deepEqual(await endpointsFrom(env, 1000), [{ host, origin: "DOCKER_HOST" }]);
  });

const NONSENSE = [
  "unix://relative.sock",
  "unix:",
  "/var/run/docker.sock",
  "docker.sock",
  "127.0.0.1:2375",
  "tcp://",
  "tcp:///path",
  "tcp:127.0.0.1",
  "http://",
  "ssh://",
  "fd://",
  "ftp://host",
  "TCP://host:1",
  " unix:///x",
  "none",
];

for (const host of NONSENSE)
  test(`DOCKER_HOST ${JSON.stringify(host)} ends with 6 and states what is expected`, async () => {
    assert.deepEqual(await refusalOf(() => endpointsFrom({ DOCKER_HOST: host }, 0)), [
      6,
      `DOCKER_HOST: ${JSON.stringify(host)} is not an engine address; expected unix:///path/to.sock, tcp://host:port or ssh://user@host`,
    ]);
  });

const TLS: Readonly<Record<string, readonly [env: Env, tls: string | undefined]>> = {
  "no TLS": [{ DOCKER_CERT_PATH: "/certs" }, undefined],
  "TLS with the named folder": [{ DOCKER_TLS_VERIFY: "1", DOCKER_CERT_PATH: "/certs" }, "/certs"],
  "TLS with the usual folder": [{ DOCKER_TLS_VERIFY: "1" }, "/h/.docker"],
  "TLS with Docker's own folder": [{ DOCKER_TLS_VERIFY: "1", DOCKER_CONFIG: "/d" }, "/d"],
};

for (const [name, [env, tls]] of Object.entries(TLS))
  test(`${Object.keys(env).join(" and ")} mean ${name}`, async () => {
    const host = "tcp://engine.example:2376";
    const found = await endpointsFrom({ DOCKER_HOST: host, HOME: "/h", ...env }, 0);
    assert.deepEqual(found, [{ host, origin: "DOCKER_HOST", ...(tls === undefined ? {} : { tls }) }]);
  });

const socketsOf = (home: string, runtime: string): readonly object[] =>
  [
    "/var/run/docker.sock",
    `${runtime}/docker.sock`,
    `${home}/.docker/run/docker.sock`,
    `${home}/.docker/desktop/docker.sock`,
    `${home}/.orbstack/run/docker.sock`,
    `${home}/.colima/default/docker.sock`,
    `${home}/.rd/docker.sock`,
    `${runtime}/podman/podman.sock`,
    "/run/podman/podman.sock",
  ].map((file) => ({ host: `unix://${file}`, origin: "usual socket" }));

test("without a named address the usual sockets are tried, Docker's before Podman's", async () => {
  await using home = await scratch();
  assert.deepEqual(await endpointsFrom({ HOME: home.path }, 1000), socketsOf(home.path, "/run/user/1000"));
  const env = { HOME: home.path, XDG_RUNTIME_DIR: "/run/mine", DOCKER_HOST: "" };
  assert.deepEqual(await endpointsFrom(env, 1000), socketsOf(home.path, "/run/mine"));
});

const CONTEXT = createHash("sha256").update("lab").digest("hex");
const META = `.docker/contexts/meta/${CONTEXT}/meta.json`;
const metaOf = (host: string): string =>
  JSON.stringify({ Name: "lab", Endpoints: { docker: { Host: host } } });

/** A home whose `docker context use` chose lab, at this address. */
const labAt = (host: string, more: Env = {}): Promise<Scratch> =>
  scratch({ ".docker/config.json": '{"currentContext": "lab"}', [META]: metaOf(host), ...more });

const LAB = { host: "unix:///lab.sock", origin: "docker context lab", context: "lab" };

test("the context that docker uses is the only address tried", async () => {
  await using home = await labAt("unix:///lab.sock");
  assert.deepEqual(await endpointsFrom({ HOME: home.path }, 0), [LAB]);
});

test("DOCKER_CONTEXT takes precedence over the chosen context, and default means the usual sockets", async () => {
  await using home = await scratch({
    ".docker/config.json": '{"currentContext": "other"}',
    [META]: metaOf("unix:///lab.sock"),
  });
  assert.deepEqual(await endpointsFrom({ HOME: home.path, DOCKER_CONTEXT: "lab" }, 0), [LAB]);
  const usual = await endpointsFrom({ HOME: home.path, DOCKER_CONTEXT: "default" }, 0);
  assert.deepEqual(usual, socketsOf(home.path, "/run/user/0"));
});

test("DOCKER_CONFIG names the folder of the contexts", async () => {
  await using place = await labAt("unix:///lab.sock");
  assert.deepEqual(await endpointsFrom({ HOME: "/none", DOCKER_CONFIG: place.at(".docker") }, 0), [LAB]);
});

for (const text of [
  "{}",
  '{"currentContext": ""}',
  '{"currentContext": "default"}',
  '{"currentContext": 5}',
  "[]",
])
  test(`a docker config of ${text} chooses no context`, async () => {
    await using home = await scratch({ ".docker/config.json": text });
    assert.deepEqual(await endpointsFrom({ HOME: home.path }, 0), socketsOf(home.path, "/run/user/0"));
  });

for (const [name, files] of Object.entries({
  "no description": {},
  "a description without an address": { [META]: '{"Name": "lab", "Endpoints": {}}' },
  "a description of a Kubernetes cluster": { [META]: '{"Endpoints": {"kubernetes": {"Host": "x"}}}' },
}))
  test(`a context with ${name} ends with 6 and names it`, async () => {
    await using home = await scratch({ ".docker/config.json": '{"currentContext": "lab"}', ...files });
    assert.deepEqual(await refusalOf(() => endpointsFrom({ HOME: home.path }, 0)), [
      6,
      `docker context lab: its description is missing under ${home.at(".docker")}/contexts`,
    ]);
  });

test("a context with an invalid address ends with 6 and names the context", async () => {
  await using home = await labAt("lab.sock");
  const [exit, message] = await refusalOf(() => endpointsFrom({ HOME: home.path }, 0));
  assert.deepEqual(
    [exit, message.startsWith('docker context lab: "lab.sock" is not an engine address; ')],
    [6, true],
  );
});

test("a docker config that is not JSON ends with 6 and names the file", async () => {
  await using home = await scratch({ ".docker/config.json": "{oops" });
  const [exit, message] = await refusalOf(() => endpointsFrom({ HOME: home.path }, 0));
  assert.deepEqual([exit, message.startsWith(`${home.at(".docker/config.json")}: `)], [6, true]);
});

test("a context with TLS uses its own certificates", async () => {
  const folder = `.docker/contexts/tls/${CONTEXT}/docker`;
  await using home = await labAt("tcp://lab.example:2376", { [`${folder}/ca.pem`]: "pem" });
  const found = await endpointsFrom({ HOME: home.path }, 0);
  assert.deepEqual(found, [{ ...LAB, host: "tcp://lab.example:2376", tls: home.at(folder) }]);
});

test("a context at a socket ignores certificates", async () => {
  const folder = `.docker/contexts/tls/${CONTEXT}/docker`;
  await using home = await labAt("unix:///lab.sock", { [`${folder}/ca.pem`]: "pem" });
  assert.deepEqual(await endpointsFrom({ HOME: home.path }, 0), [LAB]);
});

const EMPTY: Readonly<Record<string, readonly [env: Env, expected: object]>> = {
  DOCKER_CONTEXT: [{ DOCKER_CONTEXT: "" }, LAB],
  DOCKER_CONFIG: [{ DOCKER_CONFIG: "" }, LAB],
  DOCKER_TLS_VERIFY: [
    { DOCKER_HOST: "tcp://127.0.0.1:2375", DOCKER_TLS_VERIFY: "" },
    { host: "tcp://127.0.0.1:2375", origin: "DOCKER_HOST" },
  ],
};

for (const [name, [env, expected]] of Object.entries(EMPTY))
  test(`an empty ${name} counts as unset, as in docker`, async () => {
    await using home = await labAt("unix:///lab.sock");
    assert.deepEqual(await endpointsFrom({ HOME: home.path, ...env }, 0), [expected]);
  });

test("a pipe in place of docker's configuration is ignored", { timeout: 5000 }, async () => {
  await using home = await scratch();
  await promisify(execFile)("mkfifo", [home.at("config.json")]);
  const [first] = await endpointsFrom({ DOCKER_CONFIG: home.path }, 0);
  assert.equal(first?.origin, "usual socket");
});
