import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import test from "node:test";
import { git, noGit } from "../../boxes/workspace/repository.ts";
import { answerOf, sandboxExec } from "../../e2e/box-command.ts";
import { finishedOf, harness } from "../../e2e/run-command.ts";
import { skip } from "../../fixtures/engine.ts";
import { committedHousehold, runLines } from "./scripted.ts";

const cannot = skip || noGit;

interface Commit {
  readonly hash: string;
  readonly subject: string;
  readonly files: number;
  readonly protected: readonly string[];
}

const sh = (line: string): readonly string[] => ["--", "bash", "-c", line];
const commitsIn = (answer: Readonly<Record<string, unknown>>): readonly Commit[] =>
  answer["commits"] as readonly Commit[];

/** Committed and deleted again, so that the folder shows nothing of it. */
const HIDDEN = `set -e
mkdir -p .vscode .husky sub
echo 'touch ran' > .envrc; echo '{}' > .vscode/tasks.json; echo x > .husky/pre-commit; echo x > sub/.EnvRc
printf '[submodule "s"]\\n path = s\\n url = x\\n' > .gitmodules
ln -s /etc/passwd out; ln -s ../../x sub/up; ln -s kept.txt in
git init -q s; git -C s -c user.name=a -c user.email=b commit -q --allow-empty -m s
git add -A; git commit -qm 'tidy'
rm -rf .envrc .vscode .husky sub .gitmodules out in s`;
const HELD = [
  ".envrc",
  ".gitmodules",
  ".husky/pre-commit",
  ".vscode/tasks.json",
  "out",
  "s",
  "sub/.EnvRc",
  "sub/up",
];

test(
  "a run reports its commits, and a commit that would restore a dangerous file is dangerous",
  { skip: cannot },
  async () => {
    await using place = await committedHousehold({ "kept.txt": "a\n", "test.sh": HIDDEN });
    const ran = await runLines(place, ["cat kept.txt", "bash test.sh"], ["--json"]);
    const { commits = [], commits_total, handoff, changes } = finishedOf(ran);
    assert.deepEqual(
      commits.map(({ subject, files, protected: held }) => [subject, files, held.toSorted()]),
      [["tidy", 9, HELD]],
      ran.stdout,
    );
    assert.equal(commits_total, 1);
    assert.equal(commits[0]?.hash, git(place.at("work"), "rev-parse", "HEAD").trim());
    assert.deepEqual(changes?.added, []);
    const dangerous = handoff.filter(({ tier }) => tier === "dangerous").map(({ path }) => path);
    assert.deepEqual(dangerous.toSorted(), HELD);
    const report = await harness(place, ["report"]);
    assert.match(report.stdout, /tidy; the host obeys .*\.envrc/);
    assert.match(report.stdout, /! \.envrc: in commit [0-9a-f]{12}/);
  },
);

test("exec reports commits and what is only staged, including harmless ones", { skip: cannot }, async () => {
  await using place = await committedHousehold({ "kept.txt": "a\n" });
  const line = `echo b >> kept.txt; git commit -qam "one 'quoted'"; echo new > n; git add n; git commit -qm two
    echo x > .envrc; git add -f .envrc; rm .envrc`;
  const ended = await sandboxExec(place, ["--json", ...sh(line)]);
  const answer = answerOf(ended);
  assert.deepEqual(
    commitsIn(answer).map(({ subject, files, protected: held }) => [subject, files, held]),
    [
      ["one 'quoted'", 1, []],
      ["two", 1, []],
    ],
  );
  assert.deepEqual([answer["commits_total"], answer["staged"]], [2, [".envrc"]]);
  assert.match(ended.stderr, /note: commit [0-9a-f]{12} was made .*\(1 file\): one 'quoted'/);
  assert.match(ended.stderr, /note: staged by commands of the box: \.envrc/);
});

test("what the user had staged before is not attributed to the box", { skip: cannot }, async () => {
  await using place = await committedHousehold({ "kept.txt": "a\n" });
  await place.write("work/.envrc", "mine\n");
  git(place.at("work"), "add", "-f", ".envrc");
  if (process.getuid?.() === 0) execFileSync("chown", ["-R", "1000:1000", place.at("work")]);
  const ended = await sandboxExec(place, ["--json", ...sh("echo n > n; git add n")]);
  assert.deepEqual(answerOf(ended)["staged"], []);
});

test(
  "commit requests that nobody waits for do not keep a run alive, and none is done after its end",
  { skip: cannot },
  async () => {
    await using place = await committedHousehold({ "kept.txt": "a\n" });
    // Each asker is killed before its answer comes: its ask is under way all the same.
    const flood = `i=0; while [ $i -lt 120 ]; do i=$((i+1)); (timeout -s KILL 0.1 git commit -q --allow-empty -m "f$i" &) ; sleep 0.02; done; sleep 1000`;
    await place.write("work/test.sh", flood);
    const ran = await runLines(place, ["bash test.sh"], ["--json", "--max-time", "6s"]);
    const count = (): string => git(place.at("work"), "rev-list", "--count", "HEAD");
    const commits = count();
    assert.equal(ran.code, 3, ran.stderr);
    assert.equal(finishedOf(ran).commits_total, Number(commits) - 1);
    const next = await sandboxExec(place, sh("sleep 2"));
    assert.equal(next.code, 0, next.stderr);
    assert.equal(count(), commits);
  },
);

for (const isolation of ["overlay", "copy"])
  test(`git commit, stash and branch work as on the host in ${isolation}`, { skip: cannot }, async () => {
    await using place = await committedHousehold({ "kept.txt": "a\n" });
    await place.write(".gitconfig", '[user]\n\tname = "Ann \\"O\\" x\\\\y"\n\temail = ann@here\n');
    const line = `set -e; echo b >> kept.txt; git commit -qam two; git log -1 --format='%an <%ae>'
      echo c >> kept.txt; git stash -q; git stash list | wc -l; git stash pop -q; git checkout -q -b new; git branch --show-current
      git config user.name Repo; git commit -qam three; git log -1 --format=%an`;
    const ended = await sandboxExec(place, ["--isolation", isolation, ...sh(line)]);
    assert.equal(ended.stdout.toString(), 'Ann "O" x\\y <ann@here>\n1\nnew\nRepo\n', ended.stderr);
    assert.equal(git(place.at("work"), "rev-list", "--count", "HEAD"), "1\n");
  });

test("in bind a commit works, and in read-only mode it does not", { skip: cannot }, async () => {
  await using place = await committedHousehold({ "kept.txt": "a\n" });
  const line = "echo b >> kept.txt; git commit -qam two && git stash list";
  const read = await sandboxExec(place, ["--mode", "read-only", ...sh("git commit -q --allow-empty -m x")]);
  assert.notEqual(read.code, 0);
  const bound = await sandboxExec(place, sh(line));
  assert.equal(bound.code, 0, bound.stderr);
  assert.equal(git(place.at("work"), "log", "-1", "--format=%an <%ae>"), "harness <harness@localhost>\n");
});
