import assert from "node:assert/strict";
import { chown } from "node:fs/promises";
import test from "node:test";
import { skip } from "../fixtures/engine.ts";
import { household } from "./box-command.ts";
import { indexed, paths, search } from "./index-of.ts";
import { harness } from "./run-command.ts";

const FILES = {
  "src/door.ts": "export function openPortcullis(): void {}\n",
  "lid.ts": "openPortcullis();\n",
};

test(
  "a folder that cannot be indexed or searched is reported with a suitable next step",
  { skip },
  async () => {
    await using place = await household(FILES);
    await indexed(place);
    for (const [words, said] of [
      [["index", "nothere"], /there is no folder nothere: .*\n\s+next: harness index DIR/],
      [["index", "lid.ts"], /lid\.ts is not a folder\n\s+next: harness index DIR/],
      [["search", "--cwd", "nothere", "x"], /there is no folder nothere: .*\n\s+next: harness search --cwd/],
      [["search", "--below", "../x", "x"], /\.\.\/x is outside .*\n\s+next: harness search --below/],
      [["search", "--below", place.path, "x"], /is outside .*\n\s+next: harness search --below/],
      [["search", "--below", "nothere", "x"], /there is no nothere in .*\n\s+next: harness search --below/],
    ] as const) {
      const ran = await harness(place, words);
      assert.equal(ran.code, 2, ran.stderr);
      assert.match(ran.stderr, said);
    }
    for (const below of ["src", "./src", place.at("work/src")])
      assert.deepEqual(paths(await search(place, "portcullis", { flags: ["--below", below] })), [
        "src/door.ts",
      ]);
  },
);

const rootless = process.getuid?.() === 0 ? false : "only root can give a folder to root";

test(
  "for a folder of root there is no note about whose commands run",
  { skip: skip || rootless },
  async () => {
    await using place = await household(FILES);
    await chown(place.at("work"), 0, 0);
    const found = await search(place, "portcullis");
    assert.deepEqual([found.results.length, found.stderr], [2, ""]);
  },
);
