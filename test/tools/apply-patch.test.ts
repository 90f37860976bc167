import assert from "node:assert/strict";
import test from "node:test";
import type { Box } from "../../src/core/ports.ts";
import { fakeBox } from "../fakes/box.ts";
import { calling, held } from "../fixtures/tool-calls.ts";

const FILES = { "a.txt": "one\ntwo\n", "b.txt": "1\r\n2\r\n", "gone.txt": "x\n", ".git/config": "[core]\n" };

/** A box whose files have all been read. */
async function known(files: Readonly<Record<string, string>> = FILES) {
  const box = fakeBox({ files });
  const caller = calling(box);
  for (const path of Object.keys(files)) await caller.call("read_file", { path });
  const all = async (...names: string[]) => Promise.all(names.map((name) => held(box, name)));
  return { ...caller, box, all };
}

const PATCH = `*** Begin Patch
*** Update File: a.txt
@@
 one
-two
+TWO
*** Add File: new/er.txt
+hello
*** Delete File: gone.txt
*** Update File: b.txt
*** Move to: c.txt
@@
-1
+one
*** End Patch`;

test("one patch changes, adds, deletes and moves files, and reports each", async () => {
  const { says, all, facts, box } = await known();
  box.files.chmod("/repo/b.txt", 0o755);
  assert.deepEqual(
    facts("apply_patch", { patch: PATCH }).writes,
    ["a.txt", "new/er.txt", "gone.txt", "b.txt", "c.txt"].map((name) => `/repo/${name}`),
  );
  assert.equal(
    await says("apply_patch", { patch: PATCH }),
    [
      "a.txt: +1 -1|new/er.txt: made, +1|gone.txt: deleted|b.txt moved to c.txt, +1 -1|",
      "a.txt: +1 -1|@@ -1,2 +1,2 @@| one|-two|+TWO",
      "b.txt moved to c.txt, +1 -1|@@ -1,2 +1,2 @@|-1|+one| 2",
    ]
      .join("|")
      .replaceAll("|", "\n"),
  );
  assert.deepEqual(await all("a.txt", "new/er.txt", "gone.txt", "b.txt", "c.txt"), [
    "one\nTWO\n",
    "hello\n",
    undefined,
    undefined,
    "one\r\n2\r\n",
  ]);
  const moved = await box.stat("c.txt");
  assert.ok(moved.kind === "ok" && moved.value.mode === 0o755);
});

test("a git diff with renames, modes, quoted names and /dev/null is accepted too", async () => {
  const { says, all, box } = await known({ ...FILES, "ä b.txt": "old\n" });
  const patch = String.raw`diff --git a/a.txt b/moved/a.txt
old mode 100644
new mode 100755
similarity index 50%
rename from a.txt
rename to moved/a.txt
index 814f4a4..1234567
--- a/a.txt
+++ b/moved/a.txt
@@ -1,2 +1,2 @@
 one
-two
+2
diff --git "a/\303\244 b.txt" "b/\303\244 b.txt"
--- "a/\303\244 b.txt"
+++ "b/\303\244 b.txt"
@@ -1 +1 @@
-old
+new
diff --git a/empty b/empty
new file mode 100644
index 0000000..e69de29
diff --git a/gone.txt b/gone.txt
deleted file mode 100644
--- a/gone.txt
+++ /dev/null
@@ -1 +0,0 @@
-x
--- /dev/null	1970-01-01
+++ b/plain	2026-11-21 10:00
@@ -0,0 +1 @@
+made
\ No newline at end of file
`;
  assert.match(await says("apply_patch", { patch }), /^a\.txt moved to moved\/a\.txt, \+1 -1\n/);
  assert.deepEqual(await all("a.txt", "moved/a.txt", "ä b.txt", "empty", "gone.txt", "plain"), [
    undefined,
    "one\n2\n",
    "new\n",
    "",
    undefined,
    "made",
  ]);
  const moved = await box.stat("moved/a.txt");
  assert.ok(moved.kind === "ok" && moved.value.mode === 0o755);
});

test("sections for one file build on each other, and written files count as read", async () => {
  const { says, call, all } = await known();
  const patch =
    "*** Begin Patch\n*** Add File: n\n+1\n*** Update File: n\n@@\n-1\n+2\n*** Update File: n\n*** Move to: m\n*** End Patch\n";
  assert.equal(await says("apply_patch", { patch }), "m: made, +1");
  assert.deepEqual(await all("n", "m"), [undefined, "2\n"]);
  assert.equal((await call("edit_file", { path: "m", old: "2", new: "3" })).kind, "ok");
});

test("with one mistake anywhere no file is touched", async () => {
  const { call, all } = await known();
  const first = "*** Update File: a.txt\n@@\n-one\n+ONE\n*** Add File: new\n+x\n";
  for (const [rest, why] of [
    ["*** Update File: b.txt\n@@\n-9\n+8\n", /b\.txt: its old lines are not in the file/],
    ["*** Update File: nowhere\n@@\n-9\n+8\n", /nowhere: no such file/],
    ["*** Add File: b.txt\n+8\n", /b\.txt: it is already there/],
    ["*** Update File: b.txt\n*** Move to: gone.txt\n", /gone\.txt: it is already there/],
    ["*** Delete File: sub\n", /sub: no such file/],
    ["*** Update File: b.txt\n@@\n 1\n 3\n+8\n", /b\.txt: .*lines 1-2 are nearest/],
  ] as const) {
    const result = await call("apply_patch", { patch: `*** Begin Patch\n${first}${rest}*** End Patch` });
    assert.deepEqual([result.kind, "cause" in result && result.cause], ["failed", "program"]);
    assert.match(result.text, why);
    assert.match(result.text, /Nothing was changed\.$/);
    assert.deepEqual(await all("a.txt", "b.txt", "new"), [FILES["a.txt"], FILES["b.txt"], undefined]);
  }
});

test("files that were not read, or changed since, are not patched, moved or deleted", async () => {
  const box = fakeBox({ files: FILES });
  const { says, call } = calling(box);
  const wants = [
    "*** Update File: a.txt\n@@\n-one\n+1",
    "*** Delete File: a.txt",
    "*** Update File: a.txt\n*** Move to: z",
  ];
  const patches = wants.map((want) => `*** Begin Patch\n${want}\n*** End Patch`);
  for (const patch of patches) {
    const unread = calling(fakeBox({ files: FILES }));
    assert.deepEqual(unread.facts("apply_patch", { patch }).reads, ["/repo/a.txt"]);
    const result = await unread.call("apply_patch", { patch });
    assert.deepEqual([result.kind, result.missed], ["failed", "unread"]);
    assert.match(result.text, /^a\.txt: you had not read it\. Nothing was changed\. .*\n1\tone\n/);
  }
  await call("read_file", { path: "a.txt" });
  await box.write("a.txt", Buffer.from("one\nsomebody\n"));
  for (const patch of patches)
    assert.match(await says("apply_patch", { patch }), /a\.txt: it has changed since/);
  assert.equal(await held(box, "a.txt"), "one\nsomebody\n");
});

test("when a later file is refused, the earlier ones are restored", async () => {
  const { context, box, all } = await known();
  box.files.chmod("/repo/gone.txt", 0o700);
  const walled = `${PATCH.replace("*** End Patch", "")}*** Update File: .git/config\n@@\n-[core]\n+[alias]\n*** End Patch`;
  const blocked = await calling(box, context).call("apply_patch", { patch: walled });
  assert.deepEqual([blocked.kind, "cause" in blocked && blocked.cause], ["blocked", "filesystem"]);
  assert.match(blocked.text, /^\.git\/config: blocked by the sandbox .*\nNothing was changed\.$/s);
  const full: Box = {
    ...box,
    write: (path, content) => (path.endsWith("/c.txt") ? FULL : box.write(path, content)),
  };
  const noRoom = await calling(full, context).call("apply_patch", { patch: PATCH });
  assert.deepEqual([noRoom.kind, "cause" in noRoom && noRoom.cause], ["failed", "disk"]);
  const noRm: Box = {
    ...box,
    exec: (request, signal) =>
      box.exec(request.words.at(-1)?.endsWith("/b.txt") ? { ...request, words: ["false"] } : request, signal),
  };
  const stays = await calling(noRm, context).call("apply_patch", { patch: PATCH });
  assert.deepEqual([stays.kind, "cause" in stays && stays.cause], ["failed", "filesystem"]);
  const names = ["a.txt", "b.txt", "gone.txt", ".git/config", "new/er.txt", "c.txt"];
  assert.deepEqual(await all(...names), [...Object.values(FILES), undefined, undefined]);
  const back = await box.stat("gone.txt");
  assert.ok(back.kind === "ok" && back.value.mode === 0o700);
  assert.equal((await calling(box, context).call("apply_patch", { patch: PATCH })).kind, "ok");
});

const FULL = Promise.resolve({
  kind: "failed",
  cause: "filesystem",
  code: "ENOSPC",
  path: "/repo/c.txt",
  reason: "",
} as const);

test("a cancelled patch writes nothing, and an unreadable one states no writes", async () => {
  const { call, all, facts } = await known();
  const result = await call("apply_patch", { patch: PATCH }, AbortSignal.abort());
  assert.deepEqual([result.kind, ...(await all("a.txt"))], ["cancelled", FILES["a.txt"]]);
  assert.deepEqual(facts("apply_patch", { patch: "words" }).writes, []);
  assert.equal((await call("apply_patch", { patch: "words" })).kind, "failed");
});

test("the diff of many changes is bounded for the whole patch", async () => {
  const lines = Array.from({ length: 100 }, (_, at) => `l${at}\n`).join("");
  const { says } = await known({ a: lines, b: lines });
  const section = (name: string): string =>
    `*** Update File: ${name}\n@@\n${lines.replaceAll("l", "-l")}${lines.replaceAll("l", "+L")}`;
  const told = await says("apply_patch", {
    patch: `*** Begin Patch\n${section("a")}${section("b")}*** End Patch`,
  });
  assert.match(
    told,
    /^a: \+100 -100\nb: \+100 -100\n\na: \+100 -100\n@@ .*\[and 344 more lines of this diff\]$/s,
  );
});
