import assert from "node:assert/strict";
import type { IncomingMessage, ServerResponse } from "node:http";
import test from "node:test";
import { EXIT, HarnessError } from "../../src/core/errors.ts";
import { boxImage } from "../../src/docker/box-image.ts";
import { type Engine, findEngine, isEngine } from "../../src/docker/engine.ts";
import { ROOT } from "../e2e/package.ts";
import { type Loopback, onRequest } from "./loopback.ts";

interface Image {
  readonly Id: string;
  readonly Architecture: string;
  readonly Config: object;
}

interface Stub extends AsyncDisposable {
  readonly engine: Engine;
  readonly asked: readonly string[];
}

const OURS = { Id: "sha256:ours", Architecture: "amd64", Config: {} };
const VERSION = { Version: "1", ApiVersion: "1.41", Arch: "amd64" };

/** An engine that knows these images (ours is any with our name) and these volumes and containers. */
async function stub(
  images: Readonly<Record<string, Image>>,
  volumes: readonly string[] = [],
  fillers = 0,
): Promise<Stub> {
  const asked: string[] = [];
  const answer = (request: IncomingMessage): readonly [number, unknown] => {
    const url = decodeURIComponent(request.url ?? "").replace(/^\/v[\d.]+/, "");
    const name = /^\/images\/([^?]*)\/json/.exec(url)?.[1];
    if (url.startsWith("/version")) return [200, VERSION];
    asked.push(`${request.method} ${url.split("?")[0]}`);
    if (name !== undefined) {
      const image = images[name.startsWith("harness-sandbox:") ? "ours" : name];
      return image === undefined ? [404, { message: "no such image" }] : [200, image];
    }
    if (url.startsWith("/volumes/create")) return [201, { Name: "v" }];
    if (url.startsWith("/volumes")) return [200, { Volumes: volumes.map((Name) => ({ Name })) }];
    if (url.startsWith("/containers/json"))
      return [200, Array.from({ length: fillers }, () => ({ Id: "f" }))];
    if (url.startsWith("/containers/create")) return [201, { Id: "f" }];
    return [request.method === "DELETE" ? 204 : 500, { message: `what is ${url}` }];
  };
  const server: Loopback = await onRequest((request: IncomingMessage, response: ServerResponse) => {
    const [status, body] = answer(request);
    request.resume();
    response.writeHead(status, { "content-type": "application/json" });
    response.end(status === 204 ? undefined : JSON.stringify(body));
  });
  const engine = await findEngine({ DOCKER_HOST: server.host }, 0);
  assert.ok(isEngine(engine));
  return { engine, asked, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
}

async function refusal(work: Promise<unknown>): Promise<string> {
  const thrown: unknown = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  assert.ok(thrown instanceof HarnessError && thrown.exit === EXIT.sandbox, String(thrown));
  return `${thrown.message} | ${thrown.remedy}`;
}

test("our own image is used by its id, and nothing is created for it", async () => {
  await using place = await stub({ ours: OURS });
  assert.deepEqual(await boxImage(place.engine, ROOT, null), { id: "sha256:ours", volumes: [] });
  assert.ok(place.asked.every((line) => line.startsWith("GET ")));
});

test("a missing image is reported with the command that provides it", async () => {
  await using none = await stub({});
  assert.match(await refusal(boxImage(none.engine, ROOT, null)), /is not built \| harness sandbox build/);
  assert.match(await refusal(boxImage(none.engine, ROOT, "own:1")), /is not built/);
  await using ours = await stub({ ours: OURS });
  assert.match(
    await refusal(boxImage(ours.engine, ROOT, "own:1")),
    /own:1 is not on this engine \| docker pull own:1/,
  );
  assert.match(await refusal(boxImage(ours.engine, ROOT, "a;id")), /a;id is not .* \| docker pull 'a;id'$/);
});

test("an image with volumes or for another architecture is refused before anything is created", async () => {
  const own = { ...OURS, Id: "sha256:own" };
  await using volumes = await stub({ ours: OURS, "own:1": { ...own, Config: { Volumes: { "/data": {} } } } });
  assert.match(await refusal(boxImage(volumes.engine, ROOT, "own:1")), /declares volumes \(\/data\)/);
  await using other = await stub({ ours: OURS, "own:1": { ...own, Architecture: "arm64" } });
  assert.match(await refusal(boxImage(other.engine, ROOT, "own:1")), /is for arm64/);
  for (const { asked } of [volumes, other]) assert.ok(asked.every((line) => line.startsWith("GET ")));
});

test("a foreign image gets our runner as a volume, filled once and again after an interrupted fill", async () => {
  const images = { ours: OURS, "own:1": { ...OURS, Id: "sha256:own", Config: { Volumes: null } } };
  await using fresh = await stub(images);
  const { id, volumes } = await boxImage(fresh.engine, ROOT, "own:1");
  const [{ volume, target } = { volume: "", target: "" }] = volumes;
  assert.equal(id, "sha256:own");
  assert.match(volume, /^harness-sandbox-runner-[0-9a-f]+$/);
  assert.equal(target, "/usr/local/lib/harness");
  const made = fresh.asked.filter((line) => !line.startsWith("GET "));
  assert.deepEqual(made, ["POST /volumes/create", "POST /containers/create", "DELETE /containers/f"]);
  await using kept = await stub(images, [volume]);
  assert.deepEqual(await boxImage(kept.engine, ROOT, "own:1"), { id, volumes });
  assert.ok(kept.asked.every((line) => line.startsWith("GET ")));
  await using broken = await stub(images, [volume], 1);
  await boxImage(broken.engine, ROOT, "own:1");
  assert.ok(broken.asked.includes("POST /containers/create"));
  await using similar = await stub(images, [`${volume}-old`]);
  await boxImage(similar.engine, ROOT, "own:1");
  assert.ok(similar.asked.includes("POST /volumes/create"));
});
