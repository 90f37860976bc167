import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { cp } from "node:fs/promises";
import test from "node:test";
import { git, noGit, repository } from "../boxes/workspace/repository.ts";
import { skip } from "../fixtures/engine.ts";
import { giveAway } from "../fixtures/give-away.ts";
import { scratch } from "../fixtures/scratch.ts";
import { bash, call, DONE, edit, inBox, project, read, work } from "./task.ts";

test("a server is started in the background, queried, fixed, and gone after the run", { skip }, async () => {
  await using place = await project("python-service");
  const ask = bash("curl -sS --retry 20 --retry-connrefused --retry-delay 1 http://127.0.0.1:8123/health");
  const start = call("bash", { command: "python3 service.py", background: true });
  const { code, answer, finished } = await work(place, {
    task: "GET /health of service.py gives 404. Fix it, and try it out.",
    steps: [
      start,
      [/j1/, ask],
      [/no such page/, call("bash", { job: "j1", kill: true })],
      [/j1|listening|killed/, read("service.py")],
      [
        /helath/,
        call("edit_file", { path: "service.py", edits: [{ old: "/helath", new: "/health", all: true }] }),
      ],
      [/2 places changed/, start],
      [/j2/, ask],
      [/^healthy/, DONE],
    ],
  });
  assert.deepEqual([code, answer, finished.denials], [0, DONE.text, []]);
  assert.deepEqual(finished.changes, { added: [], modified: ["service.py"], deleted: [], ignored: 0 });
  const [ended] = await inBox(place, "curl -sS http://127.0.0.1:8123/health");
  assert.equal(ended, 7, "nothing listens after the run");
});

test(
  "in a git repository the work is committed, and no hook of it runs",
  { skip: skip || noGit },
  async () => {
    await using place = await scratch();
    repository(place.at("work"));
    await using from = await project("python-median");
    await cp(from.at("work"), place.at("work"), { recursive: true });
    const hook = "#!/bin/sh\ntouch hooked\n";
    for (const name of ["pre-commit", "commit-msg", "post-commit"])
      await place.write(`work/.git/hooks/${name}`, hook, 0o755);
    git(place.at("work"), "add", "-A");
    git(place.at("work"), "-c", "core.hooksPath=/dev/null", "commit", "-qm", "before");
    await giveAway(place.at("work"));
    const { code, answer, finished, ran, results } = await work(place, {
      task: "Fix the median in stats.py and commit it.",
      steps: [
        bash("git status --short && git log --oneline"),
        [/before/, read("stats.py")],
        [
          /def median/,
          edit(
            "stats.py",
            "    return ordered[middle]",
            "    return mean(ordered[(len(ordered) - 1) // 2 : middle + 1])",
          ),
        ],
        [
          /1 place changed/,
          bash(
            "python3 -m unittest 2>&1 && git add -A && git commit -m 'Mend the median' && git status --short",
          ),
        ],
        [/Mend the median/, bash("git log -1 --format=%s --name-only")],
        [/Mend the median\n\nstats\.py/, DONE],
      ],
    });
    assert.deepEqual([code, answer], [0, DONE.text], `${ran.stderr}${results.join("\n---\n")}`);
    assert.deepEqual(finished.denials, []);
    const safe = ["-c", `safe.directory=${place.at("work")}`, "-C", place.at("work")];
    const said = execFileSync("git", [...safe, "log", "--format=%s", "--name-only", "-1"], {
      encoding: "utf8",
    });
    assert.equal(said, "Mend the median\n\nstats.py\n");
    assert.ok(!existsSync(place.at("work/hooked")));
    assert.equal((await inBox(place, "python3 -m unittest"))[0], 0);
  },
);
