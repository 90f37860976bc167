import assert from "node:assert/strict";
import test from "node:test";
import { setImmediate } from "node:timers/promises";
import { LazyBox } from "../../../src/app/run/lazy-box.ts";
import { EXIT } from "../../../src/core/errors.ts";
import type { Grant } from "../../../src/core/network.ts";
import type { OwnedBox } from "../../../src/core/ports.ts";

/** What was granted in the middle of a run, where the box is lost afterwards. */

interface FakeBox {
  readonly box: OwnedBox;
  /** Hosts that it reaches now. */
  readonly reached: string[];
  readonly lose: (reason: string) => Promise<void>;
  removed: boolean;
}

type Barred = "takes no grants" | "refuses them" | undefined;

function fakeBox(barred?: Barred): FakeBox {
  const reached: string[] = [];
  const gone = Promise.withResolvers<string>();
  const grant = (more: readonly Grant[]): Promise<() => void> => {
    if (barred === "refuses them") return Promise.reject(new Error("not this time"));
    const hosts = more.map(({ host }) => host);
    reached.push(...hosts);
    return Promise.resolve(
      () => void reached.splice(0, reached.length, ...reached.filter((one) => !hosts.includes(one))),
    );
  };
  const fake: FakeBox = {
    reached,
    removed: false,
    lose: async (reason) => {
      gone.resolve(reason);
      await setImmediate();
    },
    box: {
      gone: gone.promise,
      mayFollow: () => true,
      ...(barred === "takes no grants" ? {} : { network: { connections: () => [], grant } }),
      [Symbol.asyncDispose]: () => {
        fake.removed = true;
        return Promise.resolve();
      },
    } as unknown as OwnedBox,
  };
  return fake;
}

const to = (host: string): readonly Grant[] => [{ host, port: 443 } as unknown as Grant];

async function losing(second: Barred) {
  const boxes = [fakeBox(), fakeBox(second)];
  const [one, next] = boxes as [FakeBox, FakeBox];
  const told: string[] = [];
  let at = 0;
  const lazy = new LazyBox(
    () => Promise.resolve((boxes[at++] as FakeBox).box),
    () => undefined,
    { tell: (text) => void told.push(text) },
  );
  const network = await lazy.network();
  assert.ok(network !== undefined);
  return { one, next, told, lazy, network };
}

test("a grant also applies to the box that replaces a lost one, and is withdrawn from that one", async () => {
  const { one, next, told, lazy, network } = await losing(undefined);
  const forSession = await network.grant(to("docs.example.org"));
  const forCall = await network.grant(to("api.example.org"));
  assert.deepEqual(one.reached, ["docs.example.org", "api.example.org"]);
  // The call that it was granted for ended before.
  forCall();
  await one.lose("evicted");
  await lazy.box();
  assert.deepEqual([one.removed, next.reached], [true, ["docs.example.org"]]);
  assert.match(told.at(-1) ?? "", /^it is granted the same hosts: docs\.example\.org$/);
  forSession();
  assert.deepEqual(next.reached, []);
  const more = await (await lazy.network())?.grant(to("more.example.org"));
  assert.deepEqual(next.reached, ["more.example.org"]);
  more?.();
  assert.deepEqual(next.reached, []);
});

test("without a grant, the loss of a box reports no grants", async () => {
  const { one, told, lazy } = await losing(undefined);
  await one.lose("evicted");
  await lazy.box();
  assert.doesNotMatch(told.join("\n"), /granted/);
});

for (const [barred, why] of [
  ["takes no grants", /it cannot be granted docs\.example\.org again: it takes no grants$/],
  ["refuses them", /it cannot be granted docs\.example\.org again: not this time$/],
] as const)
  test(`if the next box ${barred}, the run ends with 6, because it would be judged as granted`, async () => {
    const { one, next, lazy, network } = await losing(barred);
    await network.grant(to("docs.example.org"));
    await one.lose("evicted");
    await assert.rejects(lazy.box(), { exit: EXIT.sandbox, message: why });
    assert.ok(next.removed);
  });
