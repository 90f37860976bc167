import assert from "node:assert/strict";
import test from "node:test";
import type { ProviderEvent } from "../../src/core/model-provider.ts";
import { RETRIES } from "../../src/core/server-wait.ts";
import { makeProvider } from "../../src/models/provider.ts";
import { OpenAiWire } from "../../src/models/providers/openai-api.ts";
import { SharedWait } from "../../src/platform/waits.ts";
import { capabilitiesOf, NOT_REPORTED } from "../../src/models/capabilities.ts";
import { type Served, startLoopback } from "../fakes/loopback.ts";
import { scratch } from "../fixtures/scratch.ts";

const answered: Served = {
  status: 200,
  headers: { "content-type": "text/event-stream" },
  body: `data: {"choices":[{"delta":{"content":"Hello"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n`,
};
const refused = (status: number, headers: Record<string, string>): Served => ({
  status,
  headers: { "content-type": "application/json", ...headers },
  body: JSON.stringify({ error: { message: "slow down" } }),
});

const unknown = { user: [], maxContext: null, probe: null, server: NOT_REPORTED };

/** A clock that advances only by waiting, shared by several runs. */
class WaitedClock {
  now = 1_000_000;
}

interface Run {
  readonly waits: number[];
  readonly ask: () => Promise<ProviderEvent | undefined>;
}

function runOver(url: string, state: string, clock: WaitedClock, random: () => number): Run {
  const waits: number[] = [];
  const provider = makeProvider(new OpenAiWire({ baseUrl: url, key: "" }), {
    capabilities: (model) => Promise.resolve(capabilitiesOf(model, unknown)),
    pressure: new SharedWait(state, url, RETRIES.longestMs, () => clock.now),
    random,
    retry: {
      wait: (ms) => {
        waits.push(ms);
        clock.now += ms;
        return Promise.resolve();
      },
    },
  });
  const request = { model: "m", messages: [{ role: "user", text: "Hi" }], tools: [] } as const;
  const ask = async (): Promise<ProviderEvent | undefined> => {
    let last: ProviderEvent | undefined;
    for await (const event of provider.stream(request, new AbortController().signal)) last = event;
    return last;
  };
  return { waits, ask };
}

for (const status of [429, 503])
  test(`a server that asks one run to wait (${status}) is spared by other runs too, each for a slightly longer time`, async () => {
    await using folder = await scratch();
    await using server = await startLoopback([refused(status, { "retry-after": "20" }), answered]);
    const clock = new WaitedClock();
    const first = runOver(server.url, folder.path, clock, () => 0.5);
    // The first run is asked to wait, and its clock stops there: the second finds the note in the folder.
    const told = runOver(server.url, folder.path, { now: clock.now }, () => 0.5);
    assert.equal((await told.ask())?.type, "finished");
    assert.deepEqual(told.waits, [21_000]);
    assert.equal(server.heard.length, 2);
    assert.equal((await first.ask())?.type, "finished");
    assert.deepEqual(first.waits, [22_500], "20 s, and half of a spread of 5 s");
    const last = runOver(server.url, folder.path, clock, () => 0.5);
    assert.equal((await last.ask())?.type, "finished");
    assert.deepEqual(last.waits, [], "the wait is over");
  });

const at = (ms: number): Record<string, string> => ({
  "retry-after": new Date(Date.now() + ms).toUTCString(),
});

test("a retry date is waited for like seconds, unless it is too far away", async () => {
  await using folder = await scratch();
  await using server = await startLoopback([refused(503, at(60_000)), answered, refused(429, at(3_600_000))]);
  const run = runOver(server.url, folder.path, new WaitedClock(), () => 0);
  assert.equal((await run.ask())?.type, "finished");
  const [waited = 0] = run.waits;
  assert.ok(waited > 30_000 && waited <= 60_000, String(waited));
  const late = await run.ask();
  assert.equal(late?.type === "failed" && late.failure.kind, "rate_limited");
  assert.match(late?.type === "failed" ? late.failure.reason : "", /asks to wait/);
});

test("a server that stays busy is given up, after more waits than one that fails", async () => {
  for (const [status, requests] of [
    [503, RETRIES.busyAttempts],
    [500, RETRIES.attempts],
  ] as const) {
    await using folder = await scratch();
    await using server = await startLoopback([refused(status, {})]);
    const run = runOver(server.url, folder.path, new WaitedClock(), () => 1);
    assert.equal((await run.ask())?.type, "failed");
    assert.equal(server.heard.length, requests);
    assert.ok(run.waits.reduce((sum, ms) => sum + ms, 0) <= 60_000);
  }
});

test("a wait announced by another run is limited, and then the server is asked anyway", async () => {
  await using folder = await scratch();
  await using server = await startLoopback([answered]);
  const clock = new WaitedClock();
  const pressure = new SharedWait(folder.path, server.url, RETRIES.longestMs, () => clock.now);
  const stuck = runOver(server.url, folder.path, { now: clock.now }, () => 0);
  pressure.hold(RETRIES.longestMs);
  assert.equal((await stuck.ask())?.type, "finished");
  assert.deepEqual(stuck.waits, [RETRIES.longestMs]);
});
