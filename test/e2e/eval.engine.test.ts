// also slow: every shipped task once, and evals one after the other
import assert from "node:assert/strict";
import { cp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import test from "node:test";
import { type EvalTask, readSuite } from "../../src/app/batch/eval-suite.ts";
import { type EvalResult, evalResultForm } from "../../src/render/batch-results.ts";
import { skip } from "../fixtures/engine.ts";
import { giveAway } from "../fixtures/give-away.ts";
import type { Scratch } from "../fixtures/scratch.ts";
import { answerOf, household, sandboxExec } from "./box-command.ts";
import { ROOT } from "./package.ts";
import { harness } from "./run-command.ts";
import { slowTest } from "../fixtures/slow-test.ts";

const SUITE = path.join(ROOT, "examples/evals/small");
const FIRST_WORDS = path.join(ROOT, "examples/evals/first-words");

async function resultsOf(place: Scratch): Promise<readonly EvalResult[]> {
  const text = await readFile(place.at("out/results.jsonl"), "utf8");
  return text
    .trimEnd()
    .split("\n")
    .map((line) => evalResultForm.parse(JSON.parse(line)));
}

const PROBED = {
  model: "small:1b",
  server: "http://127.0.0.1:11434",
  version: "0.24.0",
  native: false,
  calls: "held",
  checks: { native: false },
  at: "2026-11-24T12:00:00.000Z",
};
const FEW = ["c-hex", "python-retry", "shell-greeting"];
const named = FEW.flatMap((name) => ["--only", name]);

for (const [scripted, solved] of [
  ["solution", true],
  ["wrong", false],
] as const)
  test(`the scripted ${scripted} counts as ${solved ? "solved" : "a false done"}`, { skip }, async () => {
    await using place = await household();
    const words = [
      "eval",
      SUITE,
      ...named,
      "--jobs",
      "2",
      "--scripted",
      scripted,
      "--out",
      place.at("out"),
      "--json",
    ];
    // Runs have a state of their own, and call as the user's probe found.
    const probes = { version: 1, probes: [PROBED] };
    await place.write(".local/state/harness/probes.json", JSON.stringify(probes));
    const ran = await harness(place, words);
    assert.equal(ran.code, 0, ran.stderr);
    assert.deepEqual(JSON.parse(await readFile(place.at("out/state/harness/probes.json"), "utf8")), probes);
    const results = await resultsOf(place);
    assert.deepEqual(results.map(({ task }) => task).toSorted(), FEW);
    for (const each of results)
      assert.deepEqual([each.solved, each.false_done, each.exit_code, each.turns], [solved, !solved, 0, 3]);
    assert.equal(ran.stdout.trimEnd().split("\n").length, FEW.length);
    assert.match(await readFile(place.at("out/report.html"), "utf8"), /python-retry/);
  });

test("recorded replies of a small model never end with 0 and solve nothing", { skip }, async () => {
  await using place = await household();
  const more = ["--jobs", "2", "--scripted", "reply", "--out", place.at("out"), "--json"];
  const ran = await harness(place, ["eval", FIRST_WORDS, ...more]);
  assert.equal(ran.code, 0, ran.stderr);
  const results = await resultsOf(place);
  assert.equal(results.length, 7);
  for (const { exit_code, solved, false_done } of results)
    assert.deepEqual([exit_code !== 0, solved, false_done], [true, false, false], ran.stdout);
});

test("files left by a run cannot redirect the check's own files out of its workspace", { skip }, async () => {
  await using place = await household();
  await place.write(
    "suite/leads/task.json",
    JSON.stringify({
      prompt: "p",
      language: "shell",
      check: "test -f lib/a.sh && ! test -L lib && test -f answer.txt && ! test -L answer.txt",
      restore: ["lib/a.sh"],
      answer: "answer.txt",
    }),
  );
  await place.write("suite/leads/repo/lib/a.sh", "true\n");
  await place.write("away/a.sh", "mine\n");
  const links = `rm -rf lib; ln -s ${place.at("away")} lib; ln -s ${place.at("away/answer")} answer.txt`;
  const steps = [{ reply: [{ call: "bash", args: { command: links } }] }, { reply: ["Done."] }];
  await place.write("suite/leads/solution.jsonl", steps.map((step) => `${JSON.stringify(step)}\n`).join(""));
  const ran = await harness(place, [
    "eval",
    place.at("suite"),
    "--scripted",
    "solution",
    "--out",
    place.at("out"),
  ]);
  assert.equal(ran.code, 0, ran.stderr);
  const [result] = await resultsOf(place);
  assert.deepEqual([result?.check_exit_code, result?.exit_code], [0, 0], ran.stderr);
  assert.equal(await readFile(place.at("away/a.sh"), "utf8"), "mine\n");
  await assert.rejects(readFile(place.at("away/answer")));
});

test("a killed eval continues with the tasks that have no result", { skip }, async () => {
  await using place = await household();
  const words = ["eval", SUITE, ...named, "--scripted", "solution", "--out", place.at("out")];
  const killed = await harness(place, words, {
    whenMade: [place.at("out/results.jsonl"), (child) => void setTimeout(() => child.kill("SIGKILL"), 1500)],
  });
  assert.equal(killed.code, null, killed.stderr);
  assert.equal((await harness(place, words)).code, 0);
  assert.deepEqual((await resultsOf(place)).map(({ task }) => task).toSorted(), FEW);
});

slowTest("results of one eval are never shown as those of another", { skip }, async () => {
  await using place = await household();
  const one = ["eval", SUITE, "--only", "c-hex", "--json"];
  const solved = await harness(place, [...one, "--scripted", "solution"]);
  assert.match(solved.stdout, /"solved":true/);
  const wrong = await harness(place, [...one, "--scripted", "wrong"]);
  assert.match(wrong.stdout, /"solved":false/, wrong.stderr);
  const again = await harness(place, [...one, "--scripted", "wrong"]);
  assert.deepEqual([again.code, again.stdout], [0, ""], "it has its result already");
  const out = ["--out", place.at("out")];
  assert.equal((await harness(place, [...one, ...out, "--scripted", "solution"])).code, 0);
  await place.write("tmp/mine", "");
  const words = [...one, ...out, "--", "--provider", "scripted", "--model", "m"];
  const other = await harness(place, words, { env: { TMPDIR: place.at("tmp") } });
  assert.equal(other.code, 2);
  assert.deepEqual(await readdir(place.at("tmp")), ["mine"], "such an eval leaves no workspace");
  assert.match(other.stdout, /contains the results of another eval: .*solution/);
});

test(
  "a missing model ends the eval with 5 and no result, and changing a test gains nothing",
  { skip },
  async () => {
    await using place = await household();
    const away = ["--", "--provider", "ollama", "--base-url", "http://127.0.0.1:9", "--model", "m"];
    const ran = await harness(place, ["eval", SUITE, ...named, "--out", place.at("out"), ...away]);
    assert.equal(ran.code, 5, ran.stderr);
    assert.match(ran.stderr, /c-hex could not be run/);
    assert.equal(await readFile(place.at("out/results.jsonl"), "utf8"), "");
    const clash = ["--attempts", "2", "--mode", "read-only"];
    const refused = await harness(place, [
      "eval",
      SUITE,
      ...named,
      "--out",
      place.at("no"),
      ...away,
      ...clash,
    ]);
    assert.equal(refused.code, 2);
    assert.match(refused.stderr, /c-hex could not be run: --attempts: no candidate can change anything/);
    await place.write("suite/cheat/task.json", '{"prompt":"p","check":"sh test.sh","language":"shell"}');
    await place.write("suite/cheat/repo/test.sh", "exit 1\n");
    await place.write("suite/cheat/check/test.sh", "exit 1\n");
    const write = { call: "bash", args: { command: "echo exit 0 > test.sh" } };
    await writeFile(
      place.at("suite/cheat/solution.jsonl"),
      `${JSON.stringify({ reply: [write] })}\n{"reply":["Done."]}\n`,
    );
    const cheated = await harness(place, [
      "eval",
      place.at("suite"),
      "--scripted",
      "solution",
      "--out",
      place.at("out"),
    ]);
    assert.equal(cheated.code, 0, cheated.stderr);
    const [result] = await resultsOf(place);
    assert.deepEqual([result?.solved, result?.false_done], [false, true]);
  },
);

slowTest(
  "each run may have several candidates, and a result counts those that started",
  { skip },
  async () => {
    await using place = await household();
    for (const [check, solved, attempts] of [
      ["true", true, 1],
      ["false", false, 2],
    ] as const) {
      const out = ["--out", place.at("out")];
      const words = [
        "eval",
        SUITE,
        "--only",
        "python-retry",
        "--scripted",
        "solution",
        "--attempts",
        "2",
        ...out,
      ];
      const ran = await harness(place, [...words, "--", "--check", check]);
      assert.equal(ran.code, 0, ran.stderr);
      const [result] = await resultsOf(place);
      assert.deepEqual([result?.solved, result?.attempts], [solved, attempts], result?.reason);
      await rm(place.at("out"), { recursive: true });
    }
  },
);

interface Scripted {
  readonly call?: string;
  readonly args?: {
    readonly path: string;
    readonly content: string;
    readonly old: string;
    readonly new: string;
  };
}

/** A task's own files as what the scripted model does leaves them, what it says at last among them where that is asked for. */
async function doneBy(name: string, task: EvalTask, place: Scratch, at: string): Promise<void> {
  await cp(path.join(task.folder, "repo"), place.at(at), { recursive: true });
  await place.write(`${at}/.check`, task.check);
  const steps = (await readFile(path.join(task.folder, `${name}.jsonl`), "utf8")).trimEnd().split("\n");
  const parts = steps.flatMap((step) => (JSON.parse(step) as { reply: (Scripted | string)[] }).reply);
  for (const part of parts) {
    if (typeof part === "string") {
      if (task.answer !== undefined) await place.write(`${at}/${task.answer}`, part);
      continue;
    }
    const { call, args } = part;
    if (args === undefined) continue;
    const file = `${at}/${args.path}`;
    if (call === "write_file") await place.write(file, args.content);
    if (call === "edit_file")
      await place.write(
        file,
        (await place.read(file)).replace(args.old, () => args.new),
      );
  }
}

slowTest(
  "in one shared box every shipped solution passes its check, and nothing else does",
  { skip },
  async () => {
    await using place = await household();
    const tasks = await readSuite(SUITE, []);
    const first = await readSuite(FIRST_WORDS, []);
    for (const name of ["solution", "wrong"])
      for (const task of tasks) await doneBy(name, task, place, `work/${name}/${task.name}`);
    for (const task of first) await doneBy("solution", task, place, `work/first/${task.name}`);
    await giveAway(place.at("work"));
    const passing = async (folders: string): Promise<unknown> => {
      const each = `for d in ${folders}; do (cd "$d" && timeout 30 sh .check > .said 2>&1) && echo "$d"; done; true`;
      return answerOf(await sandboxExec(place, ["--json", "--", "sh", "-c", each]))["stdout"];
    };
    const solved = [
      ...first.map(({ name }) => `first/${name}/\n`),
      ...tasks.map(({ name }) => `solution/${name}/\n`),
    ];
    assert.equal(await passing("first/*/ solution/*/"), solved.join(""));
    assert.equal(await passing("wrong/*/"), "");
  },
);
