import assert from "node:assert/strict";
import test from "node:test";
import { parseGitConfig } from "../../../src/boxes/workspace/git-directory.ts";
import { scratch } from "../../fixtures/scratch.ts";
import { git, noGit } from "./repository.ts";

const TEXTS = [
  "[core]\n\teditor = vi\n",
  "[core] editor = a b  # note\n",
  "[core]editor=x;y\n",
  '[Filter "Big One"]\n  Clean = "a;b" c # d\n',
  '[a "x\\"y\\\\z"]\n  k = v\n',
  "[a.SUB]\nk = 1\n",
  "k = v\n[a]\nk = w\n",
  "[a]\n  flag\n  other\n",
  "[a]\n  k = one \\\n   two\n",
  '[a]\n  k = "one \\\n two"\n',
  '[a]\n  k = "tab\\tquote\\" back\\\\"  \n',
  "[a]\r\n  k = v\r\n",
  "# note\n; note\n[a] # x\n k = v",
  "\ufeff[a]\nk = v\n",
  '[a]\n k =   "  spaced  "  end  \n',
  '[a]\n k =\n l = ""\n',
  "[a]\n k = x # y \\\n l = z\n",
];

for (const text of TEXTS)
  test(`read as git reads it: ${JSON.stringify(text)}`, { skip: noGit }, async () => {
    await using home = await scratch({ c: text });
    const lines = git(home.path, "config", "-z", "-f", home.at("c"), "--list").split("\0").slice(0, -1);
    const expected = lines.map((line) => {
      const at = line.indexOf("\n");
      return at < 0 ? { key: line, value: "true" } : { key: line.slice(0, at), value: line.slice(at + 1) };
    });
    assert.deepEqual(parseGitConfig(text), expected);
  });

for (const text of [
  "[a\nk = v\n",
  '[a "b]\nk = v\n',
  "[a]\n1k = v\n",
  '[a]\nk = "open\n',
  "[a]\nk = \\q\n",
  "[a]\n=v\n",
  "[a]\nk\\",
])
  test(`refused as git refuses it: ${JSON.stringify(text)}`, { skip: noGit }, async () => {
    await using home = await scratch({ c: text });
    assert.throws(() => git(home.path, "config", "-f", home.at("c"), "--list"));
    assert.equal(parseGitConfig(text), undefined);
  });

test("a value of many pieces is read in one pass", () => {
  const unit = '"a" b\\t c\\" ';
  const value = 'a b\t c" '.repeat(80_000).trimEnd();
  assert.deepEqual(parseGitConfig(`[a]\n k = ${unit.repeat(80_000)}  # no\n`), [{ key: "a.k", value }]);
});
