import assert from "node:assert/strict";
import test from "node:test";
import { type Clock, LIMITS, Watched } from "../../src/models/model-api.ts";

/** A clock that the test advances. */
class HandClock implements Clock {
  #now = 0;
  readonly #timers = new Set<{ at: number; call: () => void }>();

  readonly now = (): number => this.#now;
  readonly after = (ms: number, call: () => void): (() => void) => {
    const timer = { at: this.#now + ms, call };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  };

  get timers(): number {
    return this.#timers.size;
  }

  move(ms: number): void {
    const end = this.#now + ms;
    for (;;) {
      const [next] = [...this.#timers].filter(({ at }) => at <= end).toSorted((a, b) => a.at - b.at);
      if (next === undefined) break;
      this.#now = Math.max(this.#now, next.at);
      this.#timers.delete(next);
      next.call();
    }
    this.#now = end;
  }
}

const limits = { ...LIMITS, firstMs: 100, idleMs: 10, totalMs: 1000 };
const never = new AbortController().signal;

function watched() {
  const clock = new HandClock();
  const waiting: (() => void)[] = [];
  let left = false;
  const source = new Watched<number>(
    (signal) => {
      signal.addEventListener("abort", () => (left = true));
      let count = 0;
      const next = () =>
        new Promise<IteratorResult<number>>((resolve) =>
          waiting.push(() => resolve({ done: false, value: (count += 1) })),
        );
      return { [Symbol.asyncIterator]: () => ({ next }) };
    },
    { limits, clock, signal: never },
  );
  return { clock, source, give: () => waiting.shift()?.(), left: () => left };
}

test("the first event has a longer time limit than the others", async () => {
  const { clock, source, give, left } = watched();
  const first = source.next();
  clock.move(99);
  give();
  assert.deepEqual(await first, { done: false, value: 1 });
  const second = source.next();
  clock.move(9);
  assert.equal(left(), false);
  clock.move(1);
  await assert.rejects(second, {
    kind: "timeout",
    message: "nothing came for 10 ms, in the middle of the reply",
  });
  assert.equal(left(), true);
});

test("time that the reader takes itself is not counted", async () => {
  const { clock, source, give } = watched();
  for (let event = 1; event <= 3; event += 1) {
    const next = source.next();
    clock.move(9);
    give();
    assert.deepEqual(await next, { done: false, value: event });
    clock.move(200);
  }
});

test("an endless reply is ended by the total time limit", async () => {
  const { clock, source, give } = watched();
  const all = async (): Promise<never> => {
    for (;;) {
      const next = source.next();
      clock.move(9);
      give();
      await next;
    }
  };
  await assert.rejects(all(), { kind: "timeout", message: "the reply took longer than 1.0 s" });
});

test("no timer is left at the end", async () => {
  const { clock, source, give, left } = watched();
  const first = source.next();
  assert.equal(clock.timers, 1);
  give();
  await first;
  source.end();
  source.end();
  assert.deepEqual([clock.timers, left()], [0, true]);
});
