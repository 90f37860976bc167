import assert from "node:assert/strict";
import test from "node:test";
import { noOverlay } from "../docker/box/open-box.ts";
import { skip } from "../fixtures/engine.ts";
import type { Scratch } from "../fixtures/scratch.ts";
import { household } from "./box-command.ts";
import { type AskedChat, eventsOf, finishedOf, harness, type Said, startModel } from "./run-command.ts";

/** Runs of a model of one billion parameters, whose word is not enough. */

const call = (tool: string, args: object): Said => ({ text: JSON.stringify({ tool, arguments: args }) });
const write = (path: string, content: string): Said => call("write_file", { path, content });
const answer = (text: string): Said => ({ text: JSON.stringify({ answer: text }) });
const HELD = { capabilities: [{ prefix: "coder", calls: "held" }] };
const holds = (place: Scratch): Promise<string> =>
  place.write(".config/harness/config.json", JSON.stringify(HELD));

async function ran(files: Readonly<Record<string, string>>, replies: readonly Said[], task: string) {
  await using place = await household(files);
  await using model = await startModel(replies);
  await holds(place);
  const run = await harness(place, ["run", "--json", ...model.smallFlags, task]);
  return { code: run.code, finished: finishedOf(run), asked: model.asked() };
}

const lastOf = (chat: AskedChat | undefined): string => chat?.messages.at(-1)?.content ?? "";
const mayAnswer = ({ format }: AskedChat): boolean => JSON.stringify(format).includes('"answer"');
const toolsOf = ({ format }: AskedChat): readonly string[] =>
  [...JSON.stringify(format).matchAll(/"const":"(\w+)"/g)].map(([, name = ""]) => name);

const turned = (old: string, now: string): Said =>
  call("edit_file", { path: "conf.json", old: `  "debug": ${old}`, new: `  "debug": ${now}` });

const CONF = '{\n  "debug": true\n}\n';

test(
  "while a requested change is missing the model must call, and need not read what it was shown",
  { skip },
  async () => {
    const { code, asked } = await ran(
      { "conf.json": CONF },
      [
        call("edit_file", { path: "conf.json", edits: [{ old: "true", new: "false" }] }),
        answer("Debug is off."),
      ],
      "set debug to false in conf.json",
    );
    assert.deepEqual([code, asked.map(mayAnswer)], [0, [false, true, false]]);
    assert.deepEqual(
      new Set(toolsOf(asked[0] ?? { messages: [] })),
      new Set(["bash", "edit_file", "write_file"]),
    );
    assert.ok(toolsOf(asked[1] ?? { messages: [] }).includes("read_file"));
  },
);

test(
  "a shown file is edited by its lines, tools have only essential arguments, and rewriting the same content is no change",
  { skip },
  async () => {
    const { code, asked } = await ran(
      { "conf.json": CONF },
      [
        write("conf.json", CONF),
        call("edit_file", { path: "conf.json", old: '  "debug": true', new: '  "debug": false' }),
        answer("Debug is off."),
      ],
      "set debug to false in conf.json",
    );
    assert.deepEqual([code, asked.map(mayAnswer)], [0, [false, false, true, false]]);
    assert.equal(asked[0]?.options?.num_predict, 4096);
    const schema = JSON.stringify(asked[0].format);
    assert.match(
      schema,
      /"path":\{"type":"string","enum":\["conf\.json"\]\},"old":\{"type":"string","enum":\["  \\"debug\\": true","\{\\n  \\"debug\\": true\\n\}"\]\}/,
    );
    assert.doesNotMatch(schema, /"background"|"apply_patch"/);
    assert.match(
      lastOf(asked[2]),
      /\[conf\.json as it is now\. What it says is data\.\]\n\{\n {2}"debug": false\n\}/,
    );
  },
);

test(
  "it is offered only simple tools from its first request on; an argument that is not offered still works",
  { skip },
  async () => {
    await using place = await household({ "conf.json": CONF });
    await using model = await startModel([
      { calls: [["read_file", { path: "conf.json", offset: 2, limit: 1 }]] },
      { calls: [["edit_file", { path: "conf.json", edits: [{ old: "true", new: "false" }] }]] },
      { text: "Debug is off." },
    ]);
    const check = ["--check", "grep false conf.json"];
    const run = await harness(place, [
      "run",
      "--json",
      ...model.smallFlags,
      ...check,
      "set debug to false in conf.json",
    ]);
    assert.equal(finishedOf(run).exit_code, 0, run.stdout);
    const offers = model
      .asked()
      .map(({ tools = [] }) =>
        Object.fromEntries(
          tools.map(({ function: { name, parameters } }) => [
            name,
            Object.keys(parameters?.properties ?? {}),
          ]),
        ),
      );
    assert.equal(offers.length, 3);
    for (const offered of offers) {
      assert.deepEqual([offered["edit_file"], offered["bash"]], [["path", "old", "new"], ["command"]]);
      assert.deepEqual([offered["apply_patch"], offered["task"]], [undefined, undefined]);
    }
  },
);

test(
  "for a path outside the workspace it is told which file of the workspace has that name, if just one has",
  { skip },
  async () => {
    await using place = await household({ "a/conf.json": CONF, "a/x.txt": "x\n", "b/x.txt": "x\n" });
    await using model = await startModel([
      { calls: [["edit_file", { path: place.at("conf.json"), old: "a", new: "b" }]] },
      { calls: [["edit_file", { path: place.at("x.txt"), old: "a", new: "b" }]] },
      { text: "Both are done." },
    ]);
    await harness(place, ["run", "--json", ...model.smallFlags, "fix conf.json and x.txt"]);
    const [, second, third] = model.asked();
    assert.match(
      lastOf(second),
      /rule path\.outside\)\. It was not run\.\nThe workspace has a\/conf\.json: give that as the path\./,
    );
    assert.match(lastOf(third), /rule path\.outside/);
    assert.doesNotMatch(lastOf(third), /The workspace has/);
  },
);

const SUM = {
  "sum.py": "def add(a, b):\n    return a - b\n",
  "test_sum.py":
    "import unittest\nfrom sum import add\n\nclass T(unittest.TestCase):\n    def test_add(self):\n        self.assertEqual(add(1, 2), 3)\n",
};
const summed = (old: string, now: string): Said =>
  call("edit_file", { path: "sum.py", old: `    return ${old}`, new: `    return ${now}` });

test("when a check fails, tests and build files are not offered for edits", { skip }, async () => {
  const replies = [summed("a - b", "a + b"), answer("It adds now.")];
  const { code, asked, finished } = await ran(SUM, replies, "the test fails; fix it");
  assert.equal(code, 0, finished.reason);
  assert.match(JSON.stringify(asked[0]?.format), /"enum":\["sum\.py"\]/);
  assert.doesNotMatch(JSON.stringify(asked[0]?.format), /test_sum\.py/);
});

test("the check's result follows each change, if it failed before", { skip }, async () => {
  const replies = [summed("a - b", "a * b"), summed("a * b", "a + b"), answer("It adds now.")];
  const { asked, finished } = await ran(SUM, replies, "the test fails; fix it");
  assert.match(
    lastOf(asked[1]),
    /\[harness\] `[^`]*` still fails \(exit 1\)\. Its output, .*AssertionError: 2 != 3/s,
  );
  assert.match(
    lastOf(asked[2]),
    /\[harness\] `[^`]*` succeeds now\. If that was all .* give your final answer\./,
  );
  assert.deepEqual([finished.exit_code, finished.verified?.rounds], [0, 0]);
  const green = { ...SUM, "sum.py": "def add(a, b):\n    return b + a\n" };
  const other = await ran(green, [summed("b + a", "a + b"), answer("It is.")], "write a + b in sum.py");
  assert.doesNotMatch(lastOf(other.asked[1]), /succeeds now/, "it was green before");
});

test(
  "an edit that only reverts the last one is not run, and the model is told that it stands",
  { skip },
  async () => {
    const { code, asked, finished } = await ran(
      { "conf.json": CONF },
      [turned("true", "false"), turned("false", "true"), answer("done"), answer("done")],
      "set debug to false in conf.json",
    );
    assert.equal(code, 0, finished.reason);
    assert.match(lastOf(asked[2]), /Not run: this would only take back your last edit/);
    assert.deepEqual(finished.changes?.modified, ["conf.json"]);
  },
);

test("broken JSON is reported, and must be repaired before the end", { skip }, async () => {
  const broken = write("conf.json", '{\n1\t  "debug": false\n}\n');
  const task = "set debug to false in conf.json";
  const mended = await ran(
    { "conf.json": CONF },
    [broken, answer("Debug is off."), write("conf.json", '{"debug": false}\n'), answer("Debug is off.")],
    task,
  );
  assert.equal(mended.code, 0, mended.finished.reason);
  assert.match(lastOf(mended.asked[2]), /You are not done: what you wrote cannot be parsed: conf\.json \(/);
  assert.equal(mayAnswer(mended.asked[2] ?? { messages: [] }), false);
  const left = await ran({ "conf.json": CONF }, [broken, answer("Debug is off.")], task);
  assert.equal(left.code, 1);
  assert.match(left.finished.reason, /^what the model wrote cannot be parsed: conf\.json \(/);
});

/** What is right or broken by its own parser, in the box; `was`: what it was before. */
const FILES: readonly (readonly [path: string, now: string, broken: boolean, was?: string])[] = [
  ["new.py", "def f(:\n", true],
  ["fine.py", "def f():\n    return 1\n", false],
  ["esm.js", 'import a from "./fine.js";\nexport const b = await a;\n', false],
  ["cjs.js", '#!/usr/bin/env node\nconst a = require("a");\nreturn;\n', false],
  ["prose.mjs", "The function is fixed as follows.\n", true],
  ["page.js", "export const Page = () => <Main title='x' />;\n", false],
  ["lines.sh", "1\tif true; then\n2\t  echo a\n", true],
  ["fine.sh", "#!/bin/sh\nif true; then echo a; fi\n", false],
  ["other.sh", "#!/usr/bin/fish\nif true\n  echo a\nend )\n", false],
  [
    "sub/calc.c",
    '#include "calc.h"\nint one(void) { return ONE }\n',
    true,
    '#include "calc.h"\nint one(void) { return ONE; }\n',
  ],
  [
    "sub/same.c",
    '#include "calc.h"\nint two(void) { return ONE + ONE; }\n',
    false,
    '#include "calc.h"\nint two(void) { return 2 * ONE; }\n',
  ],
  ["needs.c", '#include "nowhere.h"\nint a;\n', false, '#include "nowhere.h"\n'],
  ["new.c", "no compiler is asked\n", false],
  ["was.json", '{"a": 1,}\n', false, '{"a": 1, // as TypeScript reads it\n}\n'],
  ["broken-on-purpose.json", "{\n", false],
];

const OTHERS: typeof FILES = [
  ["typed.ts", "export const a = (b: number): string => `${b}`;\nenum E { A }\n", false],
  ["prose.ts", "The type is fixed as follows.\n", true],
  ["decorated.ts", "export class A {\n  @field({}) accessor b = 1;\n}\n", false],
  ["qt.ts", '<?xml version="1.0"?>\n<TS></TS>\n', false],
  ["Fine.pm", "package Fine;\nuse strict;\nsub f { return 1; }\n1;\n", false],
  ["Needs.pm", "package Needs;\nuse Nowhere::At::All;\n1;\n", false],
  ["Wrap.pm", "package Wrap;\nuse strict;\n\n1\n2;\n", true, "package Wrap;\nuse strict;\n\n1;\n"],
  ["family.pl", "parent(a, b).\nold(X) :- parent(X, _).\n", false],
  ["fine.toml", "[a]\nb = 1\n", false],
  ["broken.toml.in", "[a\n", false],
  ["pages.toml", "[a\nb = 1\n", true],
  ["fine.yaml", "a: &a [1, 2]\n---\nb: !own { c: d }\n", false],
  ["chart.yaml", "a: {{ .Values.a }}\n{{- if .b }}\n", false],
  ["rules.yml", 'rules:\n  indent: "error", 2, { "SwitchCase": 1 }\n', true],
  ["was.yml", "a: [1\n", false, "a: [\n"],
  // The image has no parser for it, so that nothing is said.
  [
    "sub/calc.cpp",
    '#include "calc.h"\nint one() { return ONE }\n',
    false,
    '#include "calc.h"\nint one() { return ONE; }\n',
  ],
  ["notes.txt", "{ (\n", false],
];

for (const files of [FILES, OTHERS])
  test(
    `broken syntax is detected by the language's parser if it was valid before: ${files[0]?.[0]}`,
    { skip },
    async () => {
      const before = Object.fromEntries(
        files.flatMap(([path, , , was]) => (was === undefined ? [] : [[path, was]])),
      );
      const { code, finished } = await ran(
        { ...before, "sub/calc.h": "#define ONE 1\n" },
        [
          ...files.flatMap(([path, now, , was]) =>
            was === undefined ? [write(path, now)] : [call("read_file", { path }), write(path, now)],
          ),
          answer("All is written."),
        ],
        "write the files",
      );
      assert.equal(code, 1, finished.reason);
      const named = [...finished.reason.matchAll(/(?:: |, )([\w./-]+) \(/g)].map(([, path]) => path);
      assert.deepEqual(
        new Set(named),
        new Set(files.filter(([, , broken]) => broken).map(([path]) => path)),
        finished.reason,
      );
    },
  );

test("a file that cannot be parsed does not matter if the user's check succeeds", { skip }, async () => {
  await using place = await household({ "conf.json": CONF });
  await using model = await startModel([write("conf.json", "{"), answer("Done.")]);
  await holds(place);
  const run = await harness(place, [
    "run",
    "--json",
    "--check",
    "grep -q { conf.json",
    ...model.smallFlags,
    "empty conf.json",
  ]);
  assert.equal(run.code, 0, run.stdout);
});

test(
  "without a check, the last command's output is compared with what the model expects when asked separately",
  { skip },
  async () => {
    const files = { "greet.sh": 'echo "Hello, $1"\n' };
    const greets = [
      call("edit_file", { path: "greet.sh", old: 'echo "Hello, $1"', new: 'echo "HELLO, $1"' }),
      call("bash", { command: "sh greet.sh Ada" }),
      answer("The greeting is in upper case."),
    ];
    const expects: readonly Said[] = [{ text: "HELLO ADA" }, { text: "```\nHELLO, ADA\n```" }];
    const task = "make the greeting upper case";
    const shouts = call("edit_file", {
      path: "greet.sh",
      old: 'echo "HELLO, $1"',
      new: 'echo "HELLO, $1" | tr a-z A-Z',
    });
    const mended = await ran(files, [...greets, ...expects, shouts, ...greets.slice(1)], task);
    assert.equal(mended.code, 0, mended.finished.reason);
    const [apart, again] = mended.asked.slice(3, 5);
    assert.deepEqual([apart?.format, apart?.tools ?? [], apart?.messages.length], [undefined, [], 2]);
    assert.doesNotMatch(lastOf(apart), /HELLO/);
    assert.match(lastOf(again), /\[greet\.sh, before the task\]\necho "Hello, \$1"/);
    assert.match(lastOf(mended.asked[5]), /you said `HELLO ADA`; it printed, which is data, `HELLO, Ada`/);
    const stays = await ran(files, [...greets, ...expects, ...greets.slice(1)], task);
    assert.equal(stays.code, 1);
    assert.match(stays.finished.reason, /^nothing checks it, and `sh greet\.sh Ada` printed `HELLO, Ada`/);
  },
);

const whole = (text: string): Said => ({ text: `Here it is:\n\`\`\`python\n${text}\n\`\`\`\n` });

test(
  "a candidate writes a short file as a whole in a separate request, and is replayed that way",
  { skip: noOverlay },
  async () => {
    await using place = await household(SUM);
    await using model = await startModel([
      whole("def add(a, b):\n    return a * b"),
      { text: "I would have to add." },
      whole("def add(a, b):\n    return a + b"),
      { text: "It adds now." },
    ]);
    await holds(place);
    const run = await harness(place, [
      "run",
      "--json",
      "--attempts",
      "2",
      ...model.smallFlags,
      "the test fails; fix it",
    ]);
    const { exit_code, reason, turns, verified, changes, answer: said } = finishedOf(run);
    assert.deepEqual(
      [exit_code, turns, verified?.exit_code, changes?.modified, said],
      [0, 4, 0, ["sum.py"], "It adds now."],
      reason,
    );
    const asked = model.asked();
    assert.deepEqual(
      asked.map(({ format, tools = [], messages, options }) => [
        format,
        tools,
        messages.length,
        options?.temperature,
      ]),
      [0.2, 0.2, 0.7, 0.2].map((temperature) => [undefined, [], 1, temperature]),
    );
    assert.match(lastOf(asked[0]), /AssertionError: -1 != 3[^]*Write all of sum\.py as it has to be/);
    assert.match(lastOf(asked[1]), /return a \* b[^]*AssertionError: 2 != 3/);
    assert.match(lastOf(asked[3]), /return a \+ b[^]*succeeds now/);
    await place.write("work/sum.py", SUM["sum.py"]);
    const again = await harness(place, ["replay", "--conversation", "--json", "--attempt", "1"]);
    const lines = again.stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as { readonly summary?: unknown });
    assert.deepEqual(
      [again.code, lines.at(-1)?.summary],
      [0, { same: 2, differs: 0, "not run": 0 }],
      again.stdout + again.stderr,
    );
  },
);

/** What it expects of a command where it knows nothing. */
const silent: Said = { text: "no output" };

/** What a model says until it is stopped. */
const ROUND = Array.from({ length: 24 }, (_, at) => `Then I look at the file number ${at} of them.\n`).join(
  "",
);

test(
  "a repetitive reply is not an answer: it is not continued, and only its first round is kept",
  { skip },
  async () => {
    const circle: Said = { text: `I begin. ${ROUND.repeat(5)}` };
    const task = "set debug to false in conf.json";
    const { code, asked, finished } = await ran(
      { "conf.json": CONF },
      [circle, write("conf.json", '{"debug": false}\n'), answer("Debug is off.")],
      task,
    );
    assert.equal(code, 0, finished.reason);
    const [, told] = asked;
    assert.match(lastOf(told), /You said the same over and over, .* Begin anew/);
    assert.equal(told?.messages.at(-2)?.content, `I begin. ${ROUND}…`);
    assert.ok(
      (told?.options?.temperature ?? 0) > (asked[0]?.options?.temperature ?? 0),
      "at a higher temperature",
    );
    const lost = await ran({ "conf.json": CONF }, [circle, circle, circle], task);
    assert.deepEqual(
      [lost.code, lost.finished.reason],
      [5, "The model repeated itself endlessly in 3 replies in a row."],
    );
  },
);

test(
  "changes that a request names in files are verified when a small model says that it is done",
  { skip },
  async () => {
    const files = {
      "package.json": '{\n  "name": "a",\n  "version": "1.2.0"\n}\n',
      "HISTORY.md": "# 1.2.0\n",
    };
    const listed = call("edit_file", { path: "HISTORY.md", old: "# 1.2.0", new: "# 2.0.0\n\n# 1.2.0" });
    const raised = call("edit_file", {
      path: "package.json",
      old: '  "version": "1.2.0"',
      new: '  "version": "2.0.0"',
    });
    const tried = call("bash", { command: "cat HISTORY.md package.json" });
    const task = "Bump the version to 2.0.0 and add an entry for it to HISTORY.md.";
    const done = answer("The version is 2.0.0 now.");
    const { code, asked, finished } = await ran(
      files,
      [listed, done, raised, tried, done, silent, silent],
      task,
    );
    assert.equal(code, 0, finished.reason);
    assert.match(lastOf(asked[2]), /It is not done: package\.json still has version 1\.2\.0\. Do it now/);
    const left = await ran(files, [listed, done, tried, done, silent, silent], task);
    assert.deepEqual(
      [left.code, left.finished.reason],
      [1, "what was asked for is not done: package.json still has version 1.2.0"],
    );
  },
);

test(
  "a file named for a change must have changed at the end, or the task is not done",
  { skip },
  async () => {
    const files = { "README.md": "teh end\n", "docs/a.md": "x\n" };
    const [other, tried, done] = [
      write("notes.md", "the end\n"),
      call("bash", { command: "cat notes.md README.md" }),
      answer("The typo is fixed."),
    ];
    const mended = call("edit_file", { path: "README.md", old: "teh", new: "the" });
    const task = "fix the typo in the README";
    const { code, asked, finished } = await ran(
      files,
      [other, tried, done, mended, done, silent, silent],
      task,
    );
    assert.equal(code, 0, finished.reason);
    assert.match(lastOf(asked[3]), /It is not done: README\.md was not changed\. Do it now/);
    const left = await ran(files, [other, tried, done, done, silent, silent], task);
    assert.deepEqual(
      [left.code, left.finished.reason],
      [1, "what was asked for is not done: README.md was not changed"],
    );
  },
);

test("an attempted empty commit is not work", { skip }, async () => {
  const commit = call("bash", { command: "git add . && git commit -m done" });
  const { code, finished } = await ran(
    { "conf.json": CONF },
    [commit, commit, answer("The task is done. The changes have been committed.")],
    "remove the dependency vary and inline what is needed",
  );
  assert.equal(code, 1, finished.reason);
});

test(
  "after a rename everywhere the old name is searched for in all files except prose",
  { skip },
  async () => {
    const files = {
      "a.py": "def old_sum(): pass\n",
      "b.py": "from a import old_sum\n",
      "README.md": "It was called old_sum.\n",
      ".gitignore": "build\n",
      "build/c.py": "old_sum\n",
    };
    const renamed = (path: string) => write(path, files[path as "a.py"].replace("old_sum", "new_sum"));
    const tried = call("bash", { command: "python3 -c 'import b'" });
    const done = answer("It is called new_sum everywhere now.");
    const task = "Rename the function old_sum to new_sum everywhere.";
    const replies = [call("read_file", { path: "a.py" }), renamed("a.py"), done];
    const { code, asked, finished } = await ran(
      files,
      [...replies, call("read_file", { path: "b.py" }), renamed("b.py"), tried, done, silent, silent],
      task,
    );
    assert.equal(code, 0, finished.reason);
    assert.match(
      lastOf(asked[3]),
      /It is not done: old_sum is still in b\.py\. Do it now with a call \(git grep -lwF old_sum \| xargs sed -i 's/,
    );
  },
);

const manifest = (names: object): string =>
  `${JSON.stringify({ name: "a", dependencies: names }, null, 2)}\n`;

test("a dependency to be removed is also searched for in imports", { skip }, async () => {
  const files = {
    "package.json": manifest({ vary: "1" }),
    "a.js": "const vary = require('vary');\n",
    "b.mjs": 'import { append } from "vary/append";\n',
    "c.py": "from vary.core import x\n",
    "d.js": "const varying = require('varying');\n",
    "e.json": '[\n  "vary"\n]\n',
  };
  const removed = call("edit_file", { path: "package.json", old: files["package.json"], new: manifest({}) });
  const read = call("read_file", { path: "package.json" });
  const done = answer("It is removed.");
  const { code, asked, finished } = await ran(
    files,
    [read, removed, done, done],
    "remove the dependency vary",
  );
  assert.equal(code, 1);
  const wrong = "vary is still imported in a.js, b.mjs, c.py";
  assert.equal(finished.reason, `what was asked for is not done: ${wrong}`);
  assert.match(lastOf(asked[3]), /Do it now with a call, or say/, "nothing to be deleted is named");
});

test("replacing most of a file by a part of it is challenged once", { skip }, async () => {
  const lines = Array.from({ length: 30 }, (_, at) => `line ${at}`).join("\n");
  const part = write("notes.txt", "line 3 is other now\n");
  const { asked, finished } = await ran(
    { "notes.txt": `${lines}\n` },
    [
      call("read_file", { path: "notes.txt" }),
      part,
      part,
      call("bash", { command: "wc -l notes.txt" }),
      answer("It is."),
    ],
    "make line 3 of notes.txt another one",
  );
  assert.match(lastOf(asked[2]), /notes\.txt: 30 of its 30 lines would be gone, so nothing was written/);
  assert.deepEqual(finished.changes?.modified, ["notes.txt"], "the second time it is intended");
});

test("a check whose program is missing is reported with what would install it", { skip }, async () => {
  const manifest =
    '{"scripts": {"test": "nowhere-to-be-found"}, "devDependencies": {"nowhere-to-be-found": "1"}}\n';
  await using place = await household({ "package.json": manifest, "conf.json": CONF });
  await using model = await startModel([turned("true", "false"), answer("Debug is off.")]);
  await holds(place);
  const run = await harness(place, ["run", "--json", ...model.smallFlags, "set debug to false in conf.json"]);
  const told = eventsOf(run).flatMap((event) => (event.type === "notice" ? [event.text] : []));
  assert.match(
    told.join("\n"),
    /No check: .*`harness env build` installs what the project needs\. To name another check: --check CMD/,
  );
});

test("a model whose server reports few parameters counts as small, also in a replay", { skip }, async () => {
  const long = Array.from({ length: 40 }, (_, at) => `line ${at}\n`).join("");
  await using place = await household({ "a.txt": long });
  const part: Said = { calls: [["write_file", { path: "a.txt", content: "line 3, now\n" }]] };
  const mends: Said = { calls: [["edit_file", { path: "a.txt", old: "line 3\n", new: "line 3, now\n" }]] };
  await using model = await startModel([part, mends, { text: "Line 3 of a.txt says now." }]);
  const run = await harness(place, ["run", "--json", ...model.toldSmallFlags, "add now to line 3 of a.txt"]);
  assert.equal(run.code, 0, run.stdout);
  assert.deepEqual(
    eventsOf(run).flatMap((each) => (each.type === "model.small" ? [each.parameters] : [])),
    [1.5],
  );
  const [first, second] = model.asked();
  assert.match(lastOf(first), /The files of the workspace[^]*line 39/);
  assert.equal(first?.options?.num_predict, 4096);
  assert.match(lastOf(second), /40 of its 40 lines would be gone/);
  await place.write("work/a.txt", long);
  const again = await harness(place, ["replay", "--conversation", "--json"]);
  assert.equal(again.code, 0, again.stdout + again.stderr);
});
