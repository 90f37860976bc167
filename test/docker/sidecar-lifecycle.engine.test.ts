// slow: it starts sidecars in every state; start-sidecar.engine.test.ts has the way of a user
import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import test, { after, before } from "node:test";
import { findEngine, isEngine } from "../../src/docker/engine.ts";
import { downSidecars, upSidecar } from "../../src/docker/sidecar-lifecycle.ts";
import { type SidecarPlan } from "../../src/docker/sidecars.ts";
import { throwAwayImage } from "./sidecar-image.ts";
import { probe, type Project, throwAwayProject } from "./sidecar-project.ts";

const found = await findEngine(process.env, process.getuid?.() ?? 0);
const skip = isEngine(found) ? false : `no engine: ${found.reason}`;
const api = isEngine(found) ? found.api : undefined!;
const pieces = new AsyncDisposableStack();
const image = { name: "" };

before(async () => {
  if (skip === false) image.name = pieces.use(await throwAwayImage(api, `t${process.pid}`)).name;
});
after(() => pieces.disposeAsync());

/** A test with a project of its own, whose remains go even when it fails. */
const withProject = (what: string, body: (project: Project) => Promise<void>): void => {
  test(what, { skip }, async () => {
    await using project = throwAwayProject(api, image.name);
    await body(project);
  });
};

/** What the container wrote at its starts: its volume's lines, each time. */
const linesOf = async (project: Project): Promise<readonly string[]> => {
  const { Id } = await project.memo();
  return String(await api.getContainer(Id).logs({ stdout: true })).match(/[a-z]+(?=\n)/g) ?? [];
};

const running = (): unknown => ({ service: "memo", state: "running", detail: image.name });

/** Something that listens on a free port of loopback and never answers. */
async function mute(): Promise<AsyncDisposable & { address: string }> {
  const callers = new Set<Socket>();
  const server = createServer((caller) => callers.add(caller)).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    address: `127.0.0.1:${port}`,
    [Symbol.asyncDispose]: async () => {
      for (const caller of callers) caller.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

async function freePort(): Promise<string> {
  await using server = await mute();
  return server.address;
}

const portOf = (address: string): { host: number; container: number } => ({
  host: Number(address.split(":")[1]),
  container: 80,
});

withProject("a service starts as planned, is healthy, and a second start keeps it", async (project) => {
  const address = await freePort();
  const plan = project.plan({ ports: [portOf(address)] });
  const expected = { service: "memo", state: "running", detail: `${image.name} on ${address}` };
  assert.deepEqual(await upSidecar(api, plan), expected);
  const first = await project.memo();
  assert.deepEqual(await upSidecar(api, plan), expected);
  const second = await project.memo();
  assert.deepEqual([second.Id, second.State.StartedAt], [first.Id, first.State.StartedAt]);
  const { Memory, CapDrop, SecurityOpt } = first.HostConfig as Record<string, unknown>;
  const [HostIp, HostPort] = address.split(":");
  assert.deepEqual(
    { Memory, CapDrop, SecurityOpt, ports: first.NetworkSettings.Ports["80/tcp"] },
    {
      Memory: 64 * 2 ** 20,
      CapDrop: ["ALL"],
      SecurityOpt: ["no-new-privileges:true"],
      ports: [{ HostIp, HostPort }],
    },
  );
});

withProject("two starts at the same time result in one sidecar, and both report it", async (project) => {
  const both = [project.plan(), project.plan()].map((plan) => upSidecar(api, plan));
  assert.deepEqual(await Promise.all(both), [running(), running()]);
  assert.equal((await project.remains()).length, 3);
});

withProject("a stopped sidecar is started again as the same container", async (project) => {
  await upSidecar(api, project.plan());
  const { Id } = await project.memo();
  await api.getContainer(Id).stop();
  assert.deepEqual(await upSidecar(api, project.plan()), running());
  assert.equal((await project.memo()).Id, Id);
  assert.deepEqual(await linesOf(project), ["one", "one", "one"]);
});

withProject("a paused sidecar is resumed as the same container", async (project) => {
  await upSidecar(api, project.plan());
  const { Id } = await project.memo();
  await api.getContainer(Id).pause();
  assert.deepEqual(await upSidecar(api, project.plan()), running());
  const { Id: same, State } = await project.memo();
  assert.deepEqual([same, State.Paused], [Id, false]);
});

withProject("a changed service is recreated and keeps the data of its volume", async (project) => {
  await upSidecar(api, project.plan());
  const { Id } = await project.memo();
  assert.deepEqual(await upSidecar(api, project.plan({ environment: { MARK: "two" } })), running());
  assert.notEqual((await project.memo()).Id, Id);
  assert.deepEqual(await linesOf(project), ["one", "two"]);
});

withProject("a stopped sidecar whose network was recreated is recreated too", async (project) => {
  await upSidecar(api, project.plan());
  const { Id } = await project.memo();
  await api.getContainer(Id).stop();
  await api.getNetwork(`${project.name}_default`).remove();
  assert.deepEqual(await upSidecar(api, project.plan()), running());
  assert.deepEqual(await linesOf(project), ["one", "one"]);
});

withProject("an unavailable image is reported and leaves nothing behind", async (project) => {
  const name = "harness-nowhere.invalid/none:1";
  const sidecar = await upSidecar(api, project.plan({ image: name }));
  assert.equal(sidecar.state, "no-image");
  assert.match(
    sidecar.detail,
    /^the image harness-nowhere\.invalid\/none:1 is not here and cannot be pulled: \S/,
  );
  assert.deepEqual(await project.remains(), []);
});

withProject("a pull that makes no progress is given up", async (project) => {
  await using registry = await mute();
  const name = `${registry.address}/none:1`;
  assert.deepEqual(await upSidecar(api, project.plan({ image: name }), { silenceMs: 600 }), {
    service: "memo",
    state: "no-image",
    detail: `the image ${name} is not here and cannot be pulled: the pull made no progress for 0.6 s`,
  });
});

withProject("a container with that name that is not ours is left alone", async (project) => {
  const name = `${project.name}-memo-1`;
  const { id } = await api.createContainer({ name, Image: image.name, Cmd: ["sleep", "600"] });
  assert.deepEqual(await upSidecar(api, project.plan()), {
    service: "memo",
    state: "failed",
    detail: `the name ${name} is taken by a container that harness did not make; remove or rename that one`,
  });
  assert.deepEqual((await downSidecars(api, project.name, { volumes: true })).containers, []);
  assert.equal((await project.memo()).Id, id);
  assert.deepEqual(await project.remains(), [`container /${name}`]);
});

withProject("a volume with that name that is not ours is neither used nor removed", async (project) => {
  const Name = `${project.name}_data`;
  await api.createVolume({ Name });
  const detail = `a volume called ${Name} is there already, and harness did not make it`;
  assert.deepEqual(await upSidecar(api, project.plan()), { service: "memo", state: "failed", detail });
  await downSidecars(api, project.name, { volumes: true });
  assert.deepEqual(await project.remains(), [`volume ${Name}`]);
});

withProject("a port in use is named, and no container is left", async (project) => {
  await using other = await mute();
  const plan = project.plan({ ports: [portOf(other.address)] });
  const detail = `${other.address} is in use by another program`;
  assert.deepEqual(await upSidecar(api, plan), { service: "memo", state: "failed", detail });
  assert.deepEqual(
    (await project.remains()).filter((name) => name.startsWith("container")),
    [],
  );
});

for (const [what, keys, state, detail] of [
  [
    "a probe that fails",
    { healthcheck: probe("echo no answer; exit 3", 100, 1) },
    "unhealthy",
    "unhealthy; the last probe ended with 3: no answer",
  ],
  ["a probe that times out", { healthcheck: probe("exit 0", 60_000) }, "unhealthy", "not healthy within 5 s"],
  [
    "a program that ends",
    { command: ["sh", "-c", "echo bad config >&2; exit 4"] },
    "failed",
    "it ended with 4: bad config",
  ],
  [
    "a program that keeps exiting",
    { command: ["sh", "-c", "echo bad config; exit 4"], restart: "unless-stopped" },
    "failed",
    "it keeps ending: bad config",
  ],
] as const)
  withProject(`${what} is reported with its last output`, async (project) => {
    const sidecar = await upSidecar(api, project.plan(keys), { healthMs: 5000 });
    assert.equal(sidecar.state, state);
    assert.equal(sidecar.detail.slice(0, detail.length), detail);
  });

withProject("a program missing from the image is reported in the engine's words", async (project) => {
  const sidecar = await upSidecar(api, project.plan({ command: ["/nowhere"] }));
  assert.equal(sidecar.state, "failed");
  assert.match(sidecar.detail, /no such file or directory/);
});

/** The same service without its health check. */
function withoutCheck(project: Project): SidecarPlan {
  const plan = project.plan();
  const { Healthcheck: _, ...container } = plan.container;
  return { ...plan, container };
}

withProject("a service without a health check is running once it stays up", async (project) => {
  assert.deepEqual(await upSidecar(api, withoutCheck(project)), running());
});

withProject("a cancelled start ends at once and reports it", async (project) => {
  const plan = project.plan({ healthcheck: probe("exit 0", 60_000) });
  assert.deepEqual(await upSidecar(api, plan, { signal: AbortSignal.timeout(1500) }), {
    service: "memo",
    state: "failed",
    detail: "cancelled",
  });
});

/** The container of a plan with the labels that `docker compose up` gives it, running. */
async function madeByCompose(plan: SidecarPlan): Promise<string> {
  await api.createNetwork(plan.network);
  for (const volume of plan.volumes) await api.createVolume(volume);
  const Labels = {
    ...plan.container.Labels,
    "com.docker.compose.config-hash": "of compose's own kind",
    "com.docker.compose.version": "2.40.3",
  };
  const container = await api.createContainer({ ...plan.container, Labels });
  await container.start();
  return container.id;
}

withProject("a sidecar started by hand with compose is kept", async (project) => {
  const id = await madeByCompose(project.plan());
  assert.deepEqual(await upSidecar(api, project.plan()), running());
  assert.equal((await project.memo()).Id, id);
});

withProject("a sidecar of compose with other ports is recreated", async (project) => {
  const id = await madeByCompose(project.plan());
  const address = await freePort();
  const { state } = await upSidecar(api, project.plan({ ports: [portOf(address)] }));
  assert.deepEqual([state, (await project.memo()).Id === id], ["running", false]);
});

withProject(
  "down removes our containers and keeps the data, unless volumes are requested",
  async (project) => {
    const [container, network, volume] = ["-memo-1", "_default", "_data"].map((end) => project.name + end);
    await upSidecar(api, project.plan());
    const none = { containers: [], networks: [], volumes: [], kept: [] };
    assert.deepEqual(await downSidecars(api, project.name), {
      ...none,
      containers: [container],
      networks: [network],
    });
    assert.deepEqual(await project.remains(), [`volume ${volume}`]);
    assert.deepEqual(await downSidecars(api, project.name, { volumes: true }), {
      ...none,
      volumes: [volume],
    });
    assert.deepEqual(await downSidecars(api, project.name, { volumes: true }), none);
    assert.deepEqual(await project.remains(), []);
  },
);

withProject("down reports what it had to keep and why", async (project) => {
  await upSidecar(api, project.plan());
  const { id } = await api.createContainer({
    name: `${project.name}-guest`,
    Image: image.name,
    Cmd: ["sleep", "600"],
    HostConfig: { NetworkMode: `${project.name}_default` },
  });
  await api.getContainer(id).start();
  const { kept } = await downSidecars(api, project.name);
  assert.deepEqual(
    kept.map(({ name }) => name),
    [`${project.name}_default`],
  );
  assert.match(kept[0]?.reason ?? "", /active endpoints/);
});
