import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import test from "node:test";
import { giveAway } from "../fixtures/give-away.ts";
import { skip } from "../fixtures/engine.ts";
import { household } from "./box-command.ts";
import { bash, call, DONE, edit, read, together, work } from "./task.ts";

const bytesAt = (file: string): string => readFileSync(file).toString("latin1");

test("line ends, a byte order mark and a missing last line end are preserved", { skip }, async () => {
  const [dos, mark, bare] = ["port=80\r\nhost=a\r\n", "\uFEFFname: Café\nport: 80\n", "port 80"];
  await using place = await household({ "dos.ini": dos, "mark.yml": mark, "bare.conf": bare });
  const patch = "*** Begin Patch\n*** Update File: dos.ini\n@@\n-host=a\n+host=b\n+path=/\n*** End Patch\n";
  const { code, answer, finished } = await work(place, {
    task: "Change the port to 8080 in every file, and the host of dos.ini to b.",
    steps: [
      together(read("dos.ini"), read("mark.yml"), read("bare.conf")),
      [
        /port 80/,
        together(
          edit("dos.ini", "port=80\n", "port=8080\n"),
          edit("mark.yml", "port: 80", "port: 8080"),
          edit("bare.conf", "80", "8080"),
          call("apply_patch", { patch }),
        ),
      ],
      [/dos\.ini/, DONE],
    ],
  });
  assert.deepEqual([code, answer], [0, DONE.text]);
  assert.equal(finished.changes?.modified.length, 3);
  assert.equal(await place.read("work/dos.ini"), "port=8080\r\nhost=b\r\npath=/\r\n");
  assert.equal(await place.read("work/mark.yml"), "\uFEFFname: Café\nport: 8080\n");
  assert.equal(await place.read("work/bare.conf"), "port 8080");
});

test("bytes that are not UTF-8 are preserved in an edit", { skip }, async () => {
  await using place = await household();
  await writeFile(place.at("work/latin.txt"), Buffer.from("caf\xE9 one\nna\xEFve two\n", "latin1"));
  await giveAway(place.at("work"));
  const { code } = await work(place, {
    task: "Change one to three in latin.txt.",
    steps: [read("latin.txt"), [/one/, edit("latin.txt", "one", "three")], DONE],
  });
  assert.equal(code, 0);
  assert.equal(bytesAt(place.at("work/latin.txt")), "caf\xE9 three\nna\xEFve two\n");
});

test("a binary file is reported as such, and no edit changes it", { skip }, async () => {
  await using place = await household();
  const image = Buffer.from(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
    "base64",
  );
  await writeFile(place.at("work/dot.png"), image);
  await giveAway(place.at("work"));
  const { code, results, finished } = await work(place, {
    task: "Change the colour of dot.png.",
    steps: [
      read("dot.png"),
      [/dot\.png: .*; not shown/, edit("dot.png", "PNG", "GIF")],
      [/binary/, bash("head -c 8 dot.png")],
      { text: "It is a picture: I cannot edit it as text." },
    ],
  });
  assert.equal(code, 0);
  assert.match(results[0] ?? "", /PNG image/);
  assert.doesNotMatch(results.join(""), /[\0-\u0008\u001A]/);
  assert.deepEqual(finished.changes, { added: [], modified: [], deleted: [], ignored: 0 });
  assert.deepEqual(readFileSync(place.at("work/dot.png")), image);
});

test("a path with spaces, quotes and a dollar sign works in every tool", { skip }, async () => {
  const odd = `it's "two" lines & $HOME`;
  const file = `my docs/${odd}.txt`;
  await using place = await household({ [file]: "one\n", "-rf": "two\n" });
  const made = `my docs/new 'file'/${odd}.md`;
  const { code, answer, finished } = await work(place, {
    task: "Change one to three in the odd file, and copy it.",
    steps: [
      call("glob", { pattern: "my docs/*" }),
      [/two/, together(read(file), read("-rf"))],
      [/two/, edit(file, "one", "three")],
      [/1 place changed/, call("write_file", { path: made, content: "three\n" })],
      [/new/, bash("cd 'my docs' && cat -- *.txt && cp -- *.txt '../a copy'")],
      [/^three/, bash("pwd; cat -- '../-rf'")],
      [/my docs\ntwo/, DONE],
    ],
  });
  assert.deepEqual([code, answer], [0, DONE.text]);
  for (const each of [file, "a copy", made]) assert.equal(await place.read(`work/${each}`), "three\n");
  assert.deepEqual(finished.changes?.modified, [file]);
  assert.deepEqual(finished.changes?.added.toSorted(), ["a copy", made]);
});

test(
  "a name with a line break can be read and is shown on one line, and no tool writes it",
  { skip },
  async () => {
    const file = "two\nlines.txt";
    await using place = await household({ [file]: "one\n" });
    const { code, finished, ran, results } = await work(place, {
      task: "Change one to three in the odd file.",
      steps: [
        call("list_dir", {}),
        read(file),
        [/1\tone/, edit(file, "one", "three")],
        [/control character/, { text: "It cannot be written." }],
      ],
    });
    assert.deepEqual([code, finished.denials.map(({ rule }) => rule)], [4, ["path.control"]], ran.stderr);
    assert.match(results[0] ?? "", /two\\nlines\.txt/);
    assert.equal(await place.read(`work/${file}`), "one\n");
  },
);
