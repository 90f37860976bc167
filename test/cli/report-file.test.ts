import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { lstatSync, readdirSync, symlinkSync } from "node:fs";
import test from "node:test";
import { writeReport } from "../../src/app/sessions/report-file.ts";
import { EXIT, HarnessError } from "../../src/core/errors.ts";
import { scratch } from "../fixtures/scratch.ts";

const MARK = "<the mark>";
const isRefused = (thrown: unknown): boolean =>
  thrown instanceof HarnessError && thrown.exit === EXIT.usage && thrown.remedy.includes("--html");

test("a new file and an earlier report are written, and nothing else is left", async () => {
  await using place = await scratch();
  await writeReport(place.at("r.html"), `${MARK} one`, MARK);
  await writeReport(place.at("r.html"), `${MARK} two`, MARK);
  assert.equal(await place.read("r.html"), `${MARK} two`);
  assert.deepEqual(readdirSync(place.path), ["r.html"]);
});

test("a file that is not our report is left unchanged", async () => {
  await using place = await scratch({
    "other.html": "<p>mine",
    empty: "",
    "folder/x": "",
    "ours.html": MARK,
  });
  symlinkSync(place.at("ours.html"), place.at("link.html"));
  execFileSync("mkfifo", [place.at("pipe")]);
  for (const name of ["other.html", "empty", "folder", "link.html", "pipe", "no/such/folder.html", "folder/"])
    await assert.rejects(writeReport(place.at(name), MARK, MARK), isRefused, name);
  assert.deepEqual(
    [await place.read("other.html"), await place.read("empty"), await place.read("ours.html")],
    ["<p>mine", "", MARK],
  );
  assert.ok(lstatSync(place.at("pipe")).isFIFO() && lstatSync(place.at("link.html")).isSymbolicLink());
  assert.deepEqual(readdirSync(place.at("folder")), ["x"]);
});
