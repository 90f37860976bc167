import assert from "node:assert/strict";
import test from "node:test";
import { skip as noEngine } from "../fixtures/engine.ts";
import { household } from "./box-command.ts";
import { calling, startModel } from "./run-command.ts";
import { noTerminal, onTerminal } from "./terminal.ts";

/** How often a person is asked in a task as it is every day: somebody looks, mends, tests, and looks at what became of it. */

const skip = noTerminal || noEngine;
const MOST = 2;

type Call = readonly [tool: string, args: Readonly<Record<string, unknown>>];

const command = (text: string): Call => ["bash", { command: text }];
const read = (file: string): Call => ["read_file", { path: file }];
const edit = (file: string, old: string, young: string): Call => [
  "edit_file",
  { path: file, old, new: young },
];

/** A project with a bug, and how somebody works on it. */
interface Task {
  readonly files: Readonly<Record<string, string>>;
  readonly calls: readonly Call[];
  /** What stands in which file then. */
  readonly mended: readonly [file: string, text: RegExp];
  /** The image has what the tests need: they are green in the end. */
  readonly green: RegExp | undefined;
}

const TASKS: Readonly<Record<string, Task>> = {
  npm: {
    files: {
      "sum.js": "exports.sum = (a, b) => a - b;\n",
      "sum.test.js":
        "require('node:test')('sum', () => require('node:assert').equal(require('./sum').sum(1, 2), 3));\n",
      "package.json": '{"scripts":{"test":"node --test","lint":"node --check sum.js","build":"node sum.js"}}',
    },
    calls: [
      ["list_dir", { path: "." }],
      command("git status --short; ls -la && cat package.json"),
      ["grep", { pattern: "sum" }],
      read("sum.js"),
      command("npm test 2>&1 | tail -20"),
      edit("sum.js", "a - b", "a + b"),
      command("npm run lint && npm test"),
      command("npm run build"),
      command("npm run build"),
      ["write_file", { path: "notes.md", content: "It adds now.\n" }],
      command("git diff | head -20"),
      command("npm test"),
    ],
    mended: ["sum.js", /a \+ b/],
    green: /pass 1/,
  },
  python: {
    files: {
      "calc/__init__.py": "",
      "calc/core.py": "def add(a, b):\n    return a - b\n",
      "tests/__init__.py": "",
      "tests/test_core.py":
        "import unittest\nfrom calc.core import add\n\n\nclass Add(unittest.TestCase):\n    def test_add(self):\n        self.assertEqual(add(1, 2), 3)\n",
      "pyproject.toml": '[project]\nname = "calc"\nversion = "1"\n',
    },
    calls: [
      command("find . -name '*.py' | sort; cat pyproject.toml"),
      read("calc/core.py"),
      command("sed -n 1,40p tests/test_core.py"),
      command("pytest -q 2>&1 | tail -5"),
      command("python3 -m unittest discover 2>&1 | tail -20"),
      edit("calc/core.py", "a - b", "a + b"),
      command("python3 -c 'from calc.core import add; print(add(1, 2))'"),
      command("ruff check . ; mypy calc"),
      command("python3 -m unittest -v 2>&1 | tail -20"),
    ],
    mended: ["calc/core.py", /a \+ b/],
    green: /\nOK/,
  },
  make: {
    files: {
      Makefile:
        "CFLAGS=-Wall\nall: sum\nsum: sum.c\n\t$(CC) $(CFLAGS) -o sum sum.c\ntest: sum\n\t./sum && echo all green\nclean:\n\trm -f sum\n.PHONY: all test clean\n",
      "sum.c":
        "static int add(int a, int b) { return a - b; }\nint main(void) { return add(1, 2) == 3 ? 0 : 1; }\n",
    },
    calls: [
      command("ls; cat Makefile"),
      read("sum.c"),
      command("make test"),
      edit("sum.c", "a - b", "a + b"),
      command("make"),
      command("make clean"),
      command("make test 2>&1 | tail -3"),
    ],
    mended: ["sum.c", /a \+ b/],
    green: /all green/,
  },
  cargo: {
    files: {
      "Cargo.toml": '[package]\nname = "sum"\nversion = "0.1.0"\nedition = "2021"\n',
      "src/lib.rs":
        "pub fn add(a: i32, b: i32) -> i32 { a - b }\n#[test]\nfn adds() { assert_eq!(add(1, 2), 3); }\n",
    },
    calls: [
      command("cat Cargo.toml && grep -rn 'fn ' src"),
      read("src/lib.rs"),
      command("cargo test --quiet 2>&1 | tail -30"),
      edit("src/lib.rs", "a - b", "a + b"),
      command("cargo check"),
      command("cargo build"),
      command("cargo clippy -- -D warnings"),
      command("cargo test"),
      command("git diff --stat"),
    ],
    mended: ["src/lib.rs", /a \+ b/],
    green: undefined,
  },
  go: {
    files: {
      "go.mod": "module sum\n\ngo 1.19\n",
      "sum.go": "package sum\n\nfunc Add(a, b int) int { return a - b }\n",
      "sum_test.go":
        'package sum\n\nimport "testing"\n\nfunc TestAdd(t *testing.T) {\n\tif Add(1, 2) != 3 {\n\t\tt.Fatal("no")\n\t}\n}\n',
    },
    calls: [
      ["glob", { pattern: "**/*.go" }],
      command("cat go.mod; head -20 sum.go"),
      read("sum.go"),
      command("go test ./..."),
      edit("sum.go", "a - b", "a + b"),
      command("gofmt -l ."),
      command("go vet ./... && go build ./..."),
      command("go test -run TestAdd -v ./... 2>&1 | tail -20"),
    ],
    mended: ["sum.go", /a \+ b/],
    green: undefined,
  },
};

for (const [name, task] of Object.entries(TASKS))
  test(`a task of reading, fixing and testing asks at most twice: ${name}`, { skip }, async () => {
    await using place = await household(task.files);
    await using model = await startModel(calling(task.calls));
    await using terminal = onTerminal(place, model.flags);
    await terminal.until(/harness> $/);
    terminal.type("the sum is wrong, please mend it\r");
    const asked: string[] = [];
    for (;;) {
      const shown = await terminal.until(/run it\? \[y\/N\] $|\nharness> $/);
      if (!shown.endsWith("run it? [y/N] ")) break;
      asked.push(shown);
      // Once, and no more: what is remembered for the session would hide how often it is asked.
      terminal.type("y\r");
    }
    assert.match(terminal.screen(), /All of it is done\./);
    const results = model
      .asked()
      .at(-1)
      ?.messages.filter(({ role }) => role === "tool");
    assert.equal(results?.length, task.calls.length);
    const [file, text] = task.mended;
    assert.match(await place.read(`work/${file}`), text);
    if (task.green !== undefined)
      assert.match(results?.map(({ content }) => content).join("\n") ?? "", task.green);
    assert.ok(asked.length <= MOST, `${asked.length} questions:\n${asked.join("\n")}`);
  });

test("commands outside such a task are asked about every time", { skip }, async () => {
  const calls = ["rm -rf src", "curl https://example.org", "git commit -am done"].map(command);
  await using place = await household({ "src/a.js": "1\n" });
  await using model = await startModel(calling(calls));
  await using terminal = onTerminal(place, model.flags);
  await terminal.until(/harness> $/);
  terminal.type("please do\r");
  for (const _ of calls) {
    await terminal.until(/run it\? \[y\/N\] $/);
    terminal.type("\r");
  }
  await terminal.until(/All of it is done\./);
  assert.equal(await place.read("work/src/a.js"), "1\n");
});
