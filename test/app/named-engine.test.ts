import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import test from "node:test";
import { hostAt, hostFrom, namedEngine, settingsOnEngine } from "../../src/app/host.ts";
import { loadConfig } from "../../src/config/load-config.ts";
import { endpointsFrom } from "../../src/docker/engine-endpoint.ts";
import { refusalOf } from "../fixtures/refusal.ts";
import { scratch, type Scratch } from "../fixtures/scratch.ts";

const CONFIG = ".config/harness/config.json";

type Env = Readonly<Record<string, string>>;
const envOf = (place: Scratch, env: Env = {}): Env => ({ HOME: place.path, ...env });

async function contextAt(place: Scratch, name: string, docker: object): Promise<void> {
  const id = createHash("sha256").update(name).digest("hex");
  const meta = { Name: name, Endpoints: { docker } };
  await place.write(`.docker/contexts/meta/${id}/meta.json`, JSON.stringify(meta));
}

async function first(host: ReturnType<typeof hostFrom>): Promise<unknown> {
  const [endpoint] = await endpointsFrom(host.env, 0, await namedEngine(host));
  return endpoint;
}

test("the flag takes precedence over the variable, the variable over the settings, and all over DOCKER_HOST", async () => {
  await using place = await scratch();
  await place.write(CONFIG, '{"engine": "tcp://of.file:1"}');
  const docker = { DOCKER_HOST: "unix:///d.sock" };
  const env = envOf(place, { ...docker, HARNESS_ENGINE: "tcp://of.variable:1" });
  assert.deepEqual(await first(hostFrom(env, "tcp://of.flag:1")), {
    host: "tcp://of.flag:1",
    origin: "--engine",
  });
  assert.deepEqual(await first(hostFrom(env)), { host: "tcp://of.variable:1", origin: "HARNESS_ENGINE" });
  assert.deepEqual(await first(hostFrom(envOf(place, docker))), {
    host: "tcp://of.file:1",
    origin: place.at(CONFIG),
  });
  await place.write(CONFIG, "{}");
  assert.deepEqual(await first(hostFrom(envOf(place, docker))), {
    host: "unix:///d.sock",
    origin: "DOCKER_HOST",
  });
});

test("a docker context is found by name without the docker program, with its certificates", async () => {
  await using place = await scratch();
  await contextAt(place, "lab", { Host: "tcp://lab.example:2376" });
  const tls = `.docker/contexts/tls/${createHash("sha256").update("lab").digest("hex")}/docker`;
  await place.write(`${tls}/ca.pem`, "pem");
  const host = hostFrom(envOf(place, { DOCKER_HOST: "unix:///d.sock" }), "lab");
  assert.deepEqual(await endpointsFrom(host.env, 0, await namedEngine(host)), [
    { host: "tcp://lab.example:2376", origin: "docker context lab", context: "lab", tls: place.at(tls) },
  ]);
  const usual = hostFrom(envOf(place, { DOCKER_HOST: "unix:///d.sock" }), "default");
  assert.deepEqual(await endpointsFrom(usual.env, 0, await namedEngine(usual)), [
    { host: "unix:///d.sock", origin: "DOCKER_HOST" },
  ]);
});

test("a context that does not exist ends with 2 and names those that do", async () => {
  await using place = await scratch();
  await contextAt(place, "lab", { Host: "unix:///lab.sock" });
  await contextAt(place, "attic", { Host: "unix:///attic.sock" });
  const host = hostFrom(envOf(place), "cellar");
  const named = await namedEngine(host);
  assert.deepEqual(await refusalOf(() => endpointsFrom(host.env, 0, named)), [
    2,
    "--engine: there is no docker context cellar; there are attic, lab",
  ]);
});

test("a context that does not verify its engine's certificate is refused", async () => {
  await using place = await scratch();
  await contextAt(place, "lab", { Host: "tcp://lab.example:2376", SkipTLSVerify: true });
  const host = hostFrom(envOf(place), "lab");
  const named = await namedEngine(host);
  const [exit, message] = await refusalOf(() => endpointsFrom(host.env, 0, named));
  assert.equal(exit, 6);
  assert.match(message, /turns off the verification/);
});

/** The isolation in force, of what was asked for on what engine. */
async function isolationOn(place: Scratch, env: Env, flags: Env = {}): Promise<string> {
  const given = Object.entries(flags).map(
    ([key, value]) => [`--${key}`, { key: key as "engine" | "isolation", value }] as const,
  );
  const request = { env: envOf(place, env), project: undefined, flags: new Map(given) };
  const config = await loadConfig(request);
  return (await settingsOnEngine(hostFrom(request.env), config)).settings.isolation;
}

const ELSEWHERE: readonly (readonly [Env, Env])[] = [
  [{}, { engine: "ssh://me@there" }],
  [{}, { engine: "tcp://there:2376" }],
  [{}, { engine: "tcp://127.0.0.1:2376" }],
  [{}, { engine: "https://there" }],
  [{}, { engine: "kubernetes://lab" }],
  [{}, { engine: "lab" }],
  [{ HARNESS_ENGINE: "ssh://there" }, {}],
  [{ DOCKER_HOST: "ssh://there" }, {}],
  [{ DOCKER_HOST: "tcp://there:2375" }, {}],
  [{ DOCKER_HOST: "tcp://127.0.0.1:2376", DOCKER_TLS_VERIFY: "1" }, {}],
  [{ DOCKER_CONTEXT: "lab" }, {}],
];

for (const [env, flags] of ELSEWHERE)
  test(`a box works on a copy when the engine is remote: ${JSON.stringify({ ...env, ...flags })}`, async () => {
    await using place = await scratch();
    await contextAt(place, "lab", { Host: "ssh://me@lab.example" });
    assert.equal(await isolationOn(place, env, flags), "copy");
    assert.equal(await isolationOn(place, env, { ...flags, isolation: "copy" }), "copy");
    for (const isolation of ["bind", "overlay"]) {
      const [exit, message] = await refusalOf(() => isolationOn(place, env, { ...flags, isolation }));
      assert.equal(exit, 2);
      assert.match(message, /^isolation \w+ \(from --isolation\): the .* cannot see this machine's files/);
    }
  });

const HERE: readonly (readonly [Env, Env])[] = [
  [{}, {}],
  [{}, { engine: "unix:///run/user/1000/docker.sock" }],
  [{}, { engine: "near" }],
  [{}, { engine: "default" }],
  [{ DOCKER_HOST: "unix:///d.sock" }, {}],
  [{ DOCKER_HOST: "tcp://127.0.0.1:2375" }, {}],
  [{ DOCKER_HOST: "no address" }, {}],
];

for (const [env, flags] of HERE)
  test(`a box works on the folder itself when the engine is local: ${JSON.stringify({ ...env, ...flags })}`, async () => {
    await using place = await scratch();
    await contextAt(place, "near", { Host: "unix:///near.sock" });
    assert.equal(await isolationOn(place, env, flags), "bind");
    assert.equal(await isolationOn(place, env, { ...flags, isolation: "overlay" }), "overlay");
  });

test("a trusted project cannot choose the engine", async () => {
  await using place = await scratch();
  const project = { file: place.at("p.json"), text: '{"engine": "ssh://theirs"}', trusted: true };
  const config = await loadConfig({ env: envOf(place), project, flags: new Map() });
  assert.equal(config.settings.engine, null);
});

const engineOf = async (host: ReturnType<typeof hostFrom>, at: string | undefined): Promise<unknown> =>
  (await hostAt(host, { at })).engine;

test("a session's changes are looked up on the engine that has them, unless the command line names one", async () => {
  await using place = await scratch();
  const [far, here] = ["ssh://dev@far.test", "unix:///d.sock"];
  const env = envOf(place, { DOCKER_HOST: here });
  assert.equal(await engineOf(hostFrom(env), far), far);
  assert.equal(await engineOf(hostFrom({ ...env, HARNESS_ENGINE: "kubernetes:" }), far), far);
  // It would be asked anyway, perhaps with what belongs to a context.
  assert.equal(await engineOf(hostFrom(env), here), null);
  assert.equal(await engineOf(hostFrom({ ...env, HARNESS_ENGINE: far }), far), null);
  assert.equal(await engineOf(hostFrom(env, "tcp://of.flag:1"), far), "tcp://of.flag:1");
  for (const unknown of [undefined, "npipe:////./pipe/docker"])
    assert.equal(await engineOf(hostFrom(env), unknown), null);
});

test("an engine named by a docker context is found through that context as long as its address matches", async () => {
  await using place = await scratch();
  const at = "tcp://lab.example:2376";
  await contextAt(place, "lab", { Host: at });
  const host = hostFrom(envOf(place, { DOCKER_HOST: "unix:///d.sock" }));
  assert.equal((await hostAt(host, { at, context: "lab" })).engine, "lab");
  await contextAt(place, "lab", { Host: "tcp://other.example:2376" });
  assert.equal((await hostAt(host, { at, context: "lab" })).engine, at);
  assert.equal((await hostAt(host, { at, context: "gone" })).engine, at);
});
