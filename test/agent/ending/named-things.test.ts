import assert from "node:assert/strict";
import test from "node:test";
import {
  renamingOf,
  thingsNotAsNamed,
  type ThingsWanted,
  thingsWanted,
} from "../../../src/agent/ending/named-in-request.ts";
import { fakeBox } from "../../fakes/box.ts";

const NOTHING: ThingsWanted = { version: undefined, there: [], nowhere: [], undepended: [] };

test("what a request says by name of things in files, where it says just that", () => {
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

test("what may mean anything else is no demand", () => {
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
const unasked = () => Promise.reject(new Error("no box was to be asked for"));

const still = (file: string) => `${file} still has version 1.2.0`;

test("a version is wrong where every manifest that has one has another", async () => {
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

test("in a repository of several packages the version may be that of one below", async () => {
  const box = fakeBox({ files: { "package.json": '{\n  "version": "0.0.0"\n}\n' } });
  const wrong = () => thingsNotAsNamed("bump the version to 3.0.0", () => Promise.resolve(box));
  await box.write("packages/a/package.json", Buffer.from('{\n  "version": "2.0.0"\n}\n'));
  assert.deepEqual(await wrong(), ["package.json still has version 0.0.0"]);
  await box.write("packages/b/package.json", Buffer.from('{\n  "version": "3.0.0"\n}\n'));
  assert.deepEqual(await wrong(), []);
});

test("a dependency is gone where no manifest names it", async () => {
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

test("a name has to be in what was changed, as its language writes it", async () => {
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

test("a name that is to be nowhere is looked for by git in all but prose", async () => {
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

test("what renames everywhere is told where a shell reads both names as they are", () => {
  assert.equal(
    renamingOf("Rename the function MustParse to ParseOrPanic everywhere."),
    "git grep -lwF MustParse | xargs sed -i 's/\\bMustParse\\b/ParseOrPanic/g'",
  );
  assert.equal(renamingOf("Rename the function MustParse to ParseOrPanic."), undefined);
  assert.equal(renamingOf("Rename the function `a.b` to `a.c` everywhere."), undefined);
});
