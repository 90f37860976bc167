import assert from "node:assert/strict";
import { mkdir, realpath, symlink } from "node:fs/promises";
import { test } from "node:test";
import { belowOf } from "../../../src/app/project/search-request.ts";
import { EXIT, HarnessError } from "../../../src/core/errors.ts";
import { scratch } from "../../fixtures/scratch.ts";

test("a folder in the workspace is found from wherever it is named, and one outside is refused", async () => {
  await using place = await scratch({ "work/src/a/x.ts": "", "work/..odd/y.ts": "", "other/z.ts": "" });
  await symlink("../other", place.at("work/out"));
  await symlink("src/a", place.at("work/short"));
  await mkdir(place.at("work/src/b"));
  const work = await realpath(place.at("work"));
  const from = (given: string | undefined, current = work): Promise<string | null> =>
    belowOf(given, work, current);
  for (const [given, current, wanted] of [
    [undefined, work, null],
    [".", work, null],
    ["./", place.at("other"), null],
    ["src", work, "src"],
    ["src/a/", work, "src/a"],
    ["./src//a/x.ts", work, "src/a/x.ts"],
    [place.at("work/src"), place.at("other"), "src"],
    [`${work}/src/../src`, work, "src"],
    ["./a", place.at("work/src"), "src/a"],
    ["../b", place.at("work/src/a"), "src/b"],
    ["./src", place.at("other"), "src"],
    ["..odd", work, "..odd"],
    ["short", work, "src/a"],
  ] as const)
    assert.equal(await from(given, current), wanted, String(given));
  for (const [given, said] of [
    ["../other", /is outside/],
    [place.at("other"), /is outside/],
    ["out", /is outside/],
    ["/", /is outside/],
    ["../nowhere", /is outside/],
    ["nowhere", /there is no nowhere in /],
    ["./nowhere", /there is no \.\/nowhere in /],
    ["src/a/x.ts/y", /there is no src\/a\/x\.ts\/y in .*ENOTDIR/],
  ] as const)
    await assert.rejects(from(given), (thrown) => {
      assert.ok(thrown instanceof HarnessError);
      assert.match(thrown.message, said);
      assert.match(thrown.remedy, /harness search --below FOLDER/);
      return thrown.exit === EXIT.usage;
    });
});
