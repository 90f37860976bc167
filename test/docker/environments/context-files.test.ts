// also slow: patterns made to take for ever
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { chmod, mkdir, symlink, writeFile } from "node:fs/promises";
import test from "node:test";
import {
  globOf,
  ignoredBy,
  pinnedBytes,
  readContext,
  MatchSteps,
  TooManySteps,
} from "../../../src/docker/environments/context-files.ts";
import { readDockerfile } from "../../../src/docker/environments/dockerfile.ts";
import { type Scratch, scratch } from "../../fixtures/scratch.ts";
import { slowTest } from "../../fixtures/slow-test.ts";

const sha = (text: string): string => createHash("sha256").update(text).digest("hex");

async function place(files: Readonly<Record<string, string>>): Promise<Scratch> {
  const made = await scratch();
  for (const [name, text] of Object.entries(files)) await made.write(`w/${name}`, text);
  return made;
}

/** For each source its files, or the reason why there are none. */
async function taken(
  top: string,
  folder: string,
  ...sources: readonly string[]
): Promise<Readonly<Record<string, readonly string[] | string>>> {
  const found = await readContext({ top, folder, dockerfile: "Dockerfile" }, sources);
  return Object.fromEntries(
    [...found].map(([source, each]) => [
      source,
      typeof each === "string" ? each : each.flatMap(({ files }) => files.map(({ below }) => below)),
    ]),
  );
}

test("files, folders and patterns are copied, except ignored ones", async () => {
  await using made = await place({
    "a.txt": "a",
    "b.txt": "b",
    "conf/x/deep.cfg": "deep",
    "conf/secret.key": "key",
    "conf/run.sh": "#!/bin/sh\n",
    ".dockerignore": "**/*.key\n",
  });
  assert.deepEqual(
    await taken(made.at("w"), "", "a.txt", "/b.txt", "./*.txt", "conf", "conf/", "conf/*.key", "none"),
    {
      "a.txt": ["a.txt"],
      "/b.txt": ["b.txt"],
      "./*.txt": ["a.txt", "b.txt"],
      conf: ["run.sh", "x/deep.cfg"],
      "conf/": ["run.sh", "x/deep.cfg"],
      "conf/*.key": "the build's context has nothing of this name, or leaves it out",
      none: "the build's context has nothing of this name, or leaves it out",
    },
  );
  assert.deepEqual(await taken(made.at("w"), "conf", ".", "x"), {
    ".": ["run.sh", "secret.key", "x/deep.cfg"],
    x: ["deep.cfg"],
  });
});

test("nothing outside the context is read: no parent folder, no link, no pipe", async () => {
  await using made = await place({ "ctx/in.txt": "in", "ctx/sub/x": "x", "out.txt": "out" });
  await writeFile(made.at("secret"), "the host's");
  await symlink(made.at("secret"), made.at("w/ctx/link"));
  await symlink("in.txt", made.at("w/ctx/sub/inner"));
  await mkdir(made.at("elsewhere"));
  await writeFile(made.at("elsewhere/f"), "f");
  await symlink(made.at("elsewhere"), made.at("w/ctx/folder"));
  const said = await taken(
    made.at("w"),
    "ctx",
    "../out.txt",
    "sub/../../out.txt",
    "link",
    "folder/f",
    "folder",
    "sub",
    "/etc/passwd",
    "in.txt",
    "l*",
  );
  assert.deepEqual(said, {
    "../out.txt": "it leads out of the build's context",
    "sub/../../out.txt": "it leads out of the build's context",
    link: "link is a link",
    "folder/f": "a folder on the way to ctx/folder/f is a link",
    folder: "folder is a link",
    sub: "sub/inner is a link",
    "/etc/passwd": "the build's context has nothing of this name, or leaves it out",
    "in.txt": ["in.txt"],
    "l*": "link is a link",
  });
  await symlink("ctx", made.at("w/other"));
  assert.match(String((await taken(made.at("w"), "other", "."))["."]), /is a link/);
});

test("the whole workspace and too much data are refused as a source", async () => {
  await using made = await place({ a: "a", "big/x": "x".repeat(17 * 2 ** 20) });
  const said = await taken(made.at("w"), "", ".", "/", "*", "big");
  for (const source of [".", "/", "*"]) assert.match(String(said[source]), /the whole workspace/);
  assert.match(String(said["big"]), /big\/x cannot be read/);
  await mkdir(made.at("w/many"));
  for (let n = 0; n < 501; n += 1) await writeFile(made.at(`w/many/${n}`), "");
  assert.match(String((await taken(made.at("w"), "", "many"))["many"]), /more than 500 files/);
});

test("a file pinned by a recipe is read only with exactly these bytes, and never through a link", async () => {
  await using made = await place({ "a/b.txt": "one" });
  const file = { path: "a/b.txt", sha256: sha("one") };
  assert.equal(Buffer.from(await pinnedBytes(made.at("w"), file)).toString(), "one");
  await writeFile(made.at("w/a/b.txt"), "two");
  await assert.rejects(pinnedBytes(made.at("w"), file), /changed since the recipe was made/);
  await writeFile(made.at("x"), "one");
  await symlink("../../x", made.at("w/a/l.txt"));
  await assert.rejects(pinnedBytes(made.at("w"), { ...file, path: "a/l.txt" }));
  await assert.rejects(pinnedBytes(made.at("w"), { ...file, path: "../x" }), /link/);
});

test("COPY and ADD put files where an image build does", async () => {
  await using made = await place({
    "a.txt": "a",
    "run.sh": "#!/bin/sh\n",
    "d/x/y": "y",
    "d/z": "z",
    "r.tar.gz": "r",
  });
  await chmod(made.at("w/run.sh"), 0o700);
  const lines = async (...text: readonly string[]): Promise<readonly string[]> => {
    const file = ["FROM base", "WORKDIR /w", ...text].join("\n");
    const first = readDockerfile(file);
    assert.ok(typeof first !== "string");
    const context = await readContext({ top: made.at("w"), folder: "", dockerfile: "D" }, first.sources);
    const read = readDockerfile(file, { context });
    assert.ok(typeof read !== "string");
    return [
      ...read.lines.flatMap(({ run, files = [] }) => [
        ...files.map(({ path, to, within, mode, owner }) =>
          [path, to, within, mode, owner].filter(Boolean).join(" "),
        ),
        ...(run.startsWith(":") ? [] : [run]),
      ]),
      ...read.notTaken,
    ];
  };
  assert.deepEqual(await lines("COPY a.txt run.sh bin/"), [
    "a.txt /w/bin/a.txt 644",
    "run.sh /w/bin/run.sh 755",
  ]);
  assert.deepEqual(await lines("COPY a.txt ."), ["a.txt /w/a.txt 644"]);
  assert.deepEqual(await lines("COPY a.txt /opt"), ["a.txt /opt a.txt 644"]);
  assert.deepEqual(await lines("COPY d /opt/d"), ["d/x/y /opt/d/x/y 644", "d/z /opt/d/z 644"]);
  assert.deepEqual(await lines("COPY --chown=1000:5 --chmod=0600 d/z /z"), ["d/z /z z 0600 1000:5"]);
  assert.deepEqual(await lines("ARG N=a", 'COPY ["$N.txt", "/b c"]'), ["a.txt /b c a.txt 644"]);
  const [unpacked, how] = await lines("ADD r.tar.gz /opt");
  assert.equal(unpacked, "r.tar.gz /run/harness-unpacked/r.tar.gz 644");
  assert.match(how ?? "", /^mkdir -p \/opt && for each in .*tar -xf/);
  assert.deepEqual(await lines("COPY r.tar.gz /opt/"), ["r.tar.gz /opt/r.tar.gz 644"]);
  for (const line of [
    "COPY *.txt none /x/",
    "COPY a.txt run.sh /x",
    "COPY --chmod=u+x a.txt /x",
    "COPY --parents a.txt /x",
    "COPY --from=b /* /x",
  ])
    assert.match((await lines(line)).join("|"), /^(COPY|ADD) [^|]*: [^|]+$/, line);
});

const holds = (pattern: string, path: string, deep = true): boolean =>
  globOf(pattern, deep)?.matches(path, new MatchSteps()) === true;

test("a star stays within a name, and two of them cross folders", () => {
  for (const [pattern, path] of [
    ["*.md", "a.md"],
    ["a/*/c", "a/b/c"],
    ["**/c", "c"],
    ["**/c", "a/b/c"],
    ["a/**", "a/b/c"],
    ["a/**/c", "a/c"],
    ["a/**/c", "a/b/b/c"],
    ["?.txt", "a.txt"],
    ["[a-c]x", "bx"],
    ["[^a-c]x", "dx"],
    [String.raw`\*x`, "*x"],
    ["a**b", "a/x/b"],
  ] as const)
    assert.ok(holds(pattern, path), `${pattern} is ${path}`);
  for (const [pattern, path] of [
    ["*.md", "a/b.md"],
    ["a/*/c", "a/b/b/c"],
    ["**/c", "ac"],
    ["a/**/c", "ac"],
    ["?", "/"],
    ["[^a]", "/"],
    ["[a-c]x", "dx"],
    [String.raw`\*x`, "ax"],
  ] as const)
    assert.ok(!holds(pattern, path), `${pattern} is not ${path}`);
  assert.ok(!holds("a**b", "a/x/b", false));
  assert.equal(globOf("[a", true), undefined);
  assert.equal(globOf("a\\", true), undefined);
});

test("the last matching line of a .dockerignore decides, and a folder includes everything below it", () => {
  const ignored = ignoredBy("# all\n*\n!src\n src/*.log \n!/src/keep.log\n\n!docs/**/*.md\n");
  const left = (path: string): boolean => ignored(path, new MatchSteps());
  const paths = [
    "a",
    "src",
    "src/x.ts",
    "src/x.log",
    "src/keep.log",
    "src/deep/x.log",
    "docs/a/b.md",
    "docs/b.txt",
  ];
  assert.deepEqual(paths.map(left), [true, false, false, true, false, false, false, true]);
  assert.equal(ignoredBy("node_modules")("node_modules/a/b", new MatchSteps()), true);
  assert.equal(ignoredBy("node_modules")("packages/node_modules/a", new MatchSteps()), false);
});

slowTest("patterns built to take forever are stopped", () => {
  const hostile = `${"**a".repeat(150)}b\n`.repeat(400);
  const ignored = ignoredBy(hostile);
  assert.throws(() => {
    const steps = new MatchSteps();
    for (let n = 0; n < 5000; n += 1) ignored("a/".repeat(140), steps);
  }, TooManySteps);
  assert.throws(() => ignoredBy("a\n".repeat(10_000)), TooManySteps);
});
