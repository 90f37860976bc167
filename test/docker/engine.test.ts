import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { chmod, rename } from "node:fs/promises";
import path from "node:path";
import test from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { promisify } from "node:util";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import {
  type Bounds,
  type Engine,
  engineClient,
  engineFailure,
  findEngine,
  hostFacts,
  isEngine,
  type NoEngine,
  EnginePatience,
} from "../../src/docker/engine.ts";
import { refusalOf } from "../fixtures/refusal.ts";
import { scratch } from "../fixtures/scratch.ts";
import { type Loopback, onConnection, onRequest, versionAnswer } from "./loopback.ts";
import { containerSpec } from "../../src/docker/container-spec.ts";
import { boxPlan } from "../fixtures/boxes.ts";
import { waited } from "../fixtures/waited.ts";

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
  test(`an engine that answers as ${version.name} is recognised, by port and by socket`, async () => {
    await using place = await scratch();
    await using port = await onRequest(versionAnswer(200, text));
    await using socket = await onRequest(versionAnswer(200, text), place.at("engine.sock"));
    const found = [await at(port), await at(socket)];
    const expected = [port, socket].map(({ host }) => ({ endpoint: { host, origin }, version }));
    assert.deepEqual(found, expected);
  });

test("a missing socket is absent", async () => {
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
  "does not speak HTTP": [
    () => onConnection((socket) => socket.end("SSH-2.0-OpenSSH\r\n")),
    /Parse Error|hang up/,
  ],
  "hangs up": [() => onConnection((socket) => socket.destroy()), /hang up|ECONNRESET/],
  "answers with an error": [() => onRequest(versionAnswer(500, '{"message": "no disk"}')), /500.*no disk/],
  "answers that it wants a login": [() => onRequest(versionAnswer(401, '{"message": "who?"}')), /401/],
};

for (const [name, [answer, reason]] of Object.entries(DEAD))
  test(`a server that ${name} is dead`, async () => {
    await using loopback = await answer();
    const found = await findEngine({ DOCKER_HOST: loopback.host }, 0);
    assert.ok(!isEngine(found));
    const { kind, host } = found;
    assert.deepEqual({ kind, host, origin: found.origin }, { kind: "dead", host: loopback.host, origin });
    assert.match(found.reason, reason);
  });

for (const body of ["<html>router login</html>", "", "null", "[]", "{}", '{"Version": 5}'])
  test(`a server that answers ${JSON.stringify(body)} is not an engine`, async () => {
    await using loopback = await onRequest(versionAnswer(200, body));
    const { kind } = (await at(loopback)) as NoEngine;
    assert.equal(kind, "dead");
  });

for (const host of ["tcp://:2375", "tcp://127.0.0.1:99999", "tcp://a b:1"])
  test(`${host} is an invalid address, and dead`, async () => {
    const reason = "Invalid URL";
    assert.deepEqual(await findEngine({ DOCKER_HOST: host }, 0), { kind: "dead", host, origin, reason });
  });

test("missing certificates make the engine unusable, and the file is named", async () => {
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
  waited(context.mock.timers, 10_000);
  const { host } = loopback;
  assert.deepEqual(await finding, { kind: "dead", host, origin, reason: "no answer within 10 s" });
});

for (const way of ["port", "socket"])
  test(
    `a silent engine that was given up does not keep the program running, by a ${way}`,
    { timeout: 60_000 },
    async (context) => {
      await using place = await scratch();
      const socket = way === "socket" ? place.at("engine.sock") : undefined;
      await using loopback = await onConnection((client) => client.resume(), socket);
      context.mock.timers.enable({ apis: ["setTimeout"] });
      const finding = at(loopback);
      await connected(loopback);
      waited(context.mock.timers, 10_000);
      await finding;
      while (loopback.open() > 0) await turn();
    },
  );

const SYSTEM = "/var/run/docker.sock";
const skip = existsSync(SYSTEM) && `${SYSTEM} is here and goes before the sockets of this test`;

test("the first of the usual sockets that answers is used, whatever comes before it", { skip }, async () => {
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

test("Podman is accepted if it sets limits and its files can be read, rootless or not", async () => {
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
  test(`Podman is refused before anything is created: ${why.source}`, async () => {
    const [exit, message] = await refusalOf(() => hostFacts(named("Podman", info, host, by)));
    assert.equal(exit, 6);
    assert.match(message, /^no box on Podman 5\.4\.0 at .*docs\/engines\.md/);
    assert.match(message, why);
  });

interface Heard {
  readonly head: string;
  readonly body: string;
}

interface StandInEngine extends AsyncDisposable {
  readonly api: ReturnType<typeof engineClient>;
  readonly patience: EnginePatience;
  readonly heard: Heard[];
}

const BOUNDS: Bounds = { answerMs: 60_000, hurriedMs: 50 };

/** Something that takes requests as an engine does, word by word; it answers none with `silent`. */
async function engine(bounds = BOUNDS, silent = false): Promise<StandInEngine> {
  const place = await scratch();
  const heard: Heard[] = [];
  const hear = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    heard.push({ head: `${request.method} ${request.url}`, body: await text(request) });
    const [code, answer] = request.method === "GET" ? [200, "[]"] : [201, '{"Id":"i","Name":"n"}'];
    if (!silent) response.writeHead(code, { "content-type": "application/json" }).end(answer);
  };
  const server = createServer((request, response) => void hear(request, response));
  server.listen(place.at("e.sock"));
  await once(server, "listening");
  const patience = new EnginePatience(bounds);
  return {
    api: engineClient({ socketPath: place.at("e.sock") }, patience),
    patience,
    heard,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
      await place[Symbol.asyncDispose]();
    },
  };
}

test("the description of what is created is sent once, in the body", async () => {
  await using there = await engine();
  const spec = containerSpec(boxPlan("workspace-write"));
  await there.api.createContainer({ ...spec, name: "box", abortSignal: new AbortController().signal });
  await there.api.createVolume({ Name: "v", Labels: { a: "b" } });
  const [container, volume] = there.heard;
  assert.equal(container?.head, "POST /containers/create?name=box");
  assert.deepEqual(JSON.parse(container.body), JSON.parse(JSON.stringify(spec)));
  assert.match(volume?.head ?? "", /^POST \/volumes\/create\??$/);
  assert.deepEqual(JSON.parse(volume?.body ?? ""), { Name: "v", Labels: { a: "b" } });
});

test("requests with parameters keep them in the address", async () => {
  await using there = await engine();
  await there.api
    .getContainer("c")
    .kill({ signal: "SIGTERM" })
    .catch(() => undefined);
  await there.api.listContainers({ all: true, filters: { label: ["x"] } });
  const [kill, list] = there.heard;
  assert.equal(kill?.head, "POST /containers/c/kill?signal=SIGTERM");
  assert.match(list?.head ?? "", /^GET \/containers\/json\?all=true&filters=/);
});

test("a request cancelled by its caller does not shorten the patience for the next one", async () => {
  await using there = await engine({ answerMs: 200, hurriedMs: 20 }, true);
  const caller = new AbortController();
  const listing = there.api.listContainers({ abortSignal: caller.signal });
  caller.abort(new Error("not wanted any more"));
  await assert.rejects(listing, /abort/i);
  await assert.rejects(there.api.getContainer("c").remove({ force: true }), /has not answered for 0.2 s/);
});

test("an engine that accepts requests without answering is given up, sooner the next time", async () => {
  await using there = await engine({ answerMs: 200, hurriedMs: 20 }, true);
  await assert.rejects(there.api.info(), /has not answered for 0.2 s/);
  await assert.rejects(there.api.getContainer("c").remove({ force: true }), /has not answered for 0.02 s/);
  await assert.rejects(
    there.api.getContainer("c").attach({ stream: true, stdin: true, hijack: true }),
    /has not answered/,
  );
});

test("a request to hurry shortens the patience for current and later requests", async () => {
  await using there = await engine(BOUNDS, true);
  const controller = new AbortController();
  using _ = there.patience.hurry(controller.signal);
  const asked = [there.api.info(), there.api.getContainer("c").wait()];
  controller.abort();
  for (const each of asked) await assert.rejects(each, /has not answered for 0.05 s/);
  await assert.rejects(there.api.listImages(), /has not answered for 0.05 s/);
});

test("the remedy matches the engine's message", () => {
  const rows: readonly (readonly [said: unknown, remedy: RegExp])[] = [
    [
      new Error(
        "(HTTP code 400) bad parameter - Range of CPUs is from 0.01 to 2.00, as there are only 2 CPUs available ",
      ),
      /^harness config set cpus 2$/,
    ],
    [Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" }), /start it again/],
    [new Error("(HTTP code 500) server error - no space left"), /^harness doctor$/],
  ];
  for (const [said, remedy] of rows) assert.match(engineFailure("making the box", said).remedy, remedy);
});
