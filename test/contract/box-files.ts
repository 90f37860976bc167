import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import test from "node:test";
import { listsOf, NOTHING } from "../fixtures/changes.ts";
import type { FileResult } from "../../src/core/ports.ts";
import type { Suite } from "./box-suite.ts";
import { asking, FILES, NEVER, type Opened, text } from "./box-words.ts";

function valueOf<T>(result: FileResult<T>): T {
  assert.equal(result.kind, "ok", JSON.stringify(result));
  return (result as { readonly value: T }).value;
}

/** Kind, code and path of a refusal, whose reason says both. */
function refusal(result: FileResult<unknown>): readonly string[] {
  assert.notEqual(result.kind, "ok");
  if (result.kind === "ok") return [];
  const { kind, cause, code, path, reason } = result;
  assert.equal(cause, "filesystem");
  assert.ok(reason.includes(code) && reason.includes(path), reason);
  return [kind, code, path];
}

const run = async ({ box }: Opened, ...words: readonly string[]): Promise<number> =>
  (await box.exec(asking(words), NEVER)).exit_code;

export function fileCases(suite: Suite): void {
  contentCases(suite);
  searchCases(suite);
  refusalCases(suite);
  changeCases(suite);
  if (suite.copies) copyCases(suite);
  else protectionCases(suite);
}

function contentCases({ open, of, skip }: Suite): void {
  test(of("read returns a file or the requested part, and its whole size"), { skip }, async () => {
    await using opened = await open();
    const { box } = opened;
    const part = async (
      file: string,
      range?: { offset: number; limit: number },
    ): Promise<readonly unknown[]> => {
      const { content, size } = valueOf(await box.read(file, range));
      return [text(content), size];
    };
    assert.deepEqual(await part("old.txt"), ["old text\n", 9]);
    assert.deepEqual(await part(`${box.workspace}/sub/../old.txt`), ["old text\n", 9]);
    assert.deepEqual(await part("old.txt", { offset: 4, limit: 4 }), ["text", 9]);
    assert.deepEqual(await part("old.txt", { offset: 4, limit: 0 }), ["", 9]);
    assert.deepEqual(await part("old.txt", { offset: 100, limit: 4 }), ["", 9]);
    assert.deepEqual(await part("gone.txt"), ["", 0]);
    assert.deepEqual(await part(".git/config"), ["[core]\n", 7]);
  });

  test(
    of("write creates a file and its parent folders, and keeps the mode of an existing one"),
    { skip },
    async () => {
      await using opened = await open();
      const { box } = opened;
      const binary = Buffer.from([0, 255, 254, 10]);
      assert.equal(valueOf(await box.write("a/b/c", binary)), null);
      assert.deepEqual(Buffer.from(valueOf(await box.read("a/b/c")).content), binary);
      assert.equal(valueOf(await box.stat("a/b")).kind, "folder");
      assert.equal(valueOf(await box.stat("a/b/c")).mode, 0o644);
      assert.equal(await run(opened, "chmod", "750", "a/b/c"), 0);
      valueOf(await box.write("a/b/c", Buffer.from("")));
      const { mode, size, kind } = valueOf(await box.stat("a/b/c"));
      assert.deepEqual([mode, size, kind], [0o750, 0, "file"]);
      const large = Buffer.alloc(3_000_001, 7);
      valueOf(await box.write("large", large));
      assert.ok(large.equals(valueOf(await box.read("large")).content));
    },
  );

  test(
    of("parallel writes of one file leave one of them complete, and no other files"),
    { skip },
    async () => {
      await using opened = await open();
      const { box } = opened;
      const contents = Array.from({ length: 8 }, (_, index) => Buffer.alloc(700_000, index + 65));
      await Promise.all(contents.map(async (content) => valueOf(await box.write("sub/one", content))));
      const { content } = valueOf(await box.read("sub/one"));
      assert.ok(contents.some((one) => one.equals(content)));
      const names = valueOf(await box.list("sub")).map(({ name }) => name);
      assert.deepEqual(names.toSorted(), ["deep.txt", "one"]);
    },
  );

  test(of("list and stat name every kind of entry"), { skip }, async () => {
    await using opened = await open();
    const { box } = opened;
    for (const words of [
      ["mkfifo", "sub/fifo"],
      ["ln", "-s", "deep.txt", "sub/link"],
      ["mkdir", "sub/folder"],
    ])
      assert.equal(await run(opened, ...words), 0, words.join(" "));
    const entries = valueOf(await box.list("sub")).map(({ name, kind }) => [name, kind].join(" "));
    assert.deepEqual(entries.toSorted(), ["deep.txt file", "fifo odd", "folder folder", "link link"]);
    const { name, kind, size, modified } = valueOf(await box.stat("sub/deep.txt"));
    assert.deepEqual([name, kind, size], ["deep.txt", "file", FILES["sub/deep.txt"].length]);
    assert.ok(Math.abs(Date.now() / 1000 - modified) < 3600);
    assert.equal(valueOf(await box.stat("sub/link")).kind, "link");
    assert.deepEqual(valueOf(await box.list("sub/folder")), []);
    assert.equal(valueOf(await box.stat(box.workspace)).kind, "folder");
  });
}

function searchCases({ open, of, skip }: Suite): void {
  test(of("search returns matching lines in order of their paths, up to the limit"), { skip }, async () => {
    await using opened = await open();
    const { box } = opened;
    await box.write("sub/a.txt", Buffer.from("one\ntwo needle\nthree\n"));
    await box.write("sub/b.txt", Buffer.from("needle 4\n"));
    const lines = [
      { path: "sub/a.txt", line: 2, text: "two needle" },
      { path: "sub/b.txt", line: 1, text: "needle 4" },
    ];
    assert.deepEqual(valueOf(await box.search({ pattern: "n.edle", limit: 9 })), { lines, more: false });
    const first = valueOf(await box.search({ pattern: "needle", folder: "sub", limit: 1 }));
    assert.deepEqual(first, { lines: lines.slice(0, 1), more: true });
    const none = valueOf(await box.search({ pattern: "no such text", limit: 9 }));
    assert.deepEqual(none, { lines: [], more: false });
  });
}

function refusalCases({ open, of, skip, copies }: Suite): void {
  test(of("every refusal is a value with its path"), { skip }, async () => {
    await using opened = await open();
    const { box } = opened;
    const at = (name: string): string => `${box.workspace}/${name}`;
    await run(opened, "mkfifo", "fifo");
    const some = Buffer.from("x");
    assert.deepEqual(refusal(await box.read("no/such")), ["failed", "ENOENT", at("no/such")]);
    assert.deepEqual(refusal(await box.read("old.txt/x")), ["failed", "ENOTDIR", at("old.txt/x")]);
    assert.deepEqual(refusal(await box.read("sub")), ["failed", "EISDIR", at("sub")]);
    assert.deepEqual(refusal(await box.read("fifo")), ["failed", "EINVAL", at("fifo")]);
    assert.deepEqual(refusal(await box.write("sub", some)), ["failed", "EISDIR", at("sub")]);
    assert.deepEqual(refusal(await box.write("fifo", some)), ["failed", "EINVAL", at("fifo")]);
    assert.deepEqual(refusal(await box.write("old.txt/x", some)), ["failed", "ENOTDIR", at("old.txt/x")]);
    assert.deepEqual(refusal(await box.list("no")), ["failed", "ENOENT", at("no")]);
    assert.deepEqual(refusal(await box.list("old.txt")), ["failed", "ENOTDIR", at("old.txt")]);
    assert.deepEqual(refusal(await box.stat("no")), ["failed", "ENOENT", at("no")]);
    for (const name of copies ? [] : [".git/config", ".git/new", ".git/new/deep/er"])
      assert.deepEqual(refusal(await box.write(name, some)), ["blocked", "EROFS", at(name)]);
    assert.equal(text(valueOf(await box.read(".git/config")).content), "[core]\n");
  });

  test(of("impossible file names are refused, not truncated"), { skip }, async () => {
    await using opened = await open();
    const { box } = opened;
    const some = Buffer.from("x");
    for (const name of ["old.txt\0.png", "x".repeat(5000), "x/".repeat(600_000)]) {
      const results = [
        await box.read(name),
        await box.write(name, some),
        await box.stat(name),
        await box.list(name),
      ];
      for (const result of results) assert.equal(refusal(result)[0], "failed");
    }
    assert.equal(text(valueOf(await box.read("old.txt")).content), "old text\n");
  });

  test(of("a file that is too large is not written at all"), { skip }, async () => {
    await using opened = await open();
    const result = await opened.box.write("old.txt", Buffer.alloc(64 * 2 ** 20 + 1));
    assert.deepEqual(refusal(result), ["failed", "EFBIG", `${opened.box.workspace}/old.txt`]);
    assert.equal(text(valueOf(await opened.box.read("old.txt")).content), "old text\n");
  });
}

function changeCases({ open, of, skip }: Suite): void {
  test(
    of("changes are the files that were added, modified and deleted, by files or by commands"),
    { skip },
    async () => {
      await using opened = await open();
      const { box } = opened;
      assert.deepEqual(await listsOf(box.changes()), NOTHING);
      await box.write("old.txt", Buffer.from("new"));
      await box.write("fresh/one", Buffer.from("x"));
      await run(opened, "rm", "gone.txt");
      await run(opened, "mkfifo", "fifo");
      const { added, modified, deleted, odd, incomplete } = await listsOf(box.changes());
      assert.deepEqual(
        [added.toSorted(), modified, deleted, odd, incomplete],
        [["fifo", "fresh/one"], ["old.txt"], ["gone.txt"], ["fifo"], false],
      );
    },
  );
}

/** For boxes over a copy: what may reach the folder is decided when changes are applied. */
function copyCases({ open, of, skip }: Suite): void {
  test(of("in a copy nothing is protected, and nothing reaches the folder"), { skip }, async () => {
    await using opened = await open();
    const made = await opened.box.exec(asking(["mkdir", ".git/new", ".vscode"]), NEVER);
    assert.deepEqual([made.exit_code, made.blocked, made.quarantined], [0, [], []]);
    assert.equal((await opened.box.write(".git/config", Buffer.from("x"))).kind, "ok");
    assert.equal((await opened.box.stat(".vscode")).kind, "ok");
    const { folder } = opened;
    assert.ok(folder !== undefined);
    assert.deepEqual((await readdir(folder)).toSorted(), [".git", "gone.txt", "old.txt", "sub"]);
    assert.deepEqual(await readdir(`${folder}/.git`), ["config"]);
    assert.equal(await readFile(`${folder}/.git/config`, "utf8"), FILES[".git/config"]);
  });
}

function protectionCases({ open, of, skip }: Suite): void {
  test(
    of("a command learns that a protected path is blocked, and so does its result"),
    { skip },
    async () => {
      await using opened = await open();
      const { box } = opened;
      for (const more of [{}, { onOutput: () => undefined }, { keep: { head: 0, tail: 1000 } }]) {
        const request = asking(["touch", ".git/new"], more);
        const { exit_code, cause, blocked, reason } = await box.exec(request, NEVER);
        assert.deepEqual([exit_code, cause, blocked], [1, "filesystem", [`${box.workspace}/.git/new`]]);
        assert.notEqual(reason, "");
      }
    },
  );

  test(of("a protected path created by a command is moved out"), { skip }, async () => {
    await using opened = await open();
    const { box } = opened;
    const { exit_code, quarantined } = await box.exec(asking(["mkdir", ".vscode"]), NEVER);
    assert.deepEqual([exit_code, quarantined.map(({ from }) => from)], [0, [`${box.workspace}/.vscode`]]);
    assert.equal(refusal(await box.stat(".vscode"))[1], "ENOENT");
  });
}
