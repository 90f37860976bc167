import assert from "node:assert/strict";
import test from "node:test";
import { fakeBox } from "../fakes/box.ts";
import { fakeToolContext } from "../fakes/tool-context.ts";
import { calling, held } from "../fixtures/tool-calls.ts";
import { fc } from "../fixtures/property.ts";

/** A box with one file that has been read. */
async function reading(text: string | Uint8Array) {
  const box = fakeBox({ files: { ".git/config": "" } });
  await box.write("f", Buffer.from(text as Uint8Array));
  const caller = calling(box);
  await caller.call("read_file", { path: "f" });
  return { ...caller, box, now: () => held(box, "f") };
}

test("one occurrence is replaced, and shown as a diff", async () => {
  const { says, now } = await reading("a\nb\nc\nd\n");
  assert.equal(
    await says("edit_file", { path: "f", old: "b\n", new: "B\n" }),
    "f: 1 place changed\n@@ -1,4 +1,4 @@\n a\n-b\n+B\n c\n d",
  );
  assert.equal(await now(), "a\nB\nc\nd\n");
  assert.equal(
    (await reading("x")).facts("edit_file", { path: "f", old: "x", new: "" }).writes[0],
    "/repo/f",
  );
});

test("several edits are made in order, or none at all", async () => {
  const { call, now } = await reading("a b c\n");
  const edits = [
    { old: "a", new: "1" },
    { old_string: "c", new_string: "3" },
  ];
  assert.equal((await call("edit_file", { path: "f", edits: JSON.stringify(edits) })).kind, "ok");
  assert.equal(await now(), "1 b 3\n");
  const result = await call("edit_file", {
    path: "f",
    edits: [
      { old: "1", new: "x" },
      { old: "zzz", new: "" },
    ],
  });
  assert.match(result.text, /^f: edit 2 of 2: old is not in the file/);
  assert.deepEqual([result.kind, await now()], ["failed", "1 b 3\n"]);
});

test("an edit of a file that was not read, or has changed since, is refused until it is read", async () => {
  const box = fakeBox({ files: { f: "a\n" } });
  const { call, says } = calling(box);
  const edit = { path: "f", old: "a", new: "b" };
  const unread = await call("edit_file", edit);
  assert.deepEqual([unread.kind, unread.missed], ["failed", "unread"]);
  assert.match(unread.text, /^f: you had not read it\. Nothing was changed\. .*:\n1\ta\n\[1 line\]$/);
  assert.equal(await held(box, "f"), "a\n");
  await box.write("f", Buffer.from("a \n"));
  assert.match(await says("edit_file", edit), /has changed since you read it/);
  assert.match(await says("write_file", { path: "f", content: "" }), /has changed since you read it/);
  assert.equal(await held(box, "f"), "a \n");
  await call("read_file", { path: "f" });
  assert.equal((await call("edit_file", edit)).kind, "ok");
  assert.equal((await call("edit_file", { ...edit, old: "b", new: "c" })).kind, "ok");
  assert.equal(await held(box, "f"), "c \n");
});

test("a text that occurs more than once needs all, or more context", async () => {
  const { call, now } = await reading("x\ny\nx\n");
  const result = await call("edit_file", { path: "f", old: "x", new: "z" });
  assert.match(result.text, /found 2 times, at lines 1, 3\./);
  assert.deepEqual([result.kind, await now()], ["failed", "x\ny\nx\n"]);
  assert.match(
    (await call("edit_file", { path: "f", old: "x", new: "z", replace_all: true })).text,
    /2 places/,
  );
  assert.equal(await now(), "z\ny\nz\n");
});

test("a miss shows the nearest place and what differs", async () => {
  const { says } = await reading("function one() {\n\treturn 1;\n}\n\nfunction two() {\n\treturn 2;\n}\n");
  const edit = (old: string, young = "") => says("edit_file", { path: "f", old, new: young });
  assert.match(
    await edit("  return 2;\n}"),
    /lines 6-7 differ only in spaces or tabs.*\n6\t\treturn 2;\n7\t}\nNothing was changed/s,
  );
  assert.match(
    await edit("function two(a) {\n\treturn 2;\n}"),
    /nearest is lines 5-7\..*5\tfunction two\(\) {/s,
  );
  assert.match(await edit("functoin two() {"), /nearest is line 5\./);
  assert.match(await edit("something else"), /nor anything like it/);
  assert.match(await edit("return 3", "return 2"), /new already is, at line 6/);
  assert.match(await edit("6\t\treturn 2;\n7\t}"), /leave them out/);
  assert.match(await edit("same", "same"), /old and new are the same/);
  assert.match(await edit("", "x"), /old is empty/);
});

test("an edit must have one of the two forms, and nothing more", async () => {
  const { call } = await reading("a");
  for (const args of [
    { path: "f" },
    { path: "f", old: "a" },
    { path: "f", old: "a", new: "b", edits: [{ old: "a", new: "" }] },
    {
      path: "f",
      old: "a",
      new: "b",
      edits: [
        { old: "a", new: "b" },
        { old: "c", new: "" },
      ],
    },
    { path: "f", old: "", new: "b", edits: [{ old: "a", new: "b" }] },
  ])
    assert.equal((await call("edit_file", args)).kind, "invalid");
  assert.equal((await call("write_file", { path: "f", content: "x", append: true })).kind, "invalid");
});

test("an edit given in both forms, or beside an empty one, is made once", async () => {
  const edits = [{ old: "a", new: "aa" }];
  for (const args of [
    { path: "f", old: "a", new: "aa", all: false, edits },
    { path: "f", old: "a", new: "aa", edits: [...edits, ...edits] },
    { path: "f", old: "", new: "", edits },
    { path: "f", old: "a", new: "aa", edits: [] },
  ]) {
    const file = await reading("a\n");
    assert.match(await file.says("edit_file", args), /^f: 1 place changed/);
    assert.equal(await file.now(), "aa\n");
  }
});

test("a rewritten file keeps its line ends and BOM, and loses no stray bytes", async () => {
  const file = await reading("\uFEFFa\r\nb\r\n");
  assert.equal(
    await file.says("write_file", { path: "f", content: "a\nb\n" }),
    "f: it already had this content",
  );
  assert.match(
    await file.says("write_file", { path: "f", content: "a\nc\n" }),
    /^f: replaced \(\+1 -1\); CRLF line ends; starts with a BOM as before\n/,
  );
  assert.equal(await file.now(), "\uFEFFa\r\nc\r\n");
  await file.says("write_file", { path: "f", content: "\uFEFFx\r\ny\n" });
  assert.equal(await file.now(), "\uFEFFx\r\ny\n", "the given text is used");
  assert.match(await file.says("write_file", { path: "f", content: "" }), /replaced/);
  assert.equal(await file.now(), "");
  const mixed = await reading("a\r\nb\n");
  assert.match(await mixed.says("write_file", { path: "f", content: "a\nb\n" }), /^f: replaced \(\+1 -1\)\n/);
  assert.equal(await mixed.now(), "a\nb\n");
  const latin = await reading(Buffer.from("caf\xe9\nx\n", "latin1"));
  assert.match(
    await latin.says("write_file", { path: "f", content: "caf\uFFFD\ny\n" }),
    /not UTF-8 .*edit_file/,
  );
  assert.equal(await latin.now(), "caf\uFFFD\nx\n", "the shown text is not written");
  assert.match(await latin.says("write_file", { path: "f", content: "café\ny\n" }), /^f: replaced/);
});

test("line ends, BOM, a missing final newline, the mode and stray bytes are kept", async () => {
  const crlf = await reading("\uFEFFa\r\nb\r\nc");
  await crlf.call("edit_file", { path: "f", old: "a\nb\n", new: "1\n2\n3\n" });
  assert.equal(await crlf.now(), "\uFEFF1\r\n2\r\n3\r\nc");
  assert.doesNotMatch(await crlf.says("edit_file", { path: "f", old: "2\n", new: "zwei\n" }), /\r/);
  const mixed = await reading("a\r\nb\nc\r\n");
  await mixed.call("edit_file", {
    path: "f",
    edits: [
      { old: "b\nc", new: "B\nC" },
      { old: "a\n", new: "A\n" },
    ],
  });
  assert.equal(await mixed.now(), "A\r\nB\nC\r\n");
  assert.match(
    await mixed.says("edit_file", { path: "f", old: "A\nB\nC", new: "x" }),
    /some of these lines end with CRLF and some with LF: .*Nothing was changed/,
  );
  const bytes = Buffer.from([0xe4, 0x0a, 0x62, 0xff]);
  const latin = await reading(bytes);
  latin.box.files.chmod("/repo/f", 0o755);
  assert.equal((await latin.call("edit_file", { path: "f", old: "b", new: "ä" })).kind, "ok");
  const now = await latin.box.read("f");
  assert.ok(now.kind === "ok" && Buffer.from([0xe4, 0x0a, 0xc3, 0xa4, 0xff]).equals(now.value.content));
  const found = await latin.box.stat("f");
  assert.ok(found.kind === "ok" && found.value.mode === 0o755);
});

test("everything that is not replaced is kept byte for byte", async () => {
  const bytes = fc.uint8Array({ maxLength: 60 }).map((all) => Buffer.from(all.map((one) => one || 1)));
  await fc.assert(
    fc.asyncProperty(bytes, bytes, fc.string({ maxLength: 9 }), async (before, after, young) => {
      const mark = "«mark»";
      const { call, box } = await reading(Buffer.concat([before, Buffer.from(mark), after]));
      const result = await call("edit_file", { path: "f", old: mark, new: young });
      assert.equal(result.kind, "ok", result.text);
      const now = await box.read("f");
      const wanted = Buffer.concat([before, Buffer.from(crlfAlike(young, before, after)), after]);
      assert.ok(now.kind === "ok" && wanted.equals(now.value.content));
    }),
    { numRuns: 500 },
  );
});

/** New lines take the line ends of a file that has no others. */
function crlfAlike(text: string, before: Buffer, after: Buffer): string {
  const around = `${before.toString("latin1")}x${after.toString("latin1")}`;
  const uniform = around.includes("\r\n") && !/(?:^|[^\r])\n/.test(around);
  return (uniform ? text.replace(/\r?\n/g, "\r\n") : text).toWellFormed();
}

test("sandbox refusals and a full disk are distinguished from mistakes", async () => {
  const { call, box, context } = await reading("a");
  await call("read_file", { path: ".git/config" });
  const wall = await call("write_file", { path: ".git/config", content: "[core]\n" });
  assert.deepEqual([wall.kind, "cause" in wall && wall.cause], ["blocked", "filesystem"]);
  const refused = {
    kind: "failed",
    cause: "filesystem",
    code: "ENOSPC",
    path: "/repo/f",
    reason: "",
  } as const;
  const full = calling({ ...box, write: () => Promise.resolve(refused) }, context);
  const result = await full.call("edit_file", { path: "f", old: "a", new: "b" });
  assert.deepEqual([result.kind, "cause" in result && result.cause], ["failed", "disk"]);
});

test("a whole file is created, replaced, or found unchanged", async () => {
  const { says, box } = await reading("a\nb\n");
  assert.equal(
    await says("write_file", { path: "deep/er/new", content: "1\n2" }),
    "deep/er/new: made, 2 lines",
  );
  assert.equal(
    await says("write_file", { path: "deep/er/new", content: "1\n" }),
    "deep/er/new: replaced (+1 -2)\n@@ -1,2 +1 @@\n 1\n-2\n\\ No newline at end of file".replace(
      "(+1 -2)",
      "(+0 -1)",
    ),
  );
  assert.equal(await says("write_file", { path: "f", content: "a\nb\n" }), "f: it already had this content");
  assert.match(await says("write_file", { path: "deep", content: "" }), /is a folder/);
  assert.equal(await held(box, "deep/er/new"), "1\n");
});

test("a small model is asked once before most of a file is removed; another model, or a rewrite, is not", async () => {
  const lines = Array.from({ length: 20 }, (_, at) => `line ${at}\n`);
  const text = lines.join("");
  const part = { path: "f", content: "line 3\nnew\n" };
  const weak = async (isWeak: boolean) => {
    const box = fakeBox({ files: { f: text, "g h": text } });
    const caller = calling(box, fakeToolContext({ workspace: box.workspace, isWeak: () => isWeak }));
    for (const path of ["f", "g h"]) await caller.call("read_file", { path });
    return { ...caller, box };
  };
  const { call, says, box } = await weak(true);
  const { kind, text: told } = await call("write_file", part);
  assert.deepEqual([kind, await held(box, "f")], ["failed", text]);
  assert.match(
    told,
    /^f: 19 of its 20 lines would be gone, so nothing was written\. .*edit_file.*write_file again/,
  );
  assert.match(
    await says("write_file", { ...part, path: "./g h" }),
    /19 of its 20 lines/,
    "each file is asked about once",
  );
  assert.match(await says("write_file", part), /^f: replaced \(\+1 -19\)/);
  const other = await weak(true);
  const anew = lines.map((line) => `other ${line}`).join("");
  assert.match(await other.says("write_file", { path: "f", content: anew }), /^f: replaced/);
  const most = lines.slice(0, 11).join("");
  assert.match(await other.says("write_file", { path: "g h", content: most }), /^g h: replaced/);
  assert.match(await (await weak(false)).says("write_file", part), /^f: replaced/);
});

test("a file shown in reply to an edit counts as read, and that read was stated for the verdict", async () => {
  const box = fakeBox({ files: { f: "a\n", ".env": "KEY=1\n" } });
  const { call, facts } = calling(box);
  const edit = { path: "f", old: "a", new: "b" };
  assert.deepEqual(facts("edit_file", edit), { ...facts("read_file", { path: "f" }), writes: ["/repo/f"] });
  await call("edit_file", edit);
  assert.deepEqual(facts("edit_file", edit).reads, []);
  assert.equal((await call("edit_file", edit)).kind, "ok");
  assert.equal(await held(box, "f"), "b\n");
});

test("a file that is large, empty or binary is not shown in reply to an edit", async () => {
  const files = { long: "a\n".repeat(401), wide: "x".repeat(16_001), empty: "" };
  const box = fakeBox({ files: { ...files, bin: "a\0b" } });
  const { call } = calling(box);
  for (const path of ["long", "wide", "empty", "bin"])
    for (const time of [1, 2]) {
      const { text, missed } = await call("edit_file", { path, old: "a", new: "b" });
      assert.deepEqual(
        [time, text, missed],
        [time, `${path}: read it with read_file first. Nothing was changed.`, undefined],
      );
    }
});

test("an empty file must be read too before it is overwritten", async () => {
  const { says } = calling(fakeBox({ files: { empty: "" } }));
  assert.match(await says("write_file", { path: "empty", content: "x" }), /read it with read_file first/);
});

test("a person is shown every removed and added line of exactly the input that runs", () => {
  const { shown } = calling(fakeBox({ files: { f: "a\n" } }));
  assert.equal(shown("write_file", { path: "f", content: "x\n\ny\n" }), "@@ all of the file @@\n+x\n+\n+y");
  assert.equal(
    shown("edit_file", {
      path: "f",
      edits: [
        { old: "a\nb", new: "c" },
        { old: "d", new: "", all: true },
      ],
    }),
    "@@ one place @@\n-a\n-b\n+c\n@@ every occurrence @@\n-d",
  );
  const patch = "*** Begin Patch\n*** Add File: n\n+one\n*** End Patch";
  assert.equal(shown("apply_patch", { patch }), patch);
});
