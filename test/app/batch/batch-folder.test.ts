import assert from "node:assert/strict";
import test from "node:test";
import { openBatchFolder } from "../../../src/app/batch/batch-folder.ts";
import { EXIT, HarnessError } from "../../../src/core/errors.ts";
import { scratch } from "../../fixtures/scratch.ts";

test("an --out that is not or cannot become a folder ends with 2 and a message before anything begins", async () => {
  await using place = await scratch();
  await place.write("file", "mine\n");
  for (const out of [place.at("file"), place.at("file/below"), "/proc/none"])
    await assert.rejects(openBatchFolder(out, false), (thrown: unknown) => {
      assert.ok(thrown instanceof HarnessError);
      assert.deepEqual(
        [thrown.exit, thrown.remedy],
        [EXIT.usage, "choose an --out folder that you can write to"],
      );
      assert.match(thrown.message, new RegExp(`results cannot be saved in ${out}: `));
      return true;
    });
  assert.equal(await place.read("file"), "mine\n");
});
