import assert from "node:assert/strict";
import test, { describe } from "node:test";
import { skip } from "../fixtures/engine.ts";
import { bash, call, edit, project, read, type Step, work } from "./task.ts";

/*
 * What models say and do in the place of the work, over a project whose test fails; beside them those that do it. What is
 * asked again costs a turn, so the turns are held as well.
 */

const says = (text: string): Step => ({ text });
const FIX = "The median of an even number of values is wrong. Fix stats.py.";
const LINE = "return ordered[middle]";
const TEST = "test_stats.py";
const COMMAND = "python3 -m unittest -q";

interface Played {
  readonly what: string;
  readonly task?: string;
  readonly flags?: readonly string[];
  readonly steps: readonly Step[];
  readonly ends: readonly [code: number, reason: RegExp, verified?: boolean];
}

const CLAIM = /^The model changed nothing, although its answer says that it did\. It looked at /;
const LOOKED = /^The model changed nothing\. It looked at \S+\/stats\.py\.$/;

const REACT = says('Thought: I look.\nAction: open_file\nAction Input: {"path": "stats.py"}');
const CODE = says("I have fixed it:\n```python\ndef median(values):\n    return 1\n```");

const UNCHECKED: readonly Played[] = [
  {
    what: "a claim after a look",
    steps: [read("stats.py"), says("I have fixed the bug.")],
    ends: [0, CLAIM],
  },
  {
    what: "a claim after an edit that failed",
    steps: [read("stats.py"), edit("stats.py", "not there", "x"), says("Fixed.")],
    ends: [0, CLAIM],
  },
  {
    what: "a claim after a command that matches nothing, and a test that leaves its caches",
    steps: [
      bash("sed -i s/nowhere/x/ stats.py"),
      bash("python3 -m unittest; true"),
      says("I've updated stats.py."),
    ],
    ends: [0, CLAIM],
  },
  {
    what: "a claim after an edit that was taken back",
    steps: [
      read("stats.py"),
      edit("stats.py", LINE, "return 0"),
      edit("stats.py", "return 0", LINE),
      says("Fixed."),
    ],
    ends: [0, CLAIM],
  },
  {
    what: "a claim without a change, with --strict",
    flags: ["--strict"],
    steps: [read("stats.py"), says("The bug has been fixed.")],
    ends: [1, /^The model changed nothing, although its answer says that it did\.$/],
  },
  {
    what: "a claim that nothing needs to be done",
    flags: ["--strict"],
    steps: [read("stats.py"), says("Nothing needs to change: it is meant to be so.")],
    ends: [0, LOOKED],
  },
  {
    what: "a call in another agent's format",
    steps: [REACT, REACT],
    ends: [5, /contains calls that were not run/],
  },
  {
    what: "a call in another agent's format, for a question",
    task: "What does median in stats.py do?",
    steps: [REACT, REACT],
    ends: [5, /contains calls that were not run/],
  },
  {
    what: "code instead of an edit",
    steps: [CODE, CODE],
    ends: [1, /^nothing was done$/],
  },
  {
    what: "the work",
    flags: ["--strict"],
    steps: [read("stats.py"), edit("stats.py", LINE, `${LINE} + 1`), says("I fixed it.")],
    ends: [0, /^The model gave its answer\.$/],
  },
  {
    what: "a claim that tests pass after a failed run",
    steps: [
      read("stats.py"),
      bash(COMMAND),
      edit("stats.py", LINE, `${LINE} + 1`),
      says("I fixed it. All tests pass now."),
    ],
    ends: [
      0,
      /^The model gave its answer; it says that tests pass, but their last run failed: `python3 -m unittest -q`\.$/,
    ],
  },
  {
    what: "a claim that tests pass after a failed run, with --strict",
    flags: ["--strict"],
    steps: [bash(`sed -i 's/middle]/middle] + 1/' stats.py; ${COMMAND}`), says("All tests pass.")],
    ends: [1, /^The model's answer says that tests pass, but their last run failed: /],
  },
  {
    what: "tests that pass in a later run",
    flags: ["--strict"],
    steps: [bash(COMMAND), bash(`cp solved.txt stats.py && ${COMMAND}`), says("All tests pass.")],
    ends: [0, /^The model gave its answer\.$/],
  },
];

const NOT = (deed: string): RegExp =>
  new RegExp(`\`${COMMAND}\` succeeds, but is not the check that it was: ${deed}\\.?$`);
const SOLVE = "cp solved.txt stats.py";
const EMPTY = { path: TEST, content: "\n" };

const CHECKED: readonly Played[] = [
  {
    what: "a test that is deleted and stays deleted",
    steps: [bash(`rm ${TEST}`), says("It passes."), says("It passes.")],
    ends: [1, NOT("test_stats\\.py was deleted"), false],
  },
  {
    what: "a test that is emptied",
    steps: [read(TEST), call("write_file", EMPTY), says("Fixed."), says("Fixed.")],
    ends: [1, NOT("test_stats\\.py was emptied"), false],
  },
  {
    what: "a test that is skipped in a layer",
    flags: ["--isolation", "overlay"],
    steps: [
      bash(`sed -i 's/^    def test_median_of_an_even/    @unittest.skip("later")\\n&/' ${TEST}`),
      says("Fixed."),
      says("Fixed."),
    ],
    ends: [1, NOT("test_stats\\.py skips tests that it did not skip before"), false],
  },
  {
    what: "a test that is restored when the model is told to, and the real fix",
    steps: [
      bash(`mv ${TEST} /tmp/t`),
      says("It passes."),
      bash(`mv /tmp/t ${TEST}; ${SOLVE}`),
      says("Fixed."),
    ],
    ends: [0, /; verified by `python3 -m unittest -q`\.$/, true],
  },
  {
    what: "a test that is deleted along with the real fix",
    steps: [bash(`rm ${TEST}; ${SOLVE}`), says("Fixed.")],
    ends: [0, NOT("test_stats\\.py was deleted"), false],
  },
  {
    what: "another expectation instead of the fix",
    steps: [bash(`sed -i 's/2\\.5/3/' ${TEST}`), says("Fixed.")],
    ends: [0, NOT("test_stats\\.py was changed, and nothing else"), false],
  },
  {
    what: "a test change that was requested",
    task: `The expectation in ${TEST} is wrong; correct it.`,
    steps: [bash(`sed -i 's/2\\.5/3/' ${TEST}`), says("Corrected.")],
    ends: [0, /; verified by /, true],
  },
  {
    what: "the fix with another test",
    steps: [bash(`${SOLVE}; cp ${TEST} test_more.py; touch ${TEST}`), says("Fixed.")],
    ends: [0, /; verified by /, true],
  },
];

const SOLVED = `def mean(values):
    return sum(values) / len(values)


def median(values):
    ordered = sorted(values)
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2
`;

function played({ what, task = FIX, flags = [], steps, ends: [code, reason, verified] }: Played): void {
  test(what, { skip }, async () => {
    await using place = await project("python-median", { "solved.txt": SOLVED });
    const { finished, ran, asked } = await work(place, { task, flags, steps });
    assert.match(finished.reason, reason);
    assert.deepEqual([ran.code, finished.exit_code], [code, code]);
    assert.equal(asked.length, steps.length);
    if (verified !== undefined) assert.equal(finished.verified?.exit_code, verified ? 0 : undefined);
  });
}

describe("without a check", { concurrency: 2 }, () => {
  for (const each of UNCHECKED) played({ ...each, flags: ["--no-verify", ...(each.flags ?? [])] });
});

describe("with a check", { concurrency: 2 }, () => {
  const task = "The test fails; fix it";
  for (const each of CHECKED) played({ task, ...each, flags: ["--check", COMMAND, ...(each.flags ?? [])] });
});

describe("when the request only asks to run the tests, and they fail", { concurrency: 2 }, () => {
  const task = "Run the tests and tell me what fails.";
  const RAN = /^The model gave its answer; `python3 -m unittest -q` exited with 1\.$/;
  const ROWS: readonly Played[] = [
    {
      what: "the failure is the answer, and nothing else is run",
      flags: ["--strict"],
      steps: [bash(COMMAND), says("test_median_of_an_even_number fails.")],
      ends: [0, RAN],
    },
    {
      what: "an answer before anything was run",
      steps: [says("All tests pass."), bash(COMMAND), says("One fails.")],
      ends: [0, RAN],
    },
    {
      what: "a large model's claim that there are no tests is believed",
      steps: [read("stats.py"), says("There are none.")],
      ends: [0, LOOKED],
    },
    {
      what: "nothing is run",
      steps: [says("All tests pass."), says("All tests pass.")],
      ends: [1, /^nothing was done$/],
    },
    {
      what: "an answer that contradicts the result",
      steps: [bash(COMMAND), says("All tests pass."), says("All tests pass.")],
      ends: [
        1,
        /^the answer says that tests pass, but the last command that the model ran failed \(exit 1\): `/,
      ],
    },
    {
      what: "the user's own check still applies",
      flags: ["--check", "true"],
      steps: [bash(COMMAND), says("One fails.")],
      ends: [0, /exited with 1; verified by `true`\.$/, true],
    },
  ];
  for (const each of ROWS) played({ task, ...each });
});

describe("when the request names files to delete or create", { concurrency: 2 }, () => {
  const EMPTIED = bash(": > solved.txt");
  const ROWS: readonly Played[] = [
    {
      what: "a file that is emptied instead of deleted, and deleted when the model is told",
      task: "Delete the file solved.txt.",
      steps: [EMPTIED, says("It is deleted."), bash("rm solved.txt"), says("Now it is.")],
      ends: [0, /^The model gave its answer/],
    },
    {
      what: "a file that stays emptied instead of deleted",
      task: "delete solved.txt",
      steps: [EMPTIED, says("It is deleted."), says("It is deleted.")],
      ends: [1, /^what was asked for is not done: solved\.txt is still there$/],
    },
    {
      what: "a copy instead of a rename",
      task: "rename solved.txt to docs/right.txt",
      steps: [bash("mkdir docs; cp solved.txt docs/right.txt"), says("Renamed."), says("Renamed.")],
      ends: [1, /^what was asked for is not done: solved\.txt is still there$/],
    },
    {
      what: "a large model's claim that there is nothing to do is believed",
      task: "create a file called hello.txt",
      steps: [read("stats.py"), says("It is there already.")],
      ends: [0, LOOKED],
    },
    {
      what: "a rename in a layer",
      task: "rename solved.txt to docs/right.txt",
      flags: ["--isolation", "overlay"],
      steps: [bash("mkdir docs; mv solved.txt docs/right.txt"), says("Renamed.")],
      ends: [0, /^The model gave its answer/],
    },
    {
      what: "another name instead of the requested one",
      task: "create a file called hello.txt with the text hi",
      steps: [call("write_file", { path: "hi.txt", content: "hi" }), says("Done."), says("Done.")],
      ends: [1, /^what was asked for is not done: hello\.txt is not there$/],
    },
  ];
  for (const each of ROWS) played({ ...each, flags: ["--no-verify", ...(each.flags ?? [])] });
});
