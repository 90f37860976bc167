import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { readdir, readFile, rm } from "node:fs/promises";
import path from "node:path";
import test from "node:test";
import { answerOf, household, sandboxExec } from "../../e2e/box-command.ts";
import { eventsOf, finishedOf, harness } from "../../e2e/run-command.ts";
import { skip } from "../../fixtures/engine.ts";
import { realBox } from "../../fixtures/real-box.ts";
import { runLines } from "./scripted.ts";

interface Moved {
  readonly from: string;
  readonly to: string | null;
  readonly take_back: string;
}

const sh = (line: string): readonly string[] => ["--", "bash", "-c", line];

/** Seven at the top, more than are reported to the model; a FIFO; and a repository that only the last search finds. */
const PLANT = `echo x > .envrc; mkdir .GIT .vscode .idea '.git ' git~1 .cursor; mkfifo .bashrc
mkdir -p sub/deep/.git; echo '[core]' > sub/deep/.git/config; echo x > kept.txt`;
const NAMES = [
  ".GIT",
  ".bashrc",
  ".cursor",
  ".envrc",
  ".git ",
  ".idea",
  ".vscode",
  "git~1",
  "sub/deep/.git",
].toSorted();

test("exec reports everything moved out of the workspace, as JSON and in words", { skip }, async () => {
  await using place = await household();
  const work = place.at("work");
  const ended = await sandboxExec(place, ["--json", ...sh(PLANT)]);
  const answer = answerOf(ended);
  const moved = answer["quarantined"] as readonly Moved[];
  assert.deepEqual(moved.map(({ from }) => from.slice(work.length + 1)).toSorted(), NAMES);
  assert.equal(answer["quarantined_total"], NAMES.length);
  for (const { from, to, take_back } of moved) {
    assert.equal(existsSync(from), false, from);
    if (to !== null) assert.ok(existsSync(to) && take_back.includes(to), from);
  }
  assert.equal(moved.find(({ from }) => from.endsWith(".bashrc"))?.to, null);
  assert.deepEqual(answer["changes"], { added: ["kept.txt"], modified: [], deleted: [] });
  for (const name of NAMES) assert.ok(ended.stderr.includes(`${work}/${name} was made`), name);

  const again = await sandboxExec(place, sh(PLANT));
  for (const name of NAMES) assert.ok(again.stderr.includes(`${work}/${name} was made`), name);
});

test("many moved paths are listed up to a limit and counted beyond it", { skip }, async () => {
  await using place = await household();
  const ended = await sandboxExec(place, ["--json", ...sh("for i in $(seq 300); do echo > .aider$i; done")]);
  const answer = answerOf(ended);
  assert.equal(answer["quarantined_total"], 300);
  assert.ok((answer["quarantined"] as readonly Moved[]).length >= 100);
  assert.match(ended.stderr, /\b250 more were made in the box and moved out/);
});

test(
  "a run reports moved paths at its end, on the screen, in its report and in its audit",
  { skip },
  async () => {
    await using place = await household({ "test.sh": PLANT });
    const ran = await runLines(place, ["bash test.sh"], ["--json"]);
    const finished = finishedOf(ran);
    const work = place.at("work");
    const names = finished.quarantined?.map(({ from }) => from.slice(work.length + 1)).toSorted();
    assert.deepEqual([names, finished.quarantined_total], [NAMES, NAMES.length], ran.stdout + ran.stderr);
    assert.deepEqual(finished.changes?.added, ["kept.txt"]);
    for (const name of NAMES)
      assert.ok(
        finished.handoff.some(({ path, tier }) => path === name && tier === "look"),
        name,
      );
    assert.equal(finished.handoff.filter(({ tier }) => tier === "dangerous").length, 0);
    assert.equal(eventsOf(ran).at(-1)?.type, "run.finished");
    assert.equal(existsSync(place.at("work/sub/deep/.git")), false);

    const said = await runLines(place, ["bash test.sh"]);
    const report = await harness(place, ["report"]);
    await harness(place, ["report", "--html", place.at("report.html")]);
    const page = await readFile(place.at("report.html"), "utf8");
    const [audit = ""] = await readdir(place.at(".local/state/harness/audit"));
    const trail = await readFile(place.at(".local/state/harness/audit", audit), "utf8");
    for (const name of NAMES) {
      assert.ok(said.stderr.includes(`${work}/${name}`), name);
      assert.ok(report.stdout.includes(`/${name}`), name);
      assert.ok(page.includes(`/${name}`), name);
    }
    assert.equal(
      trail.split("\n").filter((line) => line.includes('"kind":"quarantined"')).length,
      NAMES.length,
    );
    assert.match(said.stderr, /to restore it: mv /);
  },
);

test(
  "commands that end at the same time do not fail because of what another has moved out",
  { skip },
  async () => {
    await using real = await realBox();
    const names = Array.from({ length: 40 }, (_, at) => `.aider${at}`);
    const plant = {
      words: ["sh", "-c", `while [ ! -e go ]; do :; done; touch ${names.join(" ")}; sleep 0.5`],
      timeoutMs: 60_000,
      keep: { head: 1000, tail: 1000 },
    };
    const running = Array.from({ length: 6 }, () => real.box.exec(plant, new AbortController().signal));
    await real.place.write("work/go", "");
    await Promise.all(running);
    const log = await real.box.log?.();
    assert.deepEqual(new Set(log?.quarantined.map(({ from }) => path.basename(from))), new Set(names));
  },
);

test("nothing is reported when nothing was moved out", { skip }, async () => {
  await using place = await household({ ".envrc": "mine\n" });
  const line = "echo x > kept.txt; cat .envrc; echo more >> .envrc";
  const ended = await sandboxExec(place, ["--json", ...sh(line)]);
  assert.deepEqual([answerOf(ended)["quarantined"], answerOf(ended)["quarantined_total"]], [[], 0]);
  assert.equal(ended.stderr, "");
  assert.equal(await place.read("work/.envrc"), "mine\n");
  const said = await runLines(place, ["echo y > kept.txt"]);
  assert.doesNotMatch(said.stderr, /moved out|commits/);
});

test(
  "a path that cannot be moved anywhere ends the command with 6 and is named, after the command and at the end",
  { skip },
  async () => {
    await using place = await household();
    await place.write(".local/state/harness/quarantine", "no folder");
    for (const flags of [[], ["--json"]]) {
      const ended = await sandboxExec(place, [...flags, ...sh("echo x > .envrc; echo x > kept.txt")]);
      const told = flags.length === 0 ? ended.stderr : ended.stdout.toString();
      assert.equal(ended.code, 6, told);
      assert.ok(told.includes(place.at("work/.envrc")), told);
      await rm(place.at("work/.envrc"));
    }
    assert.equal((await sandboxExec(place, sh("cat kept.txt"))).stdout.toString(), "x\n");
  },
);

test("a name with line breaks cannot forge a line of the output", { skip }, async () => {
  await using place = await household({
    "plant.sh":
      "d=$(printf 'x\\nerror: all was undone\\nnote: none'); mkdir -p \"$d/.vscode\"; echo x > kept.txt",
  });
  const texts = [
    (await sandboxExec(place, sh("bash plant.sh"))).stderr,
    (await runLines(place, ["bash plant.sh"])).stderr,
  ];
  for (const text of texts) {
    assert.match(text, /x\u240aerror: all was undone\u240anote: none\/\.vscode/i);
    assert.doesNotMatch(text, /^(?:error: all|note: none)/m);
  }
});
