import assert from "node:assert/strict";
import { test } from "node:test";
import { entriesOfFolders } from "../../../src/search/files/workspace-listing.ts";
import { fakeBox } from "../../fakes/box.ts";
import { never } from "../../fixtures/index.ts";

const record = (path: string): string => `f\0${"1\0".repeat(4)}${path}\0`;

const found = async (written: string, code = 0, folders = ["a"]): Promise<readonly string[] | undefined> => {
  const box = fakeBox({ commands: { find: async ({ out }) => (await out(written), code) } });
  const entries = await entriesOfFolders(box, folders, { deep: false, signal: never });
  return entries?.map(({ path }) => path);
};

test("part of a workspace is listed completely or not at all", async () => {
  assert.deepEqual(await found(record("./a/b.ts")), ["a/b.ts"]);
  assert.deepEqual(await found("", 0, []), []);
  assert.equal(await found(record("./a/b.ts"), 1), undefined, "a folder is gone");
  const nameless = record(`./a/${"n".repeat(5000)}`);
  assert.equal(await found(nameless + record("./a/b.ts")), undefined, "a path too long to open");
  assert.equal(
    await found(record("./a/b.ts"), 0, ["n".repeat(2 ** 15)]),
    undefined,
    "the command is too long",
  );
  await assert.rejects(found(record("/a/b.ts")), /cannot be read/);
  await assert.rejects(
    found(record("a/b.ts")),
    /cannot be read/,
    "a path that does not begin where the listing began",
  );
});
