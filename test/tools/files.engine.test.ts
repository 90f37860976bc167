import assert from "node:assert/strict";
import { symlink } from "node:fs/promises";
import test from "node:test";
import type { Box } from "../../src/core/ports.ts";
import { calling, held } from "../fixtures/tool-calls.ts";
import { realBox } from "../fixtures/real-box.ts";

const FILES = {
  ".git/config": "[core]\n",
  ".git/HEAD": "ref: refs/heads/main\n",
  ".gitignore": "*.log\nnode_modules\n",
  "node_modules/x/index.js": "needle\n",
  "src/a.ts": "one\nneedle two\nthree\n",
  "src/deep/b.ts": "no\n",
  "out.log": "needle\n",
  "min.js": `${"x".repeat(2000)} needle\n`,
  "-dash.ts": "needle\r\n",
};

const did = (box: Box, ...words: string[]) =>
  box.exec({ words, timeoutMs: 60_000, keep: { head: 10_000, tail: 0 } }, new AbortController().signal);

test("glob and grep find files that are not ignored, and never .git", async () => {
  await using opened = await realBox(FILES);
  const { says, call } = calling(opened.box);
  assert.equal(
    await says("glob", { pattern: "**" }),
    "-dash.ts\n.gitignore\n.keep\nmin.js\nsrc/a.ts\nsrc/deep/b.ts",
  );
  assert.equal(await says("glob", { pattern: "**/*.ts", path: "src" }), "src/a.ts\nsrc/deep/b.ts");
  assert.equal(await says("grep", { pattern: "^needle$" }), "-dash.ts\n1:needle");
  assert.equal(
    await says("grep", { pattern: "NEEDLE t", ignore_case: true, context: 1, glob: "*.ts" }),
    "src/a.ts\n1-one\n2:needle two\n3-three",
  );
  assert.match(
    await says("grep", { pattern: "needle", glob: "**/*", path: "min.js" }),
    /^min\.js\n1:x{400} \[\.\.\. .*\]$/,
  );
  assert.match(
    await says("grep", { pattern: "needle", glob: "**/*" }),
    /^-dash\.ts\n1:needle\nmin\.js\n1:x+.*\nsrc\/a\.ts\n2:needle two$/s,
  );
  assert.equal(
    await says("grep", { pattern: "[core]", path: "nowhere" }).then((text) => /No such file/.test(text)),
    true,
  );
  assert.match(await says("grep", { pattern: "--version" }), /no matches/);
  const bad = await call("grep", { pattern: "(" });
  assert.deepEqual([bad.kind, /unclosed group/.test(bad.text)], ["failed", true]);
});

test("a file too large to transfer is read by lines, and identified by size and time", async () => {
  await using opened = await realBox();
  const { box } = opened;
  const { says, call } = calling(box);
  await did(box, "sh", "-c", "seq 1 2000000 > big && printf end >> big");
  const page = await says("read_file", { path: "big", offset: 1_999_999, limit: 5 });
  assert.equal(
    page,
    "1999999\t1999999\n2000000\t2000000\n2000001\tend\n[lines 1999999-2000001 of 2000001; 14 MiB]",
  );
  assert.match(
    await says("read_file", { path: "big" }),
    /\n2000\t2000\n\[lines 1-2000 of 2000001; go on with offset 2001; 14 MiB\]$/,
  );
  assert.match(await says("read_file", { path: "big", offset: 3_000_000 }), /past its end, line 2000001/);
  const edit = { path: "big", old: "\nend", new: "\nEND" };
  assert.equal((await call("edit_file", edit)).kind, "ok");
  assert.equal((await call("edit_file", { ...edit, old: "END", new: "over" })).kind, "ok");
  await did(
    box,
    "sh",
    "-c",
    "printf OVER | dd of=big conv=notrunc bs=1 seek=$(($(stat -c %s big) - 4)) 2>&1",
  );
  assert.match(await says("edit_file", { ...edit, old: "OVER", new: "x" }), /has changed since/);
  await did(box, "sh", "-c", "head -c 9000000 /dev/zero | tr '\\0' y > line");
  assert.match(
    await says("read_file", { path: "line" }),
    /^1\ty+\n\[1 line; 8\.6 MiB; the last line shown is cut: /,
  );
});

const patch = (body: string): [string, object] => [
  "apply_patch",
  { patch: `*** Begin Patch\n*** Update File: src/a.ts\n@@\n-three\n+3\n${body}*** End Patch` },
];

test("protected paths are blocked for every tool, and stay unchanged", async () => {
  await using opened = await realBox(FILES);
  const { box } = opened;
  const { call } = calling(box);
  for (const path of [".git/config", "src/a.ts"])
    assert.equal((await call("read_file", { path })).kind, "ok");
  const attempts: readonly (readonly [string, object])[] = [
    ["write_file", { path: ".git/hooks/pre-commit", content: "#!/bin/sh\n" }],
    ["edit_file", { path: ".git/config", old: "[core]", new: "[alias]" }],
    ["write_file", { path: "/etc/new", content: "x" }],
    patch("*** Delete File: .git/config\n"),
    patch("*** Add File: .git/hooks/post-commit\n+x\n"),
    patch("*** Update File: .git/config\n*** Move to: moved\n"),
  ];
  for (const [name, args] of attempts) {
    const result = await call(name, args as Record<string, unknown>);
    assert.deepEqual(
      [result.kind, "cause" in result && result.cause],
      ["blocked", "filesystem"],
      JSON.stringify(args) + result.text,
    );
  }
  assert.deepEqual(
    [await held(box, ".git/config"), await held(box, "src/a.ts"), await held(box, "moved")],
    [FILES[".git/config"], FILES["src/a.ts"], undefined],
  );
  assert.equal((await call(...(patch("") as [string, Record<string, unknown>]))).kind, "ok");
  assert.equal(await held(box, "src/a.ts"), "one\nneedle two\n3\n");
});

test("a link does not lead out of the box", async () => {
  await using opened = await realBox({ "a.txt": "inside\n" });
  const { box, place } = opened;
  await place.write("secret.txt", "outside\n");
  await symlink(place.at("secret.txt"), place.at("work/out"));
  await symlink("a.txt", place.at("work/in"));
  const { call, says } = calling(box);
  assert.equal((await call("read_file", { path: "out" })).kind, "failed");
  assert.equal((await call("write_file", { path: "out", content: "x" })).kind, "failed");
  assert.match(await says("list_dir", {}), /^\.keep .*\na\.txt 7 B\nin@\nout@\n/);
  await call("read_file", { path: "in" });
  assert.equal((await call("edit_file", { path: "in", old: "inside", new: "changed" })).kind, "ok");
  assert.equal(await held(box, "a.txt"), "changed\n");
  assert.match(
    await says("edit_file", { path: "a.txt", old: "changed", new: "x" }),
    /^a\.txt: you had not read it/,
  );
});

test("apply_patch applies every kind of change that git reports", async () => {
  const before = {
    "a.txt": "1\n2\n3\n4\n",
    "b c.txt": "x\n",
    "run.sh": "#!/bin/sh\n",
    "ä.txt": "no newline",
  };
  await using opened = await realBox(before);
  const { box } = opened;
  const { call, says } = calling(box);
  for (const path of Object.keys(before)) await call("read_file", { path });
  await did(box, "cp", "-r", ".", "/tmp/new");
  const change =
    "cd /tmp/new && mkdir d && mv a.txt d/a.txt && sed -i s/3/three/ d/a.txt && rm 'b c.txt' && chmod +x run.sh && echo >> ä.txt && echo n > new";
  assert.equal((await did(box, "sh", "-c", change)).exit_code, 0);
  const diff = await did(
    box,
    "sh",
    "-c",
    "mkdir /tmp/g && cp -r . /tmp/g/w && cd /tmp/g/w && git init -q && git add -A && git write-tree > /tmp/tree && cp -r .git /tmp/new/ && cd /tmp/new && git add -A && git diff --cached -M $(cat /tmp/tree)",
  );
  const patch = Buffer.from(diff.stdout.head).toString("utf8");
  assert.match(patch, /rename to d\/a\.txt/);
  const told = await call("apply_patch", { patch });
  assert.equal(told.kind, "ok", told.text);
  await did(box, "rm", "-rf", "/tmp/new/.git");
  const same = await did(box, "diff", "-r", ".", "/tmp/new");
  assert.equal(Buffer.from(same.stdout.head).toString("utf8"), "");
  const mode = await box.stat("run.sh");
  assert.ok(mode.kind === "ok" && mode.value.mode === 0o755, await says("list_dir", {}));
});
