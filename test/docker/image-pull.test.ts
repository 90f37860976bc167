import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import test from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import Docker from "dockerode";
import { lackOfImage } from "../../src/docker/image-progress.ts";

type Pull = (answer: ServerResponse) => Promise<void> | void;

/** An engine that holds no image and answers a pull as scripted; `pulled` is what it was asked for. */
async function scriptedEngine(
  pull: Pull,
  hereAfter = false,
): Promise<AsyncDisposable & { api: Docker; pulled: string[] }> {
  const pulled: string[] = [];
  const server = createServer((request, answer) => {
    const url = new URL(request.url ?? "", "http://engine");
    request.resume();
    if (request.method === "POST") {
      pulled.push(`${url.searchParams.get("fromImage")} ${url.searchParams.get("tag")}`);
      void pull(answer);
    } else {
      answer.writeHead(hereAfter && pulled.length > 0 ? 200 : 404, { "content-type": "application/json" });
      answer.end("{}");
    }
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    api: new Docker({ host: "127.0.0.1", port }),
    pulled,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

const line = (event: object): string => `${JSON.stringify(event)}\r\n`;
const onLine = (): void => undefined;
const bounds = { silenceMs: 300, signal: new AbortController().signal, onLine };

const slow: Pull = async (answer) => {
  for (let step = 0; step < 20; step += 1) {
    answer.write(line({ status: "Downloading", progressDetail: { current: step } }));
    await pause(50);
  }
  answer.end(line({ status: "Status: Downloaded newer image" }));
};

test("a pull that moves on may last longer than the silence it is allowed", async () => {
  await using engine = await scriptedEngine(slow, true);
  // Each pause is a small part of it, also on a busy machine.
  const patient = { ...bounds, silenceMs: 800 };
  assert.equal(await lackOfImage(engine.api, "team/db:1.2", patient), undefined);
  assert.deepEqual(engine.pulled, ["team/db 1.2"]);
});

const SILENT = "the pull made no progress for 0.3 s";
const retryForEver: Pull = async (answer) => {
  while (!answer.destroyed) {
    answer.write(line({ status: "Retrying in 1 second" }));
    await pause(50);
  }
};

for (const [what, pull, reason] of [
  ["says nothing at all", () => {}, SILENT],
  ["begins and then says no more", (answer) => void answer.write(line({ status: "Pulling" })), SILENT],
  ["only ever tries again", retryForEver, SILENT],
  [
    "ends with an error",
    (answer) => void answer.end(line({ error: "manifest unknown" })),
    "manifest unknown",
  ],
  [
    "ends without the image",
    (answer) => void answer.end(line({ status: "Done" })),
    "the pull ended without the image",
  ],
  ["says what cannot be read", (answer) => void answer.end("<html>\n"), "the pull ended without the image"],
] as const satisfies readonly (readonly [string, Pull, string])[])
  test(`an engine whose pull ${what} is told as: ${reason}`, async () => {
    await using engine = await scriptedEngine(pull);
    assert.equal(await lackOfImage(engine.api, "team/db:1.2", bounds), reason);
  });

for (const [when, pull] of [
  ["before the first word", () => {}],
  ["in the middle", (answer) => void answer.write(line({ status: "Pulling" }))],
] as const satisfies readonly (readonly [string, Pull])[])
  test(`a pull that is cancelled ${when} ends as cancelled`, async () => {
    await using engine = await scriptedEngine(pull);
    const signal = AbortSignal.timeout(100);
    await assert.rejects(lackOfImage(engine.api, "team/db:1.2", { silenceMs: 60_000, signal, onLine }), {
      name: "TimeoutError",
    });
  });
