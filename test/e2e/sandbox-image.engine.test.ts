import assert from "node:assert/strict";
import test from "node:test";
import { skip } from "../fixtures/engine.ts";
import { ownImage } from "../fixtures/own-image.ts";
import { answerOf, household, sandboxExec } from "./box-command.ts";

test("an image without the runner works, and only the command runs in it", { skip }, async () => {
  await using place = await household();
  await using own = await ownImage('ENTRYPOINT ["/bin/echo", "entry"]', 'CMD ["point"]', "WORKDIR /var");
  const ended = await sandboxExec(place, ["--image", own.name, "--json", "--", "pwd"]);
  const { exit_code, stdout, stderr } = answerOf(ended);
  assert.deepEqual([exit_code, stdout, stderr], [0, `${place.at("work")}\n`, ""]);
});

test("an image that sets what programs load is refused at once", { skip }, async () => {
  await using place = await household();
  await using own = await ownImage("ENV LD_PRELOAD=/nowhere/evil.so");
  const { code, stdout, stderr } = await sandboxExec(place, ["--image", own.name, "--", "env"]);
  assert.deepEqual([code, stdout.toString()], [125, ""]);
  assert.match(stderr, /LD_PRELOAD/);
});

test("an image with volumes and a missing one are refused with 125", { skip }, async () => {
  await using place = await household();
  await using own = await ownImage("VOLUME /data");
  for (const [name, reason] of [
    [own.name, /declares volumes \(\/data\)/],
    ["no-such-image:1", /is not on this engine/],
  ] as const) {
    const { code, stdout, stderr } = await sandboxExec(place, ["--image", name, "--", "true"]);
    assert.deepEqual([code, stdout.toString()], [125, ""]);
    assert.match(stderr, reason);
  }
});
