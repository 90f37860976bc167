import assert from "node:assert/strict";
import { symlink } from "node:fs/promises";
import test from "node:test";
import {
  fileCandidates,
  filesNamedIn,
  MAX_NAMED,
  MAX_OFFERED,
  rankOf,
} from "../../../src/app/project/file-mentions.ts";
import { placesFrom } from "../../../src/config/places.ts";
import { type Scratch, scratch } from "../../fixtures/scratch.ts";

const { signal } = new AbortController();

const hostOf = (place: Scratch) => ({ places: placesFrom({ HOME: place.at("home") }) });

async function workspace(files: Readonly<Record<string, string>>) {
  const place = await scratch(
    Object.fromEntries(Object.entries(files).map(([file, text]) => [`home/w/${file}`, text])),
  );
  const folder = place.at("home/w");
  return {
    at: (file: string) => place.at("home/w", file),
    offered: (typed: string, until = signal) => fileCandidates(hostOf(place), folder, typed, until),
    named: (text: string) => filesNamedIn(hostOf(place), folder, text),
    [Symbol.asyncDispose]: () => place[Symbol.asyncDispose](),
  };
}

const FILES = {
  ".gitignore": "*.log\n",
  ".harnessignore": "private/\n*.key.ts\n",
  "src/parser.ts": "",
  "src/deep/parse-line.ts": "",
  "src/deep/.gitignore": "made.ts\n",
  "src/deep/made.ts": "",
  "src/made.ts": "",
  "src/a.key.ts": "",
  "src/out.log": "",
  "private/plan.md": "",
  "docs/plan.md": "",
  "with blank.md": "",
  'with"quote.md': "",
  "with\u001Bescape.md": "",
  ".env": "",
  "node_modules/x/plan.md": "",
  ".git/plan.md": "",
};

test("files are offered by best match; ignored, hidden and secret files are not", async () => {
  await using place = await workspace(FILES);
  const rows: readonly (readonly [string, readonly string[]])[] = [
    ["", ["src/", "docs/", ".gitignore", "with blank.md", ".harnessignore"]],
    ["src/p", ["src/parser.ts"]],
    ["PARS", ["src/parser.ts", "src/deep/parse-line.ts"]],
    ["opln", ["docs/plan.md"]],
    ["plan", ["docs/plan.md"]],
    ["made", ["src/made.ts"]],
    ["a.key", []],
    ["out.log", []],
    [".env", []],
    ["with", ["with blank.md"]],
  ];
  for (const [typed, wanted] of rows)
    assert.deepEqual((await place.offered(typed)).toSorted(), wanted.toSorted(), typed);
});

test("links are neither followed nor offered", async () => {
  await using place = await workspace({ "real/one.md": "" });
  await using other = await scratch({ "secret.md": "" });
  await symlink(other.path, place.at("out"));
  await symlink("real/one.md", place.at("same.md"));
  assert.deepEqual(await place.offered("md"), ["real/one.md"]);
  assert.deepEqual(await place.offered("secret"), []);
  assert.deepEqual(await place.named("@same.md @out/secret.md @real/one.md"), ["real/one.md"]);
});

test("the number of suggestions is bounded, and the search stops when it is cancelled", async () => {
  const many = Array.from({ length: MAX_OFFERED + 5 }, (_, at) => [`f${at}.md`, ""] as const);
  await using place = await workspace(Object.fromEntries(many));
  assert.equal((await place.offered("f")).length, MAX_OFFERED);
  await assert.rejects(place.offered("f", AbortSignal.abort()), { name: "AbortError" });
  assert.equal((await place.named(many.map(([file]) => `@${file}`).join(" "))).length, MAX_NAMED);
});

test("a mention names only existing files below the workspace that are not hidden", async () => {
  await using place = await workspace(FILES);
  const rows: readonly (readonly [string, readonly string[]])[] = [
    ["see @src/parser.ts, and @docs/.", ["src/parser.ts", "docs"]],
    ['see @"with blank.md" (no@src/parser.ts)', ["with blank.md"]],
    ["@src/../docs/plan.md @src/parser.ts @src/parser.ts", ["docs/plan.md", "src/parser.ts"]],
    ["@private/plan.md @src/a.key.ts @nothing.md", []],
    ["@../w/docs/plan.md @/etc/hostname @.. @.", []],
  ];
  for (const [text, wanted] of rows) assert.deepEqual(await place.named(text), wanted, text);
});

test("a match needs only letters in the right order", () => {
  assert.deepEqual(
    ["src/parser.ts", "parser.ts", "a/xparser.ts", "p/a/r/s.ts", "rap"].map((file) => rankOf(file, "pars")),
    [1, 0, 2, 4, undefined],
  );
});
