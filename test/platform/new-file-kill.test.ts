import assert from "node:assert/strict";
import { existsSync, statSync } from "node:fs";
import test from "node:test";
import { newFile } from "../../src/platform/safe-files.ts";
import { scratch } from "../fixtures/scratch.ts";
import { killed } from "../kills/killed.ts";

const BYTES = 300_000;

test("a new file is complete or absent, wherever its writer is killed, and can be written again", async () => {
  await using place = await scratch();
  const seen = new Set<string>();
  for (let at = 1, ended = false; !ended; at += 1) {
    const file = place.at(`new-${at}`);
    const moment = { kind: "step", at, half: at % 2 === 0 } as const;
    ({ ended } = await killed("fixtures/new-file-writer.ts", [file, String(BYTES)], moment));
    const size = existsSync(file) ? statSync(file).size : undefined;
    assert.ok(size === undefined || size === BYTES, `${size} bytes after a kill before change ${at}`);
    seen.add(size === undefined ? "not there" : "whole");
    if (size === undefined) await newFile(file, "again");
  }
  assert.deepEqual(seen, new Set(["not there", "whole"]));
});

test("an existing file is left unchanged", async () => {
  await using place = await scratch({ one: "first" });
  await assert.rejects(newFile(place.at("one"), "second"), { code: "EEXIST" });
  assert.equal(await place.read("one"), "first");
});
