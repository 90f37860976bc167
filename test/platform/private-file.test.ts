import assert from "node:assert/strict";
import { chmod, mkdir, stat } from "node:fs/promises";
import { test } from "node:test";
import { privateFile } from "../../src/platform/sqlite.ts";
import { scratch } from "../fixtures/scratch.ts";

const modeOf = async (file: string): Promise<number> => (await stat(file)).mode & 0o777;

test("a new file is private to this user, and an existing one becomes private", async () => {
  await using place = await scratch({ "old.db": "kept" });
  assert.equal(privateFile(place.at("new.db")), place.at("new.db"));
  assert.equal(await modeOf(place.at("new.db")), 0o600);
  await chmod(place.at("old.db"), 0o644);
  privateFile(place.at("old.db"));
  assert.deepEqual([await modeOf(place.at("old.db")), await place.read("old.db")], [0o600, "kept"]);
});

test("a folder that has the name of a file is refused and left as it is", async () => {
  await using place = await scratch();
  await mkdir(place.at("index.db"));
  await chmod(place.at("index.db"), 0o755);
  assert.throws(() => privateFile(place.at("index.db")), {
    code: "EISDIR",
    message: /index\.db is not a file/,
  });
  assert.equal(await modeOf(place.at("index.db")), 0o755);
});

test("where no file can be made, the system's error is thrown", async () => {
  await using place = await scratch();
  assert.throws(() => privateFile(place.at("nowhere/index.db")), { code: "ENOENT" });
});
