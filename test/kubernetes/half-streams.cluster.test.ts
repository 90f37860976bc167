import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { setImmediate } from "node:timers/promises";
import { layerOf } from "../../src/boxes/workspace/layer-record.ts";
import { EXIT } from "../../src/core/errors.ts";
import { asking, NEVER } from "../contract/box-words.ts";
import { type BoxPlace, boxPlace } from "./cluster-boxes.ts";
import { attached, type Cluster } from "./cluster.ts";
import { look } from "./cluster-api.ts";

/** Transfers of a box's tree that are cut half-way, between here and a real cluster. */

const cluster: Cluster = await attached(process.env["HARNESS_TEST_KUBERNETES"] ?? "tests");
const { api } = cluster;
const skip = cluster.network !== "enforced" && `boxes need a network that is shut: it is ${cluster.network}`;

const MiB = 2 ** 20;
const keep = "session1";
const some = (bytes: number): string => randomBytes(bytes / 2).toString("hex");

const gone = ({ space }: BoxPlace): Promise<unknown> =>
  api.until(space.pods, ({ body }) => (look(body, "items") as readonly unknown[]).length === 0);

test("a tree that arrives only half makes no box (exit 6), and nothing is left of it", { skip }, async () => {
  await using place = await boxPlace(cluster, { files: { "a.txt": "one\n", "large.txt": some(16 * MiB) } });
  await cluster.gate({ cutAfter: 4 * MiB });
  await assert.rejects(place.open(), { exit: EXIT.sandbox });
  await gone(place);
  assert.deepEqual(await place.named("networkpolicies"), []);
  const box = await place.open();
  const { exit_code } = await box.exec(asking(["sh", "-c", "test $(wc -c < large.txt) = 16777216"]), NEVER);
  await box[Symbol.asyncDispose]();
  assert.equal(exit_code, 0, "a transfer that is not cut makes a box");
});

test(
  "a change that comes back only half is dropped: the next box begins with the last complete state",
  { skip },
  async () => {
    await using place = await boxPlace(cluster);
    const box = await place.open({ keep });
    const said = async (line: string, of = box): Promise<string> => {
      const { stdout } = await of.exec(asking(["bash", "-ec", line]), NEVER);
      return Buffer.from(stdout.head).toString();
    };
    await said("echo two >> a.txt");
    await box.home?.bring();
    await said("head -c 60000000 /dev/urandom > large.bin; echo three >> a.txt");
    const bringing = Promise.allSettled([box.home?.bring()]);
    const pieces = path.join((await layerOf(place.place.at("state"), keep))?.folder ?? "", "pieces");
    try {
      // Some of it has arrived, but not all.
      const patience = AbortSignal.timeout(30_000);
      while (!existsSync(path.join(pieces, ".new/tree/large.bin"))) {
        assert.ok(!patience.aborted, "nothing arrived within 30 seconds");
        await setImmediate();
      }
      await cluster.gate({ state: "refused" });
      await bringing;
      assert.ok(!existsSync(path.join(pieces, "000002")), "all of it arrived before it was cut");
    } finally {
      await cluster.gate({ state: "open" });
      await box[Symbol.asyncDispose]();
    }
    await gone(place);
    await using next = await place.open({ keep });
    assert.equal(await said("cat a.txt; ls", next), "one\ntwo\na.txt\n");
  },
);
