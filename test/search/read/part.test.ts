import assert from "node:assert/strict";
import test from "node:test";
import { entriesOfFolders } from "../../../src/search/read/part.ts";
import { fakeBox } from "../../fakes/box.ts";
import { never } from "../../fixtures/index.ts";

const record = (letter: string, path: string): string => `${letter}\0${"1\0".repeat(4)}./${path}\0`;

/** What one `find` tells of `src` and of a folder below it of this kind; what it is asked. */
async function told(kind: string): Promise<readonly [readonly string[] | undefined, string]> {
  const box = fakeBox({
    commands: {
      find: async ({ out }) => {
        await out(record("f", "src/a.ts") + record(kind, "src/data"));
        return 0;
      },
    },
  });
  const found = await entriesOfFolders(box, ["src"], { deep: false, signal: never });
  return [found?.map(({ path }) => path), JSON.stringify(box.asked)];
}

test("a part in which a folder may not be looked into does not tell all of it", async () => {
  const [open, words] = await told("d");
  assert.deepEqual(open, ["src/a.ts", "src/data"]);
  const form = JSON.stringify(String.raw`\0%s\0%T@\0%C@\0%i\0%p\0`).slice(1);
  assert.ok(words.includes(`"%y${form}`) && words.includes(`"closed${form}`), words);
  assert.deepEqual((await told("closed"))[0], undefined);
});
