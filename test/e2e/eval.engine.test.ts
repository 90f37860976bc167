import assert from "node:assert/strict";
import { cp, readFile, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import test from "node:test";
import { readSuite } from "../../src/app/batch/eval-suite.ts";
import { type EvalResult, resultForm } from "../../src/render/eval-results.ts";
import { skip } from "../fixtures/engine.ts";
import { giveAway } from "../fixtures/real-box.ts";
import type { Scratch } from "../fixtures/scratch.ts";
import { answerOf, household, sandboxExec } from "./box-command.ts";
import { ROOT } from "./package.ts";
import { harness } from "./run-command.ts";

const SUITE = path.join(ROOT, "examples/evals/small");

async function resultsOf(place: Scratch): Promise<readonly EvalResult[]> {
  const text = await readFile(place.at("out/results.jsonl"), "utf8");
  return text
    .trimEnd()
    .split("\n")
    .map((line) => resultForm.parse(JSON.parse(line)));
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
  test(`what is scripted as ${scripted} is ${solved ? "solved" : "a false done"}`, { skip }, async () => {
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

test(
  "what a small model replied never ends with 0, and each of its tasks can be solved",
  { skip },
  async () => {
    await using place = await household();
    const suite = path.join(ROOT, "examples/evals/first-words");
    for (const [scripted, solved] of [
      ["solution", 7],
      ["reply", 0],
    ] as const) {
      const words = [
        "eval",
        suite,
        "--jobs",
        "2",
        "--scripted",
        scripted,
        "--out",
        place.at(scripted),
        "--json",
      ];
      const ran = await harness(place, words);
      assert.equal(ran.code, 0, ran.stderr);
      const results = ran.stdout
        .trimEnd()
        .split("\n")
        .map((line) => resultForm.parse(JSON.parse(line)));
      assert.equal(results.length, 7);
      assert.equal(results.filter((each) => each.solved).length, solved, ran.stdout);
      assert.deepEqual(
        results.filter((each) => each.false_done),
        [],
      );
      if (solved === 0)
        assert.ok(
          results.every(({ exit_code }) => exit_code !== 0),
          ran.stdout,
        );
    }
  },
);

test("nothing that a run leaves leads the check's own files out of its workspace", { skip }, async () => {
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

test("an eval that is killed goes on with what has no result", { skip }, async () => {
  await using place = await household();
  const words = ["eval", SUITE, ...named, "--scripted", "solution", "--out", place.at("out")];
  const killed = await harness(place, words, {
    whenMade: [place.at("out/results.jsonl"), (child) => void setTimeout(() => child.kill("SIGKILL"), 1500)],
  });
  assert.equal(killed.code, null, killed.stderr);
  assert.equal((await harness(place, words)).code, 0);
  assert.deepEqual((await resultsOf(place)).map(({ task }) => task).toSorted(), FEW);
});

test(
  "a model that is not there ends it with 5, without a result; a test that is changed gains nothing",
  { skip },
  async () => {
    await using place = await household();
    const away = ["--", "--provider", "ollama", "--base-url", "http://127.0.0.1:9", "--model", "m"];
    const ran = await harness(place, ["eval", SUITE, ...named, "--out", place.at("out"), ...away]);
    assert.equal(ran.code, 5, ran.stderr);
    assert.match(ran.stderr, /c-hex could not be run/);
    assert.equal(await readFile(place.at("out/results.jsonl"), "utf8"), "");
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

test(
  "each run may have several candidates, and a result counts those that were begun",
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

/** What the scripted model writes. */
async function writtenBy(scenario: string): Promise<readonly (readonly [path: string, content: string])[]> {
  const steps = (await readFile(scenario, "utf8")).trimEnd().split("\n");
  const parts = steps.flatMap((step) => (JSON.parse(step) as { readonly reply: readonly unknown[] }).reply);
  return parts.flatMap((part) => {
    const { call, args } = part as {
      readonly call?: string;
      readonly args?: { path: string; content: string };
    };
    return call === "write_file" && args !== undefined ? [[args.path, args.content] as const] : [];
  });
}

test("in one box, every shipped solution passes its check, and nothing else does", { skip }, async () => {
  await using place = await household();
  const tasks = await readSuite(SUITE, []);
  for (const task of tasks)
    for (const name of ["solution", "wrong"]) {
      const at = `work/${name}/${task.name}`;
      await cp(path.join(task.folder, "repo"), place.at(at), { recursive: true });
      for (const [file, content] of await writtenBy(path.join(task.folder, `${name}.jsonl`)))
        await place.write(`${at}/${file}`, content);
      await place.write(`${at}/.check`, task.check);
    }
  await giveAway(place.at("work"));
  const each = 'for d in */*/; do (cd "$d" && timeout 30 sh .check > .said 2>&1) && echo "$d"; done; true';
  const ended = answerOf(await sandboxExec(place, ["--json", "--", "sh", "-c", each]));
  const expected = tasks.map(({ name }) => `solution/${name}/\n`).join("");
  assert.equal(ended["stdout"], expected);
});
