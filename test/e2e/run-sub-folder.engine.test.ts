import assert from "node:assert/strict";
import test from "node:test";
import { git, noGit, repository } from "../boxes/workspace/repository.ts";
import { skip } from "../fixtures/engine.ts";
import { giveAway } from "../fixtures/give-away.ts";
import { scratch, type Scratch } from "../fixtures/scratch.ts";
import { finishedOf, harness, startModel } from "./run-command.ts";
import { lastResult, resultsIn } from "./run-requests.ts";

/** A run in a folder of a repository. */

async function monorepo(): Promise<Scratch> {
  const place = await scratch();
  repository(place.at("work"));
  const files = {
    "AGENTS.md": "TOP WORDS",
    "packages/AGENTS.md": "MIDDLE WORDS",
    "packages/one/AGENTS.md": "OWN WORDS",
    "packages/two/AGENTS.md": "OTHER WORDS",
    "packages/one/a.txt": "a\n",
    "packages/two/b.txt": "b\n",
    ".env": "KEY=kumquat\n",
    ".harnessignore": "hidden.txt\n/packages/one/mine.txt\n",
    "hidden.txt": "quince\n",
    "packages/one/mine.txt": "medlar\n",
  };
  for (const [name, text] of Object.entries(files)) await place.write(`work/${name}`, text);
  git(place.at("work"), "add", "-A");
  git(place.at("work"), "commit", "-q", "-m", "all");
  await place.write("work/packages/two/b.txt", "changed\n");
  await place.write("work/packages/one/a.txt", "changed\n");
  await giveAway(place.at("work"));
  return place;
}

const only = skip || noGit;

test(
  "it has the instructions of parent folders, the top's first, and a working git",
  { skip: only },
  async () => {
    await using place = await monorepo();
    await using model = await startModel([
      { calls: [["bash", { command: "git status --porcelain -- . && cat a.txt" }]] },
      { text: "done" },
    ]);
    const cwd = place.at("work/packages/one");
    const ran = await harness(place, ["run", "--json", "--no-verify", ...model.flags, "look at it"], { cwd });
    assert.equal(ran.code, 0, ran.stderr);
    const system = model.asked()[0]?.messages[0]?.content ?? "";
    const orders = [...system.matchAll(/<project_instructions path="([^"]+)">\n(\w+) WORDS/g)];
    assert.deepEqual(
      orders.map(([, file, word]) => [file, word]),
      [
        ["../../AGENTS.md", "TOP"],
        ["../AGENTS.md", "MIDDLE"],
        ["AGENTS.md", "OWN"],
      ],
    );
    assert.ok(
      system.includes(
        `(a folder of the repository "${place.at("work")}", whose other folders can only be read)`,
      ),
    );
    assert.match(lastResult(model.asked()), / M packages\/one\/a\.txt\nchanged/);
    // What was gathered of the workspace is of the folder alone, by its own paths.
    const told = JSON.stringify(model.asked().at(-1)?.messages);
    assert.match(told, /Git: on .*a\.txt/);
    assert.doesNotMatch(told, /two\/b\.txt/);
  },
);

test("what is secret or hidden at the top is so from a sub-folder", { skip: only }, async () => {
  await using place = await monorepo();
  const cwd = place.at("work/packages/one");
  const tries = ["cat ../../.env", "cat ../../hidden.txt", "cat mine.txt", "echo x > ../two/b.txt"];
  await using model = await startModel([
    { calls: tries.map((command) => ["bash", { command }] as const) },
    { calls: [["bash", { command: "cat ../two/b.txt" }]] },
    { text: "done" },
  ]);
  const ran = await harness(place, ["run", "--json", "--no-verify", ...model.flags, "look at it"], { cwd });
  const answers = resultsIn(model.asked().at(-1));
  assert.doesNotMatch(answers.join("\n"), /kumquat|quince|medlar/, ran.stderr);
  // The twin: what is neither is read.
  assert.match(answers.at(-1) ?? "", /changed/);
  assert.equal(finishedOf(ran).status, "refused");
});

test("a commit is made at the top, and undo restores the folder", { skip: only }, async () => {
  await using place = await monorepo();
  const cwd = place.at("work/packages/one");
  await using model = await startModel([
    { calls: [["bash", { command: "echo new >new.txt && git add new.txt && git commit -qm theirs" }]] },
    { text: "done" },
  ]);
  const ran = await harness(
    place,
    ["run", "--json", "--no-verify", ...model.flags, "add new.txt and commit it"],
    {
      cwd,
    },
  );
  assert.equal(ran.code, 0, `${ran.stderr}${lastResult(model.asked())}`);
  assert.equal(
    git(place.at("work"), "show", "--name-only", "--format=%s").trim(),
    "theirs\n\npackages/one/new.txt",
  );
  const diff = await harness(place, ["diff"], { cwd });
  assert.match(diff.stdout, /new\.txt/, diff.stderr);
  const undone = await harness(place, ["undo"], { cwd });
  assert.equal(undone.code, 0, undone.stderr);
  assert.match(git(place.at("work"), "status", "--porcelain"), / D packages\/one\/new\.txt/);
});
