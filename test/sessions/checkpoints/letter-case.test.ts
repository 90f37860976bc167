import assert from "node:assert/strict";
import { linkSync, writeFileSync } from "node:fs";
import test from "node:test";
import { keptRun } from "../../fixtures/kept-run.ts";

/** Where letter case is ignored, one file can be reached by two names; hard links simulate this. */
test("an existing file may be the one to be removed under another spelling", async () => {
  await using kept = await keptRun({ "README.md": "x", "sub/FILE.TXT": "y" });
  using store = kept.open();
  await store.look();
  linkSync(kept.place.at("work/README.md"), kept.place.at("work/Readme.md"));
  linkSync(kept.place.at("work/sub/FILE.TXT"), kept.place.at("work/other"));
  writeFileSync(kept.place.at("work/sub/file.txt"), "of somebody else");
  const going = ["README.md", "sub/FILE.TXT"];
  assert.deepEqual(
    ["Readme.md", "other", "sub/file.txt", "gone"].map((path) => store.areUnchanged([path], going)),
    [true, false, false, true],
  );
  assert.equal(
    store.areUnchanged(["Readme.md"]),
    false,
    "it is not removed, so the existing file would be lost",
  );
});
