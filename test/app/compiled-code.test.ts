import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import test from "node:test";
import { scratch } from "../fixtures/scratch.ts";

const LOADER = path.join(import.meta.dirname, "../../src/app/compiled-code.ts");
/** Where Node keeps the loader without its types. As a variable it would say where the loader keeps code, too. */
const CACHE = process.env["NODE_COMPILE_CACHE"];

/** A bundle whose program calls a part that is loaded on demand, and the given number of 400 functions. */
const FILES = {
  "dist/program.cjs":
    'const { sep } = require("node:path"); exports.begin = (n) => require("./chunks/part.cjs").call(n) + sep;',
  "dist/chunks/part.cjs": `${Array.from({ length: 400 }, (_, at) => `function f${at}(a) { const all = []; for (let i = 0; i < a; i += 1) all.push({ i, k: "é${at}" + i }); return all.length; }`).join("\n")}
exports.call = (n) => [${Array.from({ length: 400 }, (_, at) => `f${at}`).join()}].slice(0, n).reduce((sum, f) => sum + f(2), 0);`,
  "dist/chunks/left.cjs": "exports.call = () => 1;",
  "dist/chunks/right.cjs": "exports.call = () => 2;",
  "dist/sides.cjs":
    "exports.begin = (n) => require(n === 1 ? './chunks/left.cjs' : './chunks/right.cjs').call();",
  "dist/commands/look.cjs": "",
  "dist/commands/list/all.cjs": "",
};

async function bundle() {
  const place = await scratch(FILES);
  const dist = place.at("dist");
  /** One start of the program, to its end. */
  const start = (
    words: readonly string[],
    calls: number,
    env: Readonly<Record<string, string>> = {},
    program = "program.cjs",
  ): string => {
    const code = `import { enableCompileCache } from "node:module";
      ${CACHE === undefined ? "" : `enableCompileCache(${JSON.stringify(CACHE)});`}
      const { bundleLoader } = await import(${JSON.stringify(LOADER)});
      const load = bundleLoader({ dist: ${JSON.stringify(dist)}, bundle: "b1", words: ${JSON.stringify(words)} });
      console.log(load(${JSON.stringify(path.join(dist, program))}).begin(${calls}));`;
    const { stdout, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", code], {
      encoding: "utf8",
      env: { HOME: place.path, NODE_NO_WARNINGS: "1", ...env },
    });
    assert.equal(stderr, "");
    return stdout;
  };
  const folder = place.at(".cache/harness/compile/b1");
  return {
    start,
    folder,
    place,
    kept: (name = "look") => path.join(folder, name),
    [Symbol.asyncDispose]: () => place[Symbol.asyncDispose](),
  };
}

/** A rewritten file has a different number. */
const sameFile = (file: string): number => statSync(file).ino;

test("the code that a command used is stored when it ends, and later starts add more, at first three times", async () => {
  await using there = await bundle();
  assert.equal(there.start(["look"], 1), "2/\n");
  const few = statSync(there.kept()).size;
  assert.equal(there.start(["look", "word"], 400), "800/\n");
  const many = statSync(there.kept()).size;
  assert.ok(many > 3 * few, `${few} and ${many} bytes`);
  there.start(["look"], 1);
  const after = statSync(there.kept()).size;
  assert.ok(after > 0.9 * many, `what was kept before stays: ${many} and ${after} bytes`);
  const before = sameFile(there.kept());
  assert.equal(there.start(["look"], 400), "800/\n");
  assert.equal(sameFile(there.kept()), before);
  const yesterday = Date.now() / 1000 - 25 * 3600;
  utimesSync(there.kept(), yesterday, yesterday);
  there.start(["look"], 1);
  assert.notEqual(sameFile(there.kept()), before);
  assert.deepEqual(readdirSync(there.folder), ["look"]);
});

test("starts of a command that load different files do not replace each other's code", async () => {
  await using there = await bundle();
  for (const side of [1, 2, 1, 2, 1]) assert.equal(there.start(["look"], side, {}, "sides.cjs"), `${side}\n`);
  const before = sameFile(there.kept());
  for (const side of [2, 1]) there.start(["look"], side, {}, "sides.cjs");
  assert.equal(sameFile(there.kept()), before);
});

test("each command has its own cache, readable only by its owner", async () => {
  await using there = await bundle();
  for (const words of [["look"], ["list", "all"], ["list", "some"], ["no-command"], ["--help"], ["../list"]])
    there.start(words, 1);
  assert.deepEqual(readdirSync(there.folder), ["list", "list-all", "look", "other"]);
  assert.equal(statSync(there.kept()).mode & 0o777, 0o600);
});

const SPOILED: Readonly<Record<string, (file: string) => void>> = {
  "is a pipe that nobody writes to": (file) => {
    rmSync(file);
    execFileSync("mkfifo", [file]);
  },
  "is empty": (file) => truncateSync(file, 0),
  "was truncated": (file) => truncateSync(file, statSync(file).size - 8),
  "holds something else": (file) => writeFileSync(file, "x".repeat(20_000)),
  "has an invalid index": (file) =>
    writeFileSync(file, Buffer.concat([Buffer.from([2, 0, 0, 0, 0, 0, 0, 0]), Buffer.from("{]")])),
  "has code that V8 refuses": (file) => {
    const bytes = readFileSync(file);
    writeFileSync(file, bytes.fill(0, Math.ceil((8 + bytes.readUInt32LE(0)) / 8) * 8));
  },
  "may be written by others": (file) => chmodSync(file, 0o666),
};

/** The code after as many starts as keep it. */
let oldCode: Promise<Buffer> | undefined;

async function codeOfThreeStarts(): Promise<Buffer> {
  await using there = await bundle();
  for (let starts = 0; starts < 3; starts += 1) there.start(["look"], 400);
  return readFileSync(there.kept());
}

for (const [what, spoil] of Object.entries(SPOILED))
  test(`a file that ${what} is discarded and recreated`, async () => {
    await using there = await bundle();
    mkdirSync(there.folder, { recursive: true });
    writeFileSync(there.kept(), await (oldCode ??= codeOfThreeStarts()), { mode: 0o600 });
    const { size } = statSync(there.kept());
    const whole = sameFile(there.kept());
    assert.equal(there.start(["look"], 400), "800/\n");
    assert.equal(sameFile(there.kept()), whole, "it is good code before it is spoiled");
    spoil(there.kept());
    const before = sameFile(there.kept());
    assert.equal(there.start(["look"], 400), "800/\n");
    assert.notEqual(sameFile(there.kept()), before);
    assert.ok(statSync(there.kept()).size > size / 2);
    assert.equal(there.start(["look"], 400), "800/\n");
  });

test("nothing is stored when caching is disabled or there is no place for it", async () => {
  await using there = await bundle();
  there.start(["look"], 1, { NODE_DISABLE_COMPILE_CACHE: "1" });
  there.start(["--version"], 1);
  assert.equal(existsSync(there.folder), false);
  await there.place.write("taken", "");
  assert.equal(there.start(["look"], 1, { XDG_CACHE_HOME: there.place.at("taken") }), "2/\n");
  for (let at = 0; at < 6; at += 1) await there.place.write(`other/${at}/file`, "");
  there.start(["look"], 1, { NODE_COMPILE_CACHE: there.place.at("other") });
  assert.ok(existsSync(there.place.at("other/harness/b1/look")));
  assert.equal(readdirSync(there.place.at("other")).filter((name) => /^\d$/.test(name)).length, 6);
});

test("the code of the four bundles used last is kept", async () => {
  await using there = await bundle();
  const at = (name: string): string => path.join(path.dirname(there.folder), name);
  for (const [ago, name] of ["b9", "b2", "b7", "b0", "b5"].entries()) {
    mkdirSync(at(name), { recursive: true });
    const when = Date.now() / 1000 - 60 * (ago + 1);
    utimesSync(at(name), when, when);
  }
  there.start(["look"], 1);
  assert.deepEqual(readdirSync(path.dirname(there.folder)), ["b1", "b2", "b7", "b9"]);
});
