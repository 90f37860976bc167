import assert from "node:assert/strict";
import test from "node:test";
import { fakeBox } from "../fakes/box.ts";
import { calling } from "../fixtures/tool-calls.ts";

const reader = (files: Readonly<Record<string, string>>) => calling(fakeBox({ files }));

test("lines are shown with their numbers and their total", async () => {
  const { says, facts } = reader({ "src/a.ts": "one\n\n  three\n" });
  const shown = "1\tone\n2\t\n3\t  three\n[all 3 lines]";
  assert.equal(await says("read_file", { path: "src/a.ts" }), shown);
  assert.equal(await says("read_file", { file_path: "/repo/src/../src/./a.ts", limit: null }), shown);
  assert.deepEqual(facts("read_file", { path: "../etc/x/../passwd" }).reads, ["/etc/passwd"]);
  const judged = ["~", "~/.ssh/x", "~/../x", "./~/x", "~x", "a/~/b"].flatMap(
    (path) => facts("read_file", { path }).reads,
  );
  assert.deepEqual(judged, [
    "/home/box",
    "/home/box/.ssh/x",
    "/home/x",
    "/repo/~/x",
    "/repo/~x",
    "/repo/a/~/b",
  ]);
});

test("a page says which lines it shows and where to continue", async () => {
  const text = Array.from({ length: 5000 }, (_, at) => `line ${at + 1}\n`).join("");
  const { says, call } = reader({ long: text });
  assert.match(
    await says("read_file", { path: "long" }),
    /^1\t.*\n2000\tline 2000\n\[lines 1-2000 of 5000; go on with offset 2001\]$/s,
  );
  const page = await says("read_file", { path: "long", offset: "4999", limit: 1 });
  assert.equal(page, "4999\tline 4999\n[lines 4999-4999 of 5000; go on with offset 5000]");
  assert.equal(
    await says("read_file", { path: "long", offset: 5000 }),
    "5000\tline 5000\n[lines 5000-5000 of 5000]",
  );
  const behind = await call("read_file", { path: "long", offset: 5001 });
  assert.deepEqual(behind, {
    kind: "failed",
    cause: "program",
    text: "long: offset 5001 is past its end, line 5000",
  });
});

test("a line of any length is shown completely", async () => {
  const line = "x".repeat(3_000_000);
  assert.equal(
    await reader({ min: line }).says("read_file", { path: "min" }),
    `1\t${line}\n[1 line; no newline at the end]`,
  );
});

test("line ends, a BOM and invalid UTF-8 are stated, not shown", async () => {
  const box = fakeBox({ files: { crlf: "\uFEFFa\r\nb\r\n", mixed: "a\r\nb\n", last: "a\r\nb", empty: "" } });
  await box.write("latin", Buffer.from([0x61, 0xe4, 0x0a]));
  const { says } = calling(box);
  assert.equal(
    await says("read_file", { path: "crlf" }),
    "1\ta\n2\tb\n[all 2 lines; starts with a BOM; CRLF line ends]",
  );
  assert.match(await says("read_file", { path: "mixed" }), /mixed line ends/);
  assert.match(await says("read_file", { path: "last" }), /CRLF line ends; no newline at the end/);
  assert.equal(
    await says("read_file", { path: "latin" }),
    "1\ta\uFFFD\n[1 line; bytes that are not UTF-8 are shown as \uFFFD]",
  );
  assert.equal(await says("read_file", { path: "empty" }), "[empty is empty]");
});

test("images and other binaries are named with their size", async () => {
  const box = fakeBox();
  const png = Buffer.concat([Buffer.from("89504e470d0a1a0a", "hex"), Buffer.alloc(2000)]);
  await box.write("a.png", png);
  await box.write("b.bin", Buffer.from([1, 0, 2]));
  await box.write("c.webp", Buffer.from("RIFF\0\0\0\0WEBPVP8 "));
  await box.write("utf16.txt", Buffer.from("\uFEFFhi", "utf16le"));
  const { says } = calling(box);
  assert.equal(await says("read_file", { path: "a.png" }), "[a.png: PNG image, 2.0 KiB; not shown]");
  assert.equal(await says("read_file", { path: "b.bin" }), "[b.bin: binary file, 3 B; not shown]");
  assert.match(await says("read_file", { path: "c.webp" }), /WebP image/);
  assert.match(await says("read_file", { path: "utf16.txt" }), /UTF-16 text/);
});

test("an unreadable file is reported with the reason, and with what may have been meant", async () => {
  const box = fakeBox({ files: { "src/main.ts": "", "src/other.ts": "", "README.md": "" } });
  box.files.make("/repo/pipe", "odd");
  const { call, says, context } = calling(box);
  assert.deepEqual(await call("read_file", { path: "src/mian.ts" }), {
    kind: "failed",
    cause: "filesystem",
    text: "src/mian.ts: no such file or folder. Did you mean main.ts?",
  });
  assert.match(await says("read_file", { path: "src/entirely" }), /\. In src: main\.ts other\.ts$/);
  assert.match(await says("read_file", { path: "lib/deep/x" }), /\. In \.: README\.md pipe src\/$/);
  assert.match(await says("read_file", { path: "src" }), /is a folder; list_dir/);
  assert.match(await says("read_file", { path: "pipe" }), /a FIFO, socket or device/);
  assert.match(await says("read_file", { path: "README.md/x" }), /is a file, not a folder/);
  assert.match(await says("read_file", { path: "a\0b" }), /^"a\\u0000b": /);
  assert.equal(context.known.size, 0);
});

test("an input that does not match names what is wrong", async () => {
  const { call } = reader({});
  const result = await call("read_file", { offset: "soon" });
  assert.equal(result.kind, "invalid");
  assert.match(result.text, /path: .*; offset: /);
});
