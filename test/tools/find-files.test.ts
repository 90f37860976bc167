import assert from "node:assert/strict";
import test from "node:test";
import { fakeBox } from "../fakes/box.ts";
import type { FakeCommand } from "../fakes/commands.ts";
import { calling } from "../fixtures/tool-calls.ts";

const FILES = {
  "src/a.ts": "one\ntwo\n",
  "src/b/c.ts": "two\n",
  "top.md": "x".repeat(2048),
  "-odd": "two\n",
};

test("a folder's names are in order, with what they are", async () => {
  const box = fakeBox({ files: FILES });
  box.files.make("/repo/link", "link");
  box.files.make("/repo/pipe", "odd");
  const { says, facts } = calling(box);
  assert.equal(
    await says("list_dir", {}),
    "-odd 4 B\nlink@\npipe (FIFO, socket or device)\nsrc/\ntop.md 2.0 KiB\n[.: 5 entries]",
  );
  assert.equal(await says("list_dir", { path: "src/b" }), "c.ts 4 B\n[src/b: 1 entry]");
  assert.deepEqual(facts("list_dir", {}).reads, ["/repo"]);
  assert.match(await says("list_dir", { path: "scr" }), /Did you mean src\/\?/);
});

test("of a large folder the first names are shown and all are counted", async () => {
  const files = Object.fromEntries(Array.from({ length: 700 }, (_, at) => [`f${at}`, ""]));
  const lines = (await calling(fakeBox({ files })).says("list_dir", {})).split("\n");
  assert.deepEqual(
    [lines.length, lines.at(-1)],
    [501, "[.: 700 entries, the first 500 shown; use glob for the others]"],
  );
});

test("a name with a line feed cannot pass for two", async () => {
  const { says } = calling(fakeBox({ files: { "a\nb": "" } }));
  assert.equal(await says("list_dir", {}), '"a\\nb" 0 B\n[.: 1 entry]');
  assert.equal(await says("glob", { pattern: "*" }), '"a\\nb"');
});

test("glob gives the files that fit, from the folder that is asked about", async () => {
  const { says } = calling(fakeBox({ files: FILES }));
  assert.equal(await says("glob", { pattern: "*.ts" }), "src/a.ts\nsrc/b/c.ts");
  assert.equal(await says("glob", { pattern: "b/*", path: "src" }), "src/b/c.ts");
  assert.equal(await says("glob", { pattern: "/repo/src/*.ts" }), "src/a.ts");
  assert.match(await says("glob", { pattern: "*.py" }), /no file fits/);
});

test("glob and grep are bounded, and count what is left out", async () => {
  const files = Object.fromEntries(Array.from({ length: 350 }, (_, at) => [`f${at}.txt`, "needle\n"]));
  const { says } = calling(fakeBox({ files }));
  assert.match(await says("glob", { pattern: "*.txt" }), /\n\[and 50 more: narrow the pattern\]$/);
  const found = await says("grep", { pattern: "needle" });
  assert.match(found, /\n\[and 150 more matches: narrow the search\]$/);
  assert.equal(found.split("\n").length, 401);
});

test("grep gives lines with numbers below their file", async () => {
  const { says, call } = calling(fakeBox({ files: FILES }));
  assert.equal(
    await says("grep", { pattern: "TWO", ignore_case: "true" }),
    "-odd\n1:two\nsrc/a.ts\n2:two\nsrc/b/c.ts\n1:two",
  );
  assert.equal(await says("grep", { pattern: "o", path: "src/a.ts" }), "src/a.ts\n1:one\n2:two");
  const none = await call("grep", { pattern: "nowhere" });
  assert.deepEqual([none.kind, none.text], ["ok", "[no matches; ignored and binary files are left out]"]);
});

test("a pattern that is no regular expression fails with ripgrep's words", async () => {
  const result = await calling(fakeBox({ files: FILES })).call("grep", { pattern: "(" });
  assert.equal(result.kind, "failed");
  assert.match(result.text, /regex parse error/);
});

const slow: FakeCommand = ({ signal }) =>
  new Promise((end) => signal.addEventListener("abort", () => end(0)));
const absent: FakeCommand = () => 127;

test("a search ends as what ended it: cancelled, or without ripgrep", async () => {
  const { call } = calling(fakeBox({ commands: { rg: slow } }));
  const stop = new AbortController();
  const searching = call("grep", { pattern: "x" }, stop.signal);
  stop.abort();
  assert.equal((await searching).kind, "cancelled");
  const { says } = calling(fakeBox({ commands: { rg: absent } }));
  assert.match(await says("grep", { pattern: "x" }), /not in this image/);
});
