import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import test from "node:test";
import { engine } from "../fixtures/engine-api.ts";
import { skip } from "../fixtures/engine.ts";
import { boxesOver } from "../fixtures/standing-boxes.ts";
import { household } from "./box-command.ts";
import { finishedOf, harness, startModel } from "./run-command.ts";
import { assertValid } from "./run-requests.ts";

const NO_CHANGES = { added: [], modified: [], deleted: [], ignored: 0 };
const CALL = { calls: [["bash", { command: "touch made" }]] } as const;
const NOWHERE = { env: { DOCKER_HOST: "unix:///nowhere/docker.sock" } };

test(
  "without an engine nothing runs, the run ends with 6, and the session continues once there is one",
  {
    skip,
  },
  async () => {
    await using place = await household();
    await using model = await startModel([CALL, { text: "done" }]);
    const ran = await harness(place, ["run", "--json", ...model.flags, "make a file"], NOWHERE);
    const { status, tool_calls, answer, changes } = finishedOf(ran);
    assert.deepEqual([ran.code, status, answer, changes], [6, "sandbox", null, NO_CHANGES], ran.stderr);
    assert.ok(tool_calls <= 1);
    assert.equal(existsSync(place.at("work/made")), false);
    await using next = await startModel([CALL, { text: "done" }]);
    const more = await harness(place, ["run", "--continue", ...next.flags, "go on"]);
    assert.equal(more.code, 0, more.stderr);
    assert.ok(existsSync(place.at("work/made")));
    assertValid(next.asked());
  },
);

test("a model that never answers does not hide a missing engine", { skip }, async () => {
  await using place = await household();
  await using model = await startModel(() => "hang");
  const ran = await harness(place, ["run", ...model.flags, "make a file"], NOWHERE);
  assert.deepEqual([ran.code, ran.stdout], [6, ""], ran.stderr);
  assert.match(ran.stderr, /nowhere\/docker\.sock/);
});

test("a container removed during a run ends it with 6, never with a call on the host", { skip }, async () => {
  await using place = await household();
  await using model = await startModel([
    { calls: [["bash", { command: "touch began; sleep 30" }]] },
    { calls: [["bash", { command: "touch after" }]] },
    { text: "done" },
  ]);
  const ran = await harness(place, ["run", "--json", ...model.flags, "make files"], {
    whenMade: [
      place.at("work/began"),
      () =>
        void boxesOver(place.at("work")).then(([id = ""]) =>
          engine.api.getContainer(id).remove({ force: true }),
        ),
    ],
  });
  assert.deepEqual(
    [ran.code, finishedOf(ran).status, finishedOf(ran).changes],
    [6, "sandbox", null],
    ran.stderr,
  );
  assert.equal(existsSync(place.at("work/after")), false);
});

test("a missing image ends with 6 and is named", { skip }, async () => {
  await using place = await household();
  await using model = await startModel([CALL]);
  const ran = await harness(place, ["run", "--image", "nosuch:image", ...model.flags, "make a file"]);
  assert.deepEqual([ran.code, ran.stdout, existsSync(place.at("work/made"))], [6, "", false], ran.stderr);
  assert.match(ran.stderr, /nosuch:image/);
});
