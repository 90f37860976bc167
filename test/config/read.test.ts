import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { symlink, writeFile } from "node:fs/promises";
import test from "node:test";
import { promisify } from "node:util";
import { readConfigText } from "../../src/config/load-config.ts";
import { refusalOf } from "../fixtures/refusal.ts";
import { scratch } from "../fixtures/scratch.ts";

test("a file is read unchanged, with its byte order mark", async () => {
  await using place = await scratch({ "config.json": "\uFEFF{}\r\n" });
  assert.equal(readConfigText(place.at("config.json")), "\uFEFF{}\r\n");
});

test("a missing file is undefined", async () => {
  await using place = await scratch({ file: "" });
  assert.deepEqual(
    [readConfigText(place.at("none")), readConfigText(place.at("file/none"))],
    [undefined, undefined],
  );
});

test("a pipe without a writer is refused at once", { timeout: 5000 }, async () => {
  await using place = await scratch();
  const file = place.at("config.json");
  await promisify(execFile)("mkfifo", [file]);
  assert.deepEqual(await refusalOf(() => readConfigText(file)), [
    2,
    `${file}: cannot be read: it is a pipe or a device, not a file`,
  ]);
});

test("a link to an endless device is refused", async () => {
  await using place = await scratch();
  const file = place.at("config.json");
  await symlink("/dev/zero", file);
  assert.deepEqual(await refusalOf(() => readConfigText(file)), [
    2,
    `${file}: cannot be read: it is a pipe or a device, not a file`,
  ]);
});

test("a file of 1 MiB is read, one that is a byte longer is refused", async () => {
  await using place = await scratch();
  const file = await place.write("config.json", " ".repeat(2 ** 20));
  assert.equal(readConfigText(file)?.length, 2 ** 20);
  await place.write("config.json", " ".repeat(2 ** 20 + 1));
  assert.deepEqual(await refusalOf(() => readConfigText(file)), [
    2,
    `${file}: cannot be read: it is 1.0 MiB; the limit is 1.0 MiB`,
  ]);
});

test("bytes that are not UTF-8 are refused, so that none is lost when a setting is written", async () => {
  await using place = await scratch();
  const file = place.at("config.json");
  await writeFile(file, Buffer.from('{"chat_model": "caf\u00E9"}', "latin1"));
  assert.deepEqual(await refusalOf(() => readConfigText(file)), [
    2,
    `${file}: cannot be read: it is not UTF-8`,
  ]);
});
