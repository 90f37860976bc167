import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import test from "node:test";
import { type Bounds, engineClient, Patience } from "../../src/docker/dial.ts";
import { containerSpec } from "../../src/docker/container-spec.ts";
import { boxPlan } from "../fixtures/boxes.ts";
import { scratch } from "../fixtures/scratch.ts";

interface Heard {
  readonly head: string;
  readonly body: string;
}

interface Engine extends AsyncDisposable {
  readonly api: ReturnType<typeof engineClient>;
  readonly patience: Patience;
  readonly heard: Heard[];
}

const BOUNDS: Bounds = { answerMs: 60_000, hurriedMs: 50 };

/** Something that takes requests as an engine does, word by word; it answers none with `silent`. */
async function engine(bounds = BOUNDS, silent = false): Promise<Engine> {
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
  const patience = new Patience(bounds);
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

test("what is to be made is sent once, in the body", async () => {
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

test("the twin: what an engine reads from the address stays there", async () => {
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

test("a request that its caller ends says nothing about the engine: the next one has as long as ever", async () => {
  await using there = await engine({ answerMs: 200, hurriedMs: 20 }, true);
  const caller = new AbortController();
  const listing = there.api.listContainers({ abortSignal: caller.signal });
  caller.abort(new Error("not wanted any more"));
  await assert.rejects(listing, /abort/i);
  await assert.rejects(there.api.getContainer("c").remove({ force: true }), /has not answered for 0.2 s/);
});

test("an engine that takes everything and answers nothing is given up, sooner the next time", async () => {
  await using there = await engine({ answerMs: 200, hurriedMs: 20 }, true);
  await assert.rejects(there.api.info(), /has not answered for 0.2 s/);
  await assert.rejects(there.api.getContainer("c").remove({ force: true }), /has not answered for 0.02 s/);
  await assert.rejects(
    there.api.getContainer("c").attach({ stream: true, stdin: true, hijack: true }),
    /has not answered/,
  );
});

test("somebody who wants an end gets it from what is asked and what will be", async () => {
  await using there = await engine(BOUNDS, true);
  const controller = new AbortController();
  using _ = there.patience.hurry(controller.signal);
  const asked = [there.api.info(), there.api.getContainer("c").wait()];
  controller.abort();
  for (const each of asked) await assert.rejects(each, /has not answered for 0.05 s/);
  await assert.rejects(there.api.listImages(), /has not answered for 0.05 s/);
});
