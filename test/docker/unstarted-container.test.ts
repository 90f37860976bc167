import assert from "node:assert/strict";
import test from "node:test";
import type { Engine } from "../../src/docker/engine.ts";
import { unstartedContainer } from "../../src/docker/unstarted-container.ts";

/** An engine that answers the removal of a container so. */
const refusing = (statusCode: number, message: string): Engine =>
  ({
    api: {
      createContainer: () =>
        Promise.resolve({ remove: () => Promise.reject(Object.assign(new Error(message), { statusCode })) }),
    },
  }) as unknown as Engine;

async function removed(statusCode: number, message: string): Promise<void> {
  await using held = await unstartedContainer(refusing(statusCode, message), { image: "i", labels: {} });
  assert.ok(held.container);
}

test("a container removed by somebody else meanwhile is not a failure, one that cannot be removed is reported", async () => {
  await removed(404, "no such container");
  await removed(409, "removal of container 1 is already in progress");
  await assert.rejects(removed(409, "it is in use"), /it is in use/);
  await assert.rejects(removed(500, "broken"), /broken/);
});
