import assert from "node:assert/strict";
import test from "node:test";
import { openStore } from "../../src/sessions/session-store.ts";
import { ABOUT, message } from "../contract/store-words.ts";
import { scratch } from "../fixtures/scratch.ts";

const DAY_MS = 86_400_000;

test("the last session is the one worked on last, even if the clock was set back since", async () => {
  await using place = await scratch();
  const began = Date.UTC(2026, 5, 1);
  const days = { gone: 0 };
  /** A later process whose clock shows an earlier time. */
  const later = <T>(work: (store: ReturnType<typeof openStore>) => T): T => {
    days.gone += 1;
    using store = openStore(place.at("state"), { now: () => began - days.gone * DAY_MS });
    return work(store);
  };
  const made = (): string =>
    later((store) => {
      const session = store.create(ABOUT);
      session.append(message("a task"));
      return session.id;
    });
  const last = (): string | undefined => later((store) => store.last(ABOUT.workspace));
  const first = made();
  const second = made();
  assert.equal(last(), second);
  later((store) => store.open(first).append(message("more")));
  assert.equal(last(), first);
  later((store) => store.open(second).log({ type: "notice", text: "undone", run: "r", seq: 1 }));
  assert.equal(last(), second);
  // The reported start is the clock's time.
  assert.equal(
    later((store) => store.open(second).info().started),
    began - 2 * DAY_MS,
  );
});
