import assert from "node:assert/strict";
import { PassThrough, Readable } from "node:stream";
import test from "node:test";
import { fc } from "../fixtures/property.ts";
import { followStream, type Progress } from "../../src/docker/image-progress.ts";

interface Followed {
  readonly lines: readonly Progress[];
  /** Why it ended, or "end". */
  readonly ended: string;
}

async function follow(stream: Readable, silenceMs = 5000, signal?: AbortSignal): Promise<Followed> {
  const lines: Progress[] = [];
  const onLine = (line: Progress): void => void lines.push(line);
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

const said = (...texts: readonly string[]): readonly Progress[] => texts.map((text) => ({ text }));

const STREAMS: Readonly<Record<string, readonly [text: string, lines: readonly Progress[], ended: string]>> =
  {
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
    "an empty error, which is one all the same": ['{"error":""}\n', [], ""],
    "an error that is no text": ['{"error":5,"status":"a"}\n', said("a"), "end"],
    "lines that are no JSON": ["plain words\n{broken\n", said("plain words", "{broken"), "end"],
    "lines that hold no object": ['5\nnull\n"text"\ntrue\n', [], "end"],
    "blank lines": ["\n\n  \n", [], "end"],
    "a body without the fields": ['{"aux":{"ID":"sha256:1"}}\n', said(""), "end"],
    "fields of the wrong kind": ['{"id":7,"stream":["a"],"status":"b"}\n', said(""), "end"],
    nothing: ["", [], "end"],
  };

for (const [name, [text, lines, ended]] of Object.entries(STREAMS))
  test(`the engine's progress: ${name}`, async () => {
    assert.deepEqual(await follow(ofText(text)), { lines, ended });
  });

test("wherever the stream is cut into chunks, the lines are the same", async () => {
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

test("a stream that falls silent is given up, and what it said before is kept", async () => {
  const stream = new PassThrough();
  stream.write('{"status":"a"}\n');
  assert.deepEqual(await follow(stream, 20), { lines: said("a"), ended: "no progress for 0.02 s" });
  assert.equal(stream.destroyed, true);
});

test("a stream that never says anything is given up", async () => {
  assert.deepEqual(await follow(new PassThrough(), 20), { lines: [], ended: "no progress for 0.02 s" });
});

test("each line gives the stream its time anew", async () => {
  const stream = new PassThrough();
  const ticking = setInterval(() => stream.write('{"status":"a"}\n'), 20);
  setTimeout(() => stream.end(), 240);
  const { lines, ended } = await follow(stream, 120);
  clearInterval(ticking);
  assert.deepEqual([ended, lines.length > 3], ["end", true]);
});

test("a stream that is cut off ends with a failure, with an error or without", async () => {
  const reset = new PassThrough();
  const closed = new PassThrough();
  for (const stream of [reset, closed]) stream.write('{"status":"a"}\n');
  setTimeout(() => reset.destroy(new Error("aborted")), 10);
  setTimeout(() => closed.destroy(), 10);
  assert.deepEqual(await follow(reset), { lines: said("a"), ended: "aborted" });
  assert.deepEqual(await follow(closed), { lines: said("a"), ended: "Premature close" });
});

test("an interruption ends a stream that is waiting, and destroys it", async () => {
  const stream = new PassThrough();
  const controller = new AbortController();
  stream.write('{"status":"a"}\n');
  setTimeout(() => controller.abort(new Error("interrupted")), 10);
  assert.deepEqual(await follow(stream, 5000, controller.signal), { lines: said("a"), ended: "interrupted" });
  assert.equal(stream.destroyed, true);
});

test("nothing is read after an interruption, not even what had already come", async () => {
  const controller = new AbortController();
  const lines: Progress[] = [];
  const onLine = (line: Progress): void => {
    lines.push(line);
    controller.abort(new Error("interrupted"));
  };
  const stream = ofText('{"status":"a"}\n{"status":"b"}\n');
  const following = followStream(stream, { silenceMs: 5000, signal: controller.signal, onLine });
  await assert.rejects(following, { message: "interrupted" });
  assert.deepEqual(lines, said("a"));
});

test("with a signal that has fired before, nothing is read at all", async () => {
  const stream = ofText('{"status":"a"}\n');
  const ended = await follow(stream, 5000, AbortSignal.abort(new Error("interrupted")));
  assert.deepEqual([ended, stream.destroyed], [{ lines: [], ended: "interrupted" }, true]);
});

const onLine = (): never => {
  throw new Error("mine");
};

test("a listener that fails ends the reading with its own failure", async () => {
  const stream = ofText('{"status":"a"}\n');
  const following = followStream(stream, { silenceMs: 5000, signal: new AbortController().signal, onLine });
  await assert.rejects(following, { message: "mine" });
});
