// slow: it vets a package of every kind; vet.engine.test.ts has the verdicts
import assert from "node:assert/strict";
import test from "node:test";
import type { VetReport } from "../../src/core/behaviour.ts";
import { skip } from "../fixtures/engine.ts";
import { giveAway } from "../fixtures/give-away.ts";
import { scratch } from "../fixtures/scratch.ts";
import { BENIGN } from "../fixtures/zoo/benign.ts";
import { given, missedOf, toldOf } from "../fixtures/zoo/given.ts";
import { HOSTILE } from "../fixtures/zoo/hostile.ts";
import type { Repository } from "../fixtures/zoo/repositories.ts";
import { harness } from "./run-command.ts";

/** One of each kind of thing that only shows when it is run; `npm run test:zoo` has all of them. */
const TRIED = [
  "npm-preinstall-dumps-environment",
  "npm-test-opens-sockets",
  "npm-waits-for-ci",
  "npm-daemon-outlives",
  "pip-setup-writes-bashrc",
  "make-writes-hooks",
  "make-fork-bomb",
  "make-rewrites-sources",
];
const QUIET = ["npm-library", "python-package", "make-and-c"];

async function vetted(repository: Repository): Promise<VetReport> {
  await using place = await scratch();
  const target = await given(place.at("work"), repository);
  await giveAway(place.at("work"));
  const words = repository.run === undefined ? [] : ["--", "sh", "-c", repository.run];
  const { stdout, stderr, code } = await harness(place, ["vet", "--json", target, ...words]);
  assert.match(stdout, /^\{/, stderr);
  const report = JSON.parse(stdout) as VetReport;
  assert.equal(code, report.exit_code);
  return report;
}

const named = <T extends Repository>(zoo: readonly T[], names: readonly string[]): readonly T[] =>
  zoo.filter(({ name }) => names.includes(name));

test("what the commands of hostile repositories do is named", { skip }, async () => {
  const repositories = named(HOSTILE, TRIED);
  assert.equal(repositories.length, TRIED.length);
  const missed: string[] = [];
  for (const repository of repositories) {
    const { findings, verdict } = await vetted(repository);
    missed.push(...missedOf(repository, findings, verdict).map((each) => `${repository.name}: ${each}`));
  }
  assert.deepEqual(missed, []);
});

test("honest repositories that install, build and test are quiet", { skip }, async () => {
  const repositories = named(BENIGN, QUIET);
  assert.equal(repositories.length, QUIET.length);
  for (const repository of repositories) {
    const { findings, verdict, exit_code, steps } = await vetted(repository);
    const loud = findings.filter(({ weight }) => weight !== "note").map(toldOf);
    assert.deepEqual([repository.name, verdict, exit_code, loud], [repository.name, "quiet", 0, []]);
    assert.ok(steps.some((step) => step.exit_code === 0));
  }
});
