import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import test from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { PassThrough, Readable } from "node:stream";
import Docker from "dockerode";
import { followStream, lackOfImage, type ImageProgress } from "../../src/docker/image-progress.ts";
import { fc } from "../fixtures/property.ts";

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
const unheard = (): void => undefined;
const bounds = { silenceMs: 300, signal: new AbortController().signal, onLine: unheard };

const slow: Pull = async (answer) => {
  for (let step = 0; step < 20; step += 1) {
    answer.write(line({ status: "Downloading", progressDetail: { current: step } }));
    await pause(50);
  }
  answer.end(line({ status: "Status: Downloaded newer image" }));
};

test("a pull that makes progress may last longer than the allowed silence", async () => {
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
  ["starts and then falls silent", (answer) => void answer.write(line({ status: "Pulling" })), SILENT],
  ["only ever retries", retryForEver, SILENT],
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
  ["sends unreadable output", (answer) => void answer.end("<html>\n"), "the pull ended without the image"],
] as const satisfies readonly (readonly [string, Pull, string])[])
  test(`an engine whose pull ${what} is reported as: ${reason}`, async () => {
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
    await assert.rejects(
      lackOfImage(engine.api, "team/db:1.2", { silenceMs: 60_000, signal, onLine: unheard }),
      {
        name: "TimeoutError",
      },
    );
  });

interface Followed {
  readonly lines: readonly ImageProgress[];
  /** Why it ended, or "end". */
  readonly ended: string;
}

async function follow(stream: Readable, silenceMs = 5000, signal?: AbortSignal): Promise<Followed> {
  const lines: ImageProgress[] = [];
  const onLine = (line: ImageProgress): void => void lines.push(line);
  const options = { silenceMs, signal: signal ?? new AbortController().signal, onLine };
  try {
    await followStream(stream, options);
    return { lines, ended: "end" };
  } catch (thrown) {
    return { lines, ended: (thrown as Error).message };
  }
}

const ofText = (...chunks: readonly string[]): Readable =>
  Readable.from(
    chunks.map((chunk) => Buffer.from(chunk)),
    { objectMode: false },
  );

const said = (...texts: readonly string[]): readonly ImageProgress[] => texts.map((text) => ({ text }));

const STREAMS: Readonly<
  Record<string, readonly [text: string, lines: readonly ImageProgress[], ended: string]>
> = {
  "lines of a build": [
    '{"stream":"Step 1"}\r\n{"stream":"\\n"}\n{"stream":" done "}\n',
    said("Step 1", "", "done"),
    "end",
  ],
  "lines that the builder coloured": [
    '{"stream":"\\u001b[91mE: no such package\\n\\u001b[0m"}\n',
    said("E: no such package"),
    "end",
  ],
  "lines of a pull": [
    '{"status":"Pulling","id":"abc","progressDetail":{}}\n{"status":"Digest"}\n',
    said("abc Pulling", "Digest"),
    "end",
  ],
  "a last line without an end": ['{"status":"a"}\n{"status":"b"}', said("a", "b"), "end"],
  "an error, which ends it": [
    '{"stream":"a"}\n{"error":"no space left"}\n{"stream":"b"}\n',
    said("a"),
    "no space left",
  ],
  "an empty error, which still counts": ['{"error":""}\n', [], ""],
  "an error that is not text": ['{"error":5,"status":"a"}\n', said("a"), "end"],
  "lines that are not JSON": ["plain words\n{broken\n", said("plain words", "{broken"), "end"],
  "lines without an object": ['5\nnull\n"text"\ntrue\n', [], "end"],
  "blank lines": ["\n\n  \n", [], "end"],
  "a body without the fields": ['{"aux":{"ID":"sha256:1"}}\n', said(""), "end"],
  "fields of the wrong kind": ['{"id":7,"stream":["a"],"status":"b"}\n', said(""), "end"],
  nothing: ["", [], "end"],
};

for (const [name, [text, lines, ended]] of Object.entries(STREAMS))
  test(`the engine's progress: ${name}`, async () => {
    assert.deepEqual(await follow(ofText(text)), { lines, ended });
  });

test("the lines are the same, however the stream is split into chunks", async () => {
  const texts = ["é", "a😀b", "", 'quote "', "last"];
  const whole = Buffer.from(texts.map((stream) => `${JSON.stringify({ stream })}\n`).join(""));
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat(whole.length), { maxLength: 8 }), async (cuts) => {
      const edges = [0, ...cuts.toSorted((a, b) => a - b), whole.length];
      const chunks = edges.slice(1).map((end, index) => whole.subarray(edges[index], end));
      const stream = Readable.from(
        chunks.filter(({ length }) => length > 0),
        { objectMode: false },
      );
      assert.deepEqual(await follow(stream), { lines: said(...texts), ended: "end" });
    }),
    { numRuns: 50 },
  );
});

test("a stream that falls silent is given up, and its earlier output is kept", async () => {
  const stream = new PassThrough();
  stream.write('{"status":"a"}\n');
  assert.deepEqual(await follow(stream, 20), { lines: said("a"), ended: "no progress for 0.02 s" });
  assert.equal(stream.destroyed, true);
});

test("a stream that never sends anything is given up", async () => {
  assert.deepEqual(await follow(new PassThrough(), 20), { lines: [], ended: "no progress for 0.02 s" });
});

test("each line restarts the timeout", async () => {
  const stream = new PassThrough();
  const ticking = setInterval(() => stream.write('{"status":"a"}\n'), 20);
  setTimeout(() => stream.end(), 240);
  const { lines, ended } = await follow(stream, 120);
  clearInterval(ticking);
  assert.deepEqual([ended, lines.length > 3], ["end", true]);
});

test("a stream that breaks off ends with a failure, with or without an error", async () => {
  const reset = new PassThrough();
  const closed = new PassThrough();
  for (const stream of [reset, closed]) stream.write('{"status":"a"}\n');
  setTimeout(() => reset.destroy(new Error("aborted")), 10);
  setTimeout(() => closed.destroy(), 10);
  assert.deepEqual(await follow(reset), { lines: said("a"), ended: "aborted" });
  assert.deepEqual(await follow(closed), { lines: said("a"), ended: "Premature close" });
});

test("an interruption ends a waiting stream and destroys it", async () => {
  const stream = new PassThrough();
  const controller = new AbortController();
  stream.write('{"status":"a"}\n');
  setTimeout(() => controller.abort(new Error("interrupted")), 10);
  assert.deepEqual(await follow(stream, 5000, controller.signal), { lines: said("a"), ended: "interrupted" });
  assert.equal(stream.destroyed, true);
});

test("nothing is delivered after an interruption, not even what had already arrived", async () => {
  const controller = new AbortController();
  const lines: ImageProgress[] = [];
  const onLine = (line: ImageProgress): void => {
    lines.push(line);
    controller.abort(new Error("interrupted"));
  };
  const stream = ofText('{"status":"a"}\n{"status":"b"}\n');
  const following = followStream(stream, { silenceMs: 5000, signal: controller.signal, onLine });
  await assert.rejects(following, { message: "interrupted" });
  assert.deepEqual(lines, said("a"));
});

test("with a signal that is already aborted nothing is read", async () => {
  const stream = ofText('{"status":"a"}\n');
  const ended = await follow(stream, 5000, AbortSignal.abort(new Error("interrupted")));
  assert.deepEqual([ended, stream.destroyed], [{ lines: [], ended: "interrupted" }, true]);
});

const failingOnLine = (): never => {
  throw new Error("mine");
};

test("a failing listener ends the reading with its own failure", async () => {
  const stream = ofText('{"status":"a"}\n');
  const following = followStream(stream, {
    silenceMs: 5000,
    signal: new AbortController().signal,
    onLine: failingOnLine,
  });
  await assert.rejects(following, { message: "mine" });
});
