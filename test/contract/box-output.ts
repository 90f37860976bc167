import assert from "node:assert/strict";
import test from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fc } from "../fixtures/property.ts";
import type { Suite } from "./box-suite.ts";
import { asking, inputOf, NEVER, text } from "./box-words.ts";

/** Bytes in which no two adjacent windows are equal. */
const pattern = (bytes: number): Buffer =>
  Buffer.from(Array.from({ length: bytes }, (_, at) => (at * 7 + (at >> 8)) & 0xff));

export function outputCases({ open, of, skip }: Suite): void {
  test(of("head, tail, lost and total add up for all sizes"), { skip }, async () => {
    await using opened = await open();
    const size = fc.oneof(fc.integer({ min: 0, max: 300 }), fc.integer({ min: 0, max: 200_000 }));
    // Includes more bytes than fit into a tail.
    const whole = fc.oneof(size, fc.integer({ min: 200_000, max: 900_000 }));
    await fc.assert(
      fc.asyncProperty(whole, size, size, async (total, head, tail) => {
        const bytes = pattern(total);
        const request = asking(["cat"], { input: inputOf(bytes), keep: { head, tail } });
        const { stdout } = await opened.box.exec(request, NEVER);
        const lost = Math.max(0, total - head - tail);
        assert.deepEqual([stdout.total, stdout.lost], [total, lost]);
        assert.deepEqual(Buffer.from(stdout.head), bytes.subarray(0, head));
        assert.deepEqual(Buffer.from(stdout.tail), bytes.subarray(Math.min(total, head) + lost));
      }),
      { numRuns: 60 },
    );
  });

  test(of("both streams are separate, and their bytes unchanged"), { skip }, async () => {
    await using opened = await open();
    const { stdout, stderr } = await opened.box.exec(asking(opened.words.says("ä€😀", "e\n")), NEVER);
    assert.deepEqual([text(stdout.head), text(stderr.head)], ["ä€😀", "e\n"]);
    const binary = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
    const echoed = await opened.box.exec(asking(["cat"], { input: inputOf(binary) }), NEVER);
    assert.deepEqual(Buffer.from(echoed.stdout.head), binary);
  });

  test(of("a flood uses no more memory than what is kept of it"), { skip }, async () => {
    await using opened = await open();
    const keep = { head: 1000, tail: 10 };
    const { stdout } = await opened.box.exec(asking(opened.words.flood(20_000_000), { keep }), NEVER);
    const { head, tail, total, lost } = stdout;
    assert.deepEqual([head.length, tail.length, total, lost], [1000, 10, 20_000_000, 19_998_990]);
  });

  test(of("onOutput gets the head as it arrives, and the result only the rest"), { skip }, async () => {
    await using opened = await open();
    const seen: Uint8Array[] = [];
    const request = asking(["cat"], {
      input: inputOf(pattern(5000)),
      keep: { head: 3000, tail: 100 },
      onOutput: (stream, bytes) => void (stream === "stdout" && seen.push(Uint8Array.from(bytes))),
    });
    const { stdout } = await opened.box.exec(request, NEVER);
    assert.deepEqual(Buffer.concat(seen), pattern(5000).subarray(0, 3000));
    assert.deepEqual([stdout.head.length, stdout.total, stdout.lost], [0, 5000, 1900]);
    assert.deepEqual(Buffer.from(stdout.tail), pattern(5000).subarray(4900));
  });

  test(of("a slow reader slows the command down and loses nothing"), { skip }, async () => {
    await using opened = await open();
    let [total, busy, most] = [0, 0, 0];
    const request = asking(opened.words.flood(2_000_000), {
      keep: { head: 10_000_000, tail: 0 },
      onOutput: async (_, bytes) => {
        busy += 1;
        most = Math.max(most, busy);
        await sleep(2);
        total += bytes.length;
        busy -= 1;
      },
    });
    const { exit_code, stdout } = await opened.box.exec(request, NEVER);
    assert.deepEqual([exit_code, stdout.total, total, most], [0, 2_000_000, 2_000_000, 1]);
  });

  test(of("a failing reader ends only its own reading"), { skip }, async () => {
    await using opened = await open();
    let calls = 0;
    const onOutput = (): Promise<void> => {
      calls += 1;
      return Promise.reject(new Error("the screen is gone"));
    };
    const request = asking(opened.words.flood(500_000), { onOutput, keep: { head: 1_000_000, tail: 0 } });
    const { exit_code, stdout } = await opened.box.exec(request, NEVER);
    assert.deepEqual([exit_code, stdout.total], [0, 500_000]);
    assert.ok(calls > 0);
    assert.equal((await opened.box.exec(asking(["true"]), NEVER)).exit_code, 0);
  });
}
