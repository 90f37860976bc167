import assert from "node:assert/strict";
import test from "node:test";
import { type Lane, runLanes } from "./lanes.ts";

/** Files that end on command, and the state of their runs. */
class Bench {
  readonly running = new Map<string, () => void>();

  lane(files: string, bounds: Pick<Lane, "share" | "most" | "after">): Lane {
    const run = (file: string): Promise<void> =>
      new Promise((resolve) => {
        this.running.set(file, () => {
          this.running.delete(file);
          resolve();
        });
      });
    return { files: files.split(" ").filter(Boolean), run, ...bounds };
  }

  /** Ends these files, and returns those that run now. */
  async without(...files: readonly string[]): Promise<string> {
    for (const file of files) this.running.get(file)?.();
    await new Promise(setImmediate);
    return [...this.running.keys()].join(" ");
  }
}

test("each lane gets its share; what one leaves free goes to the others, up to their maximum", async () => {
  const bench = new Bench();
  const unit = bench.lane("u1 u2 u3", { share: 2, most: 2 });
  const engine = bench.lane("e1 e2 e3 e4", { share: 1, most: 4 });
  const all = runLanes([unit, engine], 3);
  assert.equal(await bench.without(), "u1 u2 e1");
  assert.equal(await bench.without("u1"), "u2 e1 u3");
  assert.equal(await bench.without("u2"), "e1 u3 e2");
  assert.equal(await bench.without("u3"), "e1 e2 e3");
  assert.equal(await bench.without("e1", "e2"), "e3 e4");
  assert.equal(await bench.without("e3", "e4"), "");
  await all;
});

test("a lane that must run alone ends before the lane after it begins", async () => {
  const bench = new Bench();
  const alone = bench.lane("a1 a2", { share: 1, most: 1 });
  const engine = bench.lane("e1 e2", { share: 2, most: 4, after: alone });
  const all = runLanes([alone, engine, bench.lane("c1 c2 c3", { share: 1, most: 2 })], 4);
  assert.equal(await bench.without(), "a1 c1 c2");
  assert.equal(await bench.without("a1"), "c1 c2 a2");
  assert.equal(await bench.without("a2"), "c1 c2 e1 e2");
  assert.equal(await bench.without("c1", "c2", "e1", "e2"), "c3");
  assert.equal(await bench.without("c3"), "");
  await all;
});

test("an empty lane ends at once, and a file that throws is reported", async () => {
  const bench = new Bench();
  await runLanes([bench.lane("", { share: 1, most: 1 })], 2);
  const broken: Lane = { files: ["x"], run: () => Promise.reject(new Error("no")), share: 1, most: 1 };
  await assert.rejects(runLanes([broken], 1), /no/);
});
