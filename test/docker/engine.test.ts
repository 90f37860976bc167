import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { chmod, rename } from "node:fs/promises";
import path from "node:path";
import test from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { promisify } from "node:util";
import { type Engine, findEngine, hostFacts, isEngine, type NoEngine } from "../../src/docker/engine.ts";
import { refusalOf } from "../fixtures/refusal.ts";
import { scratch } from "../fixtures/scratch.ts";
import { type Loopback, onConnection, onRequest, versionAnswer } from "./loopback.ts";

const DOCKER = JSON.stringify({
  Version: "28.1.0",
  ApiVersion: "1.49",
  Arch: "amd64",
  Components: [{ Name: "Engine" }, { Name: "runc" }],
});
const PODMAN = JSON.stringify({
  Version: "5.4.0",
  ApiVersion: "1.41",
  Arch: "arm64",
  Components: [{ Name: "Podman Engine" }, { Name: "Conmon" }],
});

const plain = (found: Engine | NoEngine): object =>
  isEngine(found) ? { endpoint: found.endpoint, version: found.version } : found;

const at = async ({ host }: Loopback): Promise<object> => plain(await findEngine({ DOCKER_HOST: host }, 0));
const origin = "DOCKER_HOST";

for (const [text, version] of [
  [DOCKER, { name: "Docker", version: "28.1.0", api: "1.49", arch: "amd64" }],
  [PODMAN, { name: "Podman", version: "5.4.0", api: "1.41", arch: "arm64" }],
] as const)
  test(`an engine that answers as ${version.name} is found as that, by port and by socket`, async () => {
    await using place = await scratch();
    await using port = await onRequest(versionAnswer(200, text));
    await using socket = await onRequest(versionAnswer(200, text), place.at("engine.sock"));
    const found = [await at(port), await at(socket)];
    const expected = [port, socket].map(({ host }) => ({ endpoint: { host, origin }, version }));
    assert.deepEqual(found, expected);
  });

test("a socket that is not there is absent", async () => {
  await using place = await scratch();
  const host = `unix://${place.at("none.sock")}`;
  assert.deepEqual(await findEngine({ DOCKER_HOST: host }, 0), {
    kind: "absent",
    host,
    origin,
    reason: `connect ENOENT ${place.at("none.sock")}`,
  });
});

test("a socket whose engine is gone is dead", async () => {
  await using place = await scratch();
  const kept = place.at("kept.sock");
  {
    await using listening = await onConnection(() => undefined, place.at("engine.sock"));
    assert.equal(listening.open(), 0);
    await rename(place.at("engine.sock"), kept);
  }
  const host = `unix://${kept}`;
  const reason = `connect ECONNREFUSED ${kept}`;
  assert.deepEqual(await findEngine({ DOCKER_HOST: host }, 0), { kind: "dead", host, origin, reason });
});

const DEAD: Readonly<Record<string, readonly [answer: () => Promise<Loopback>, reason: RegExp]>> = {
  "speaks no HTTP": [
    () => onConnection((socket) => socket.end("SSH-2.0-OpenSSH\r\n")),
    /Parse Error|hang up/,
  ],
  "hangs up": [() => onConnection((socket) => socket.destroy()), /hang up|ECONNRESET/],
  "answers with an error": [() => onRequest(versionAnswer(500, '{"message": "no disk"}')), /500.*no disk/],
  "answers that it wants a login": [() => onRequest(versionAnswer(401, '{"message": "who?"}')), /401/],
};

for (const [name, [answer, reason]] of Object.entries(DEAD))
  test(`what ${name} is dead`, async () => {
    await using loopback = await answer();
    const found = await findEngine({ DOCKER_HOST: loopback.host }, 0);
    assert.ok(!isEngine(found));
    const { kind, host } = found;
    assert.deepEqual({ kind, host, origin: found.origin }, { kind: "dead", host: loopback.host, origin });
    assert.match(found.reason, reason);
  });

for (const body of ["<html>router login</html>", "", "null", "[]", "{}", '{"Version": 5}'])
  test(`a server that answers ${JSON.stringify(body)} is no engine`, async () => {
    await using loopback = await onRequest(versionAnswer(200, body));
    const { kind } = (await at(loopback)) as NoEngine;
    assert.equal(kind, "dead");
  });

for (const host of ["tcp://:2375", "tcp://127.0.0.1:99999", "tcp://a b:1"])
  test(`${host} is an address that cannot be dialled, and dead`, async () => {
    const reason = "Invalid URL";
    assert.deepEqual(await findEngine({ DOCKER_HOST: host }, 0), { kind: "dead", host, origin, reason });
  });

test("certificates that are not there make the engine no use, and the file is named", async () => {
  await using place = await scratch();
  const env = { DOCKER_HOST: "tcp://127.0.0.1:1", DOCKER_TLS_VERIFY: "1", DOCKER_CERT_PATH: place.path };
  const found = await findEngine(env, 0);
  assert.ok(!isEngine(found) && found.reason.includes(place.at("ca.pem")), JSON.stringify(plain(found)));
});

/** Waits, without a timer, until a connection is there. */
async function connected(loopback: Loopback): Promise<void> {
  while (loopback.open() === 0) await turn();
}

test("a silent engine is given up after ten seconds", async (context) => {
  await using loopback = await onConnection(() => undefined);
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const finding = at(loopback);
  await connected(loopback);
  context.mock.timers.tick(10_000);
  const { host } = loopback;
  assert.deepEqual(await finding, { kind: "dead", host, origin, reason: "no answer within 10 s" });
});

for (const way of ["port", "socket"])
  test(
    `a silent engine that was given up does not keep the program from ending, by a ${way}`,
    { timeout: 60_000 },
    async (context) => {
      await using place = await scratch();
      const socket = way === "socket" ? place.at("engine.sock") : undefined;
      await using loopback = await onConnection((client) => client.resume(), socket);
      context.mock.timers.enable({ apis: ["setTimeout"] });
      const finding = at(loopback);
      await connected(loopback);
      context.mock.timers.tick(10_000);
      await finding;
      while (loopback.open() > 0) await turn();
    },
  );

const SYSTEM = "/var/run/docker.sock";
const skip = existsSync(SYSTEM) && `${SYSTEM} is here and goes before the sockets of this test`;

test("of the usual sockets the first that answers is taken, whatever lies before it", { skip }, async () => {
  await using home = await scratch({ ".docker/run/docker.sock": "a plain file" });
  await home.write(".docker/desktop/.keep", "");
  await using engine = await onRequest(versionAnswer(200, DOCKER), home.at(".docker/desktop/docker.sock"));
  const found = await findEngine({ HOME: home.path, XDG_RUNTIME_DIR: home.at("run") }, 0);
  assert.ok(isEngine(found));
  assert.deepEqual(found.endpoint, { host: engine.host, origin: "usual socket" });
});

const NOBODY = 65_534;

test("a socket that this user may not open is denied", async () => {
  await using place = await scratch();
  await chmod(place.path, 0o755);
  await using loopback = await onRequest(versionAnswer(200, DOCKER), place.at("engine.sock"));
  await chmod(place.at("engine.sock"), 0o600);
  if (process.getuid?.() !== 0) await chmod(place.at("engine.sock"), 0o000);
  const source = path.join(import.meta.dirname, "../../src/docker/engine.ts");
  // Root steps down only once the sources are read: the clone may lie in a folder that is root's alone.
  const program = `import { findEngine } from ${JSON.stringify(source)};
    if (process.getuid?.() === 0) process.setuid(${NOBODY});
    process.stdout.write(JSON.stringify(await findEngine(process.env, 0)));`;
  const env = { DOCKER_HOST: loopback.host };
  const words = ["--input-type=module", "--eval", program];
  const { stdout } = await promisify(execFile)(process.execPath, words, { env, cwd: "/" });
  const reason = `connect EACCES ${place.at("engine.sock")}`;
  assert.deepEqual(JSON.parse(stdout), { kind: "denied", host: loopback.host, origin, reason });
});

const INFO = { NCPU: 3, CgroupVersion: "2", MemoryLimit: true, PidsLimit: true };

const named = (name: string, info: object, host = "unix:///none", by = "DOCKER_HOST"): Engine =>
  ({
    version: { name, version: "5.4.0", api: "1.41", arch: "amd64" },
    endpoint: { host, origin: by },
    api: { info: () => Promise.resolve(info) },
  }) as unknown as Engine;

test("Podman holds boxes where it sets limits and its files can be read, rootless or not", async () => {
  assert.deepEqual((await hostFacts(named("Podman", INFO))).podman, { rootless: false });
  assert.deepEqual((await hostFacts(named("Podman", { ...INFO, Rootless: true }))).podman, {
    rootless: true,
  });
  assert.equal((await hostFacts(named("Docker", { NCPU: 3 }))).podman, undefined);
});

for (const [info, host, why, by] of [
  [INFO, undefined, /only if DOCKER_HOST or --engine names it/, "usual socket"],
  [{ ...INFO, Rootless: true, CgroupVersion: "1" }, undefined, /rootless, it sets no limits on memory/],
  [{ ...INFO, MemoryLimit: false }, undefined, /it sets no limit on memory here/],
  [INFO, "tcp://there:2375", /verified by files of its machine/],
] as const)
  test(`Podman is refused before anything is made: ${why.source}`, async () => {
    const [exit, message] = await refusalOf(() => hostFacts(named("Podman", info, host, by)));
    assert.equal(exit, 6);
    assert.match(message, /^no box on Podman 5\.4\.0 at .*docs\/engines\.md/);
    assert.match(message, why);
  });
