import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import test from "node:test";
import {
  encodeFields,
  type FieldValue,
  type Frame,
  greeting,
  KEY_BYTES,
  openWire,
  REPLY,
  REQUEST,
} from "../../src/boxes/runner-protocol.ts";
import { leased } from "../fixtures/bare-runner.ts";
import { skip } from "../fixtures/engine.ts";

/** All frames of the runner until it has answered a request, in order; it is never pinged. */
async function told(requests: readonly (readonly [type: number, fields: readonly FieldOf[]])[]) {
  await using box = await leased();
  const secret = randomBytes(KEY_BYTES);
  const stream = await box.attach();
  const answered = requests.map(() => Promise.withResolvers<void>());
  const frames: Frame[] = [];
  const wire = openWire(
    stream,
    { secret, first: greeting(secret) },
    {
      onFrame: (frame) => {
        frames.push(frame);
        if (frame.type === REPLY.end) answered[frame.call - 1]?.resolve();
      },
      onEnd: (reason) => answered.forEach(({ reject }) => reject(new Error(reason))),
    },
  );
  await box.container.start();
  for (const [index, [type, fields]] of requests.entries()) {
    wire.send({ type, call: index + 1, payload: encodeFields([...fields]) });
    await answered[index]?.promise;
  }
  wire.close();
  const words = new Map<number, string>([
    [REPLY.pong, "pong"],
    [REPLY.end, "end"],
  ]);
  return frames.flatMap(({ type, call }) => (words.has(type) ? `${words.get(type)} ${call}` : []));
}

type FieldOf = readonly [name: string, value: FieldValue];

test(
  "during a long scan of a tree the runner sends signs of life unasked, and during a short answer it does not",
  { skip },
  async () => {
    const stat = [REQUEST.stat, [["p", "/usr"]]] as const;
    const look = [
      REQUEST.snapshot,
      [
        ["p", "/usr"],
        ["n", 500_000],
      ],
    ] as const;
    const all = await told([stat, look]);
    assert.deepEqual(all.slice(0, 2), ["end 1", "pong 0"]);
    assert.equal(all.at(-1), "end 2");
    assert.deepEqual(
      all.slice(1, -1).filter((each) => each !== "pong 0"),
      [],
    );
  },
);
