import assert from "node:assert/strict";
import test from "node:test";
import {
  filesToChange,
  filesWanted,
  notAsNamed,
  renamingOf,
  thingsNotAsNamed,
  type ThingsWanted,
  thingsWanted,
  untouchedOf,
} from "../../../src/agent/ending/named-in-request.ts";
import { fakeBox } from "../../fakes/box.ts";

test("plain requests to delete, rename or create files are recognised", () => {
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

test("ambiguous requests about files demand nothing", () => {
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

test("unfulfilled requests are reported, and a bare file name may be in any folder", async () => {
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

test("the files to change are recognised in plain requests", () => {
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

test("a named file that was not changed is reported, and a name that no file has is ignored", async () => {
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

const NOTHING: ThingsWanted = { version: undefined, there: [], nowhere: [], undepended: [] };

test("plain requests about named things in files are recognised", () => {
  const rows: readonly (readonly [string, Partial<ThingsWanted>])[] = [
    ["Bump the version to 3.0.0 and add a HISTORY.md entry for it.", { version: "3.0.0" }],
    ["bump version from 1.2.3 to v1.3.0-rc.1.", { version: "1.3.0-rc.1" }],
    ["Please set the package version to 2.0", { version: "2.0" }],
    ["update the version number of this project to 1.0.0", { version: "1.0.0" }],
    [
      "Add a method IsNil to UUID that reports whether it is the nil UUID, with a test.",
      { there: ["IsNil"] },
    ],
    ["Add an option maxLength that cuts the slug", { there: ["maxLength"] }],
    ["add a --dry-run flag. Add a flag --dry-run", { there: ["dry-run"] }],
    ["Implement a function called parse that reads it", { there: ["parse"] }],
    ["write a helper `clamp()` in a.ts", { there: ["clamp"] }],
    ["create a class User2 for it", { there: ["User2"] }],
    [
      "Rename the function MustParse to ParseOrPanic everywhere.",
      { there: ["ParseOrPanic"], nowhere: ["MustParse"] },
    ],
    ["Rename the variable `n` to `count` in a.py", { there: ["count"] }],
    ["Remove the dependency vary and inline what is needed.", { undepended: ["vary"] }],
    ["drop the npm package @scope/a.", { undepended: ["@scope/a"] }],
    ["Set the license in package.json to Apache-2.0.", { there: ["Apache-2.0"] }],
    ["change the default port from 3000 to 8080", { there: ["8080"] }],
    ["Increase the timeout to 30 seconds in src/client.ts", { there: ["30"] }],
    ["replace `foo()` with `bar(1)` everywhere", { there: ["bar(1)"] }],
    ["Change the greeting to 'Good day'.", { there: ["Good day"] }],
  ];
  for (const [request, wanted] of rows)
    assert.deepEqual(thingsWanted(request), { ...NOTHING, ...wanted }, request);
});

test("ambiguous requests about things in files demand nothing", () => {
  for (const request of [
    "",
    "bump the version of vary to 1.2.0",
    "bump the version",
    "set the version to latest",
    "What is the version? Was it set to 3.0.0?",
    "Add a function that parses dates",
    "add an option to skip tests",
    "add a method for it",
    "Add a command line parser",
    "add a field if IsNil is there",
    "rename a.ts to b.ts",
    "rename it to MustParse",
    "Remove the package if it is unused",
    "remove the dependency vary where it is not needed",
    "remove the unused function foo()",
    "increase the timeout by 10 seconds",
    "change the name to something shorter",
    "set debug to false in conf.json",
    "update the copyright year to this year",
    "update the docs to mention `--json`",
    "replace tabs with spaces",
    "reduce the length of lines to 80 characters",
    "what does it change 3000 to 8080 for?",
    `Add a method IsNil. ${"x".repeat(700)}`,
  ])
    assert.deepEqual(thingsWanted(request), NOTHING, request);
});

const MANIFESTS = {
  "package.json":
    '{\n  "version": "1.2.0",\n  "dependencies": {\n    "vary": "^1.1.2",\n    "a": "1"\n  }\n}\n',
  "Cargo.toml":
    '[package]\nname = "a"\nversion = "1.2.0"\n[dependencies]\nvary-one = "1"\nserde = { version = "3.0.0" }\n',
  "pyproject.toml":
    '[project]\nname = "a"\nversion = "1.2.0"\ndependencies = [\n  "vary>=1",\n  "vary-two",\n]\n',
  "requirements.txt": "vary[all]==1.0\nb\n",
  "go.mod": "module a\n\nrequire example.org/vary v1.2.3\n",
  VERSION: "v1.2.0\n",
};

const wrongIn = (files: Readonly<Record<string, string>>, request: string) =>
  thingsNotAsNamed(request, () => Promise.resolve(fakeBox({ files })));
const still = (file: string) => `${file} still has version 1.2.0`;

test("a version is reported as wrong if every manifest with a version has another one", async () => {
  assert.deepEqual(await wrongIn(MANIFESTS, "bump the version to 3.0.0"), [
    still("package.json"),
    still("Cargo.toml"),
    still("pyproject.toml"),
    still("VERSION"),
  ]);
  assert.deepEqual(await wrongIn({ ...MANIFESTS, VERSION: "3.0.0\n" }, "bump the version to 3.0.0"), []);
  assert.deepEqual(await wrongIn(MANIFESTS, "set the version to 1.2"), []);
  assert.deepEqual(
    await wrongIn({ "a.txt": "" }, "bump the version to 3.0.0"),
    [],
    "there is none to look at",
  );
  assert.deepEqual(await wrongIn({ "package.json": "{" }, "bump the version to 3.0.0"), []);
});

test("in a repository of several packages the version of a nested package counts", async () => {
  const box = fakeBox({ files: { "package.json": '{\n  "version": "0.0.0"\n}\n' } });
  const wrong = () => thingsNotAsNamed("bump the version to 3.0.0", () => Promise.resolve(box));
  await box.write("packages/a/package.json", Buffer.from('{\n  "version": "2.0.0"\n}\n'));
  assert.deepEqual(await wrong(), ["package.json still has version 0.0.0"]);
  await box.write("packages/b/package.json", Buffer.from('{\n  "version": "3.0.0"\n}\n'));
  assert.deepEqual(await wrong(), []);
});

test("a dependency counts as removed when no manifest names it", async () => {
  assert.deepEqual(await wrongIn(MANIFESTS, "remove the dependency vary"), [
    "package.json still names vary",
    "pyproject.toml still names vary",
    "requirements.txt still names vary",
    "go.mod still names vary",
  ]);
  assert.deepEqual(await wrongIn(MANIFESTS, "remove the dependency vary-one"), [
    "Cargo.toml still names vary-one",
  ]);
  assert.deepEqual(await wrongIn(MANIFESTS, "remove the dependency example.org/vary"), [
    "go.mod still names example.org/vary",
  ]);
  assert.deepEqual(await wrongIn(MANIFESTS, "remove the dependency other"), []);
});

test("an added name must appear in a changed file, as its language writes it", async () => {
  const box = fakeBox({ files: { "old.ts": "const dryRun = 1;\n" } });
  const wrong = (request: string) => thingsNotAsNamed(request, () => Promise.resolve(box));
  const none = ["no file that was changed has dry-run"];
  assert.deepEqual(await wrong("add a flag --dry-run"), none, "it was there before");
  await box.write("new.ts", Buffer.from("const dry = 1;\n"));
  assert.deepEqual(await wrong("add a flag --dry-run"), none);
  await box.write("other.py", Buffer.from("def dry_run(): pass\n"));
  assert.deepEqual(await wrong("add a flag --dry-run"), []);
  assert.deepEqual(await thingsNotAsNamed("mend the parser", unasked), []);
});

test("a removed name is searched for with git everywhere except in prose", async () => {
  let files = "a.go\0b.go\0";
  const box = fakeBox({
    files: { "a.go": "" },
    commands: {
      git: async ({ out }) => {
        await out(files);
        return files === "" ? 1 : 0;
      },
    },
  });
  await box.write("a.go", Buffer.from("func ParseOrPanic() {}\n"));
  const wrong = () =>
    thingsNotAsNamed("rename the function MustParse to ParseOrPanic everywhere", () => Promise.resolve(box));
  assert.deepEqual(await wrong(), ["MustParse is still in a.go, b.go"]);
  files = "";
  assert.deepEqual(await wrong(), []);
});

test("a request to rename everywhere gets a shell command only if both names are plain for the shell", () => {
  assert.equal(
    renamingOf("Rename the function MustParse to ParseOrPanic everywhere."),
    "git grep -lwF MustParse | xargs sed -i 's/\\bMustParse\\b/ParseOrPanic/g'",
  );
  assert.equal(renamingOf("Rename the function MustParse to ParseOrPanic."), undefined);
  assert.equal(renamingOf("Rename the function `a.b` to `a.c` everywhere."), undefined);
});
