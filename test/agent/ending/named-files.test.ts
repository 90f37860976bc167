import assert from "node:assert/strict";
import test from "node:test";
import {
  filesToChange,
  filesWanted,
  notAsNamed,
  untouchedOf,
} from "../../../src/agent/ending/named-in-request.ts";
import { fakeBox } from "../../fakes/box.ts";

test("what a request says of files by their names, where it says just that", () => {
  const rows: readonly (readonly [string, readonly string[], readonly (readonly string[])[]])[] = [
    ["delete the file LICENSE.txt", ["LICENSE.txt"], []],
    ["Please delete the file `LICENSE`.", ["LICENSE"], []],
    ["Please delete `LICENSE.txt`.", ["LICENSE.txt"], []],
    ["delete the folder build", ["build"], []],
    ["rename the folder lib to core", ["lib"], [["core", "core/lib"]]],
    ["Can you remove src/old.ts and src/older.ts?", ["src/old.ts", "src/older.ts"], []],
    ["remove the empty folder build/", ["build/"], []],
    ["rm a.txt, b.txt and c.txt", ["a.txt", "b.txt", "c.txt"], []],
    ["Delete .env.example. Then say why.", [".env.example"], []],
    [
      "rename docs/a.rst to docs/b.rst",
      ["docs/a.rst"],
      [["docs/b.rst", "docs/b.rst/a.rst", "docs/docs/b.rst"]],
    ],
    ["Rename the file docs/a.rst to b.rst", ["docs/a.rst"], [["b.rst", "b.rst/a.rst", "docs/b.rst"]]],
    ["move a.txt into the folder lib/", ["a.txt"], [["lib/a.txt"]]],
    ["create a file hello.txt with the text hi", [], [["hello.txt"]]],
    ["Create hello.txt", [], [["hello.txt"]]],
    ["write a small Python script called tools/x.py that prints 1", [], [["tools/x.py"]]],
    ["add a new file named 'NOTES', please", [], [["NOTES"]]],
    // Several sentences, each of its own.
    ["Create a file a.txt. Delete b.txt.", ["b.txt"], [["a.txt"]]],
    ["Delete a.txt\nCreate a file a.txt", [], [["a.txt"]]],
  ];
  for (const [request, gone, there] of rows) assert.deepEqual(filesWanted(request), { gone, there }, request);
});

test("what may mean anything else is no demand", () => {
  for (const request of [
    "",
    "remove the unused import from src/a.ts",
    "delete the lines that mention foo.bar",
    "remove foo.bar from the list",
    "delete *.log",
    "delete ../x.txt and /etc/y.txt",
    "remove ~/x.txt",
    "rename foo to bar in a.ts",
    "rename `total` in a.ts to `sum`",
    "move the function in a.ts to b.ts",
    "create a function in a.ts",
    "create a class for a.ts",
    "add a test to a.test.ts",
    "why was LICENSE.txt deleted?",
    "do not delete LICENSE.txt",
    "delete LICENSE.txt if it is empty",
    "rename `total` to `sum`",
    "rename user.name to user.full_name",
    "remove `login`",
    "delete the file",
    "remove os.path and a.b",
    "remove the script build",
    "create a module called auth",
    "write docs",
    "remove node",
    `delete a.txt ${"x".repeat(700)}`,
  ])
    assert.deepEqual(filesWanted(request), { gone: [], there: [] }, request);
});

const unasked = () => Promise.reject(new Error("no box was to be asked for"));

test("what is not so at the end is named; a bare name may lie in any folder", async () => {
  const box = fakeBox({ files: { "LICENSE.txt": "", "docs/b.rst": "", "src/new.py": "" } });
  const wrong = (request: string) => notAsNamed(request, () => Promise.resolve(box));
  assert.equal(await wrong("delete LICENSE.txt"), "LICENSE.txt is still there");
  assert.equal(await wrong("delete NOTES.txt"), undefined);
  assert.equal(await wrong("rename docs/a.rst to b.rst"), undefined);
  assert.equal(
    await wrong("rename docs/b.rst to docs/c.rst"),
    "docs/b.rst is still there, docs/c.rst is not there",
  );
  assert.equal(await wrong("move docs/a.rst into src/"), "src/a.rst is not there");
  assert.equal(await wrong("create a file hello.txt"), "hello.txt is not there");
  await box.write("lib/hello.txt", Buffer.from("hi"));
  assert.equal(await wrong("create a file hello.txt"), undefined);
  assert.equal(await wrong("create a file called hello"), undefined);
  assert.equal(await wrong("create the script hello.txt in the folder lib"), undefined);
  assert.equal(await wrong("create a file other/hello.txt"), "other/hello.txt is not there");
  assert.equal(await notAsNamed("mend the parser", unasked), undefined);
});

test("in which files a request wants something done, where it says just that", () => {
  const rows: readonly (readonly [string, readonly string[]])[] = [
    ["fix the typo in the README", ["readme"]],
    ["Fix the off-by-one error in src/range.ts.", ["src/range.ts"]],
    ["Please add an entry for 3.0.0 to HISTORY.md", ["HISTORY.md"]],
    ["add a section on tests to the readme file", ["readme"]],
    ["Update the license", ["license"]],
    ["Update the copyright year in the licence to 2026.", []],
    ["update the copyright year in LICENSE.txt", ["LICENSE.txt"]],
    ["remove the unused import from src/a.ts", ["src/a.ts"]],
    ["refactor `lib/parse.js`", ["lib/parse.js"]],
    ["add a flag for verbose output in src/cli.ts", ["src/cli.ts"]],
    ["change the default port from 3000 to 8080 in src/a.ts", ["src/a.ts"]],
    ["Can you document the flag in docs/cli.md?", ["docs/cli.md"]],
    ["add a test to a.test.ts", ["a.test.ts"]],
    ["Add a --json flag. Mention it at the end of the changelog.", ["changelog"]],
  ];
  for (const [request, files] of rows) assert.deepEqual(filesToChange(request), files, request);
  for (const request of [
    "",
    "fix the failing test in test/sum.test.js",
    "add a link to CONTRIBUTING.md",
    "write tests for the functions in src/encoding.py",
    "Add a test for the parser in parser.go.",
    "add examples of all options in src/cli.ts",
    "replace the loop with the helper in src/utils.ts",
    "add a call to the function in src/utils.ts",
    "update the callers of the class in src/base.py",
    "add support for reading from config.json",
    "add a script like the one in build.sh",
    "update the docs if there is a mistake in the README",
    "what is said in the README?",
    "move the function from a.ts to b.ts",
    "rename `total` in a.ts to `sum`",
    "add a path to a.ts",
    "fix the bug in ../x.ts",
    `fix the typo in the README ${"x".repeat(700)}`,
  ])
    assert.deepEqual(filesToChange(request), [], request);
});

test("a file that something was to be done in, and nothing was, is named; a name that no file has is no file", async () => {
  let found = "";
  const box = fakeBox({
    files: { "README.md": "teh", "docs/readme.txt": "" },
    commands: {
      find: async ({ out }) => {
        await out(found);
        return 0;
      },
    },
  });
  const left = (request: string) => untouchedOf(request, () => Promise.resolve(box));
  assert.deepEqual(await left("fix the typo in node.js"), []);
  found = "./docs/readme.txt\0./README.md\0";
  await box.write("other.md", Buffer.from("the"));
  assert.deepEqual(await left("fix the typo in the README"), ["README.md was not changed"]);
  assert.deepEqual(await left("fix the typo in docs/readme.txt"), ["docs/readme.txt was not changed"]);
  assert.deepEqual(await left("fix the typo in lib/readme.txt"), []);
  await box.write("docs/readme.txt", Buffer.from("the"));
  assert.deepEqual(await left("fix the typo in the README"), []);
  assert.deepEqual(box.asked[0]?.words?.slice(0, 2), ["find", "."]);
  assert.deepEqual(await untouchedOf("mend the parser", unasked), []);
});
