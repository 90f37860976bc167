import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdir, readFile, symlink, truncate, writeFile } from "node:fs/promises";
import test from "node:test";
import { archiveOf, refuseTooLarge, type Skipped } from "../../../src/boxes/workspace/workspace-archive.ts";
import { engine } from "../../fixtures/engine-api.ts";
import { skip } from "../../fixtures/engine.ts";
import { refusalOf } from "../../fixtures/refusal.ts";
import { scratch } from "../../fixtures/scratch.ts";
import { leftOver, openBox, OWNER } from "./open-box.ts";

const LONG = "n".repeat(200);

test(
  "a copy keeps owners, modes, times, links and long names, and follows no link to the host",
  { skip },
  async () => {
    await using place = await scratch({ "w/run": "x", [`w/${LONG}/${LONG}`]: "deep", outside: "secret" });
    const shell = `cd '${place.at("w")}' && chmod 750 run . && touch -d '2001-02-03 04:05:06 UTC' run &&
    ln -s ${place.at("outside")} out && ln -s ${LONG}/${LONG} long && mkfifo pipe && head -c 3000000 /dev/urandom >big &&
    touch $'b\\377d' $'new\\nline'`;
    execFileSync("bash", ["-ec", shell]);
    const sum = createHash("sha256")
      .update(await readFile(place.at("w/big")))
      .digest("hex");
    await using opened = await openBox(place, { isolation: "copy" });
    const said = await opened.sh(
      "stat -c '%n %U %u %a %Y' . run; sha256sum <big; cat long; cat out || echo gone; LC_ALL=C ls -b",
    );
    const lines = said.split("\n");
    assert.match(lines[0] ?? "", new RegExp(`^\\. \\S+ ${OWNER} 750 `));
    assert.match(lines[1] ?? "", new RegExp(`^run \\S+ ${OWNER} 750 981173106$`));
    assert.deepEqual(lines.slice(2, 4), [`${sum}  -`, "deepgone"]);
    assert.deepEqual(lines.slice(4, -1).toSorted(), [
      "b\\377d",
      "big",
      "long",
      "new\\nline",
      LONG,
      "out",
      "run",
    ]);
    assert.deepEqual(opened.warnings, ["not in the copy: pipe: it is not a file, folder or link"]);
  },
);

test("a kept copy is a volume that no reaper removes, and otherwise nothing is left", { skip }, async () => {
  await using place = await scratch({ "w/file": "1\n" });
  {
    await using opened = await openBox(place, { isolation: "copy" });
    await opened.sh("echo 2 >file");
  }
  assert.deepEqual(await leftOver(place.at("w")), []);
  {
    await using opened = await openBox(place, { isolation: "copy", keep: "session" });
    await opened.sh("echo 2 >file");
  }
  const [volume = "", ...more] = await leftOver(place.at("w"));
  const { Labels } = await engine.api.getVolume(volume).inspect();
  await engine.api.getVolume(volume).remove();
  assert.deepEqual([more, Labels["dev.harness.box"], Labels["dev.harness.kept"]], [[], undefined, "session"]);
  assert.equal(await place.read("w/file"), "1\n");
});

test("too large a workspace is refused before anything is created", async () => {
  await using place = await scratch({ "w/a": "1", "w/b": "2" });
  const limits = { bytes: 2 ** 30, entries: 1 };
  assert.match((await refusalOf(() => refuseTooLarge(place.at("w"), limits)))[1], /more than 1 files$/);
  await writeFile(place.at("w/large"), "");
  await truncate(place.at("w/large"), 2 * 2 ** 30);
  const [exit, message] = await refusalOf(() => refuseTooLarge(place.at("w")));
  assert.deepEqual([exit, message.endsWith("too large to be copied into a box: more than 2 GiB")], [6, true]);
});

test("the archive can be read by other programs", async () => {
  await using place = await scratch({ "w/a": "1", [`w/${LONG}`]: "22" });
  await mkdir(place.at("w/folder"));
  await symlink(LONG, place.at("w/folder/link"));
  const skipped: Skipped[] = [];
  const parts: Buffer[] = [];
  for await (const part of archiveOf(place.at("w"), "tree", (one) => skipped.push(one))) parts.push(part);
  const listed = execFileSync("tar", ["-tvf", "-"], { input: Buffer.concat(parts) }).toString();
  const names = listed
    .trimEnd()
    .split("\n")
    .map((line) => line.replace(/^(\S).*? (tree\/.*)$/, "$1 $2"));
  assert.deepEqual(names, [
    "d tree/",
    "- tree/a",
    "d tree/folder/",
    `l tree/folder/link -> ${LONG}`,
    `- tree/${LONG}`,
  ]);
  assert.deepEqual(skipped, []);
});
