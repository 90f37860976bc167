// slow: it does on a remote engine what vet, demo and env do here; far-session.engine.test.ts has a run
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import test from "node:test";
import { promisify } from "node:util";
import type { VetReport } from "../../src/core/behaviour.ts";
import { engine } from "../fixtures/engine-api.ts";
import { overNetwork } from "../fixtures/engine-over-network.ts";
import { skip } from "../fixtures/engine.ts";
import { giveAway } from "../fixtures/give-away.ts";
import { scratch, type Scratch } from "../fixtures/scratch.ts";
import { answerOf, household, sandboxExec } from "./box-command.ts";
import { harness, type Ran } from "./run-command.ts";

/** What has its folder made by a box is done by one of an engine elsewhere, too: nothing of this machine is mounted there. */

const run = promisify(execFile);
const NONE = { env: { DOCKER_HOST: "unix:///run/none.sock" } };

const FILES = {
  "package.json": JSON.stringify({
    name: "bad",
    version: "1.0.0",
    scripts: { postinstall: "node post.js" },
  }),
  "post.js":
    'require("fs").mkdirSync(".git/hooks", { recursive: true });\nrequire("fs").writeFileSync(".git/hooks/pre-commit", "x");\n',
};

async function repository(): Promise<Scratch> {
  const place = await scratch();
  await mkdir(place.at("work"));
  for (const [name, text] of Object.entries(FILES)) await place.write(`work/bad/${name}`, text);
  await giveAway(place.at("work"));
  return place;
}

const reportOf = (ran: Ran): VetReport => {
  assert.match(ran.stdout, /^\{/, ran.stderr);
  return JSON.parse(ran.stdout) as VetReport;
};

/** Neither on this machine nor on that one. */
async function nothingLeft(place: Scratch): Promise<void> {
  const folders = [".cache/harness/vet/boxes", ".local/state/harness/boxes", ".local/state/harness/layers"];
  const left = folders.flatMap((name) => (existsSync(place.at(name)) ? readdirSync(place.at(name)) : []));
  assert.deepEqual(
    left.filter((name) => !name.startsWith(".")),
    [],
  );
  const filters = { label: [`dev.harness.state=${place.at(".local/state/harness")}`] };
  const { Volumes: volumes } = await engine.api.listVolumes({ filters });
  assert.deepEqual([volumes ?? [], await engine.api.listContainers({ all: true, filters })], [[], []]);
}

test("an archive is unpacked, inspected and run remotely, and nothing of it stays", { skip }, async () => {
  await using far = await overNetwork();
  await using place = await repository();
  await run("tar", ["-czf", place.at("bad.tgz"), "-C", place.at("work"), "bad"]);
  const ran = await harness(place, ["vet", "--json", "--engine", far.host, place.at("bad.tgz")], NONE);
  const { verdict, repository: told, steps, findings } = reportOf(ran);
  assert.deepEqual([ran.code, verdict, told.kind, told.files], [40, "hostile", "archive", 2], ran.stderr);
  assert.ok(steps.length > 0);
  assert.ok(
    findings.some(({ rule }) => rule.startsWith("run.")),
    JSON.stringify(findings),
  );
  await nothingLeft(place);
});

test("two commits are compared remotely", { skip }, async () => {
  await using far = await overNetwork();
  await using place = await repository();
  const git = (...words: readonly string[]) =>
    run("git", [
      "-C",
      place.at("work/bad"),
      "-c",
      "user.name=A",
      "-c",
      "user.email=a@b.c",
      "-c",
      "safe.directory=*",
      ...words,
    ]);
  await git("init", "-q");
  await git("add", "package.json");
  await git("commit", "-qm", "one");
  await git("add", "-A");
  await git("commit", "-qm", "two");
  await giveAway(place.at("work"));
  const words = ["vet", "--json", "--engine", far.host, "--diff", "HEAD~1..HEAD", place.at("work/bad")];
  const ran = await harness(place, words, NONE);
  const { repository: told, unseen } = reportOf(ran);
  assert.deepEqual([told.kind, told.files], ["git", 2], ran.stderr);
  assert.match(unseen.join("\n"), /1 files differ/);
  await nothingLeft(place);
});

test("the demo runs remotely, and its copy is removed", { skip }, async () => {
  await using far = await overNetwork();
  await using place = await scratch({ "tmp/.keep": "", "work/.keep": "" });
  const start = { env: { ...NONE.env, TMPDIR: place.at("tmp") } };
  const ran = await harness(place, ["demo", "--engine", far.host], start);
  assert.equal(ran.code, 0, ran.stderr);
  assert.match(ran.stdout, /^The test passes now\./);
  assert.deepEqual(
    readdirSync(place.at("tmp")).filter((name) => name.startsWith("harness-")),
    [],
  );
  await nothingLeft(place);
});

test("an environment is installed remotely and used by the boxes there", { skip }, async () => {
  await using far = await overNetwork();
  await using place = await household({ "deps/mine.txt": "the host's" });
  const setup = [
    { run: "echo real > deps/lib.txt; echo kept > /var/cache/harness/kept.txt; echo stray > stray.txt" },
  ];
  await place.write(".config/harness/environments/own.json", JSON.stringify({ folders: ["deps"], setup }));
  const env = ["--env", "own", "--engine", far.host];
  const built = await harness(place, ["env", "build", "--json", ...env], NONE);
  assert.equal(built.code, 0, built.stderr);
  assert.partialDeepStrictEqual(JSON.parse(built.stdout), { how: "built", lost: 1 });
  const line = "cat deps/lib.txt /var/cache/harness/kept.txt; ls deps stray.txt; echo new > out.txt";
  for (let times = 0; times < 2; times += 1) {
    const { stdout, changes } = answerOf(
      await sandboxExec(
        place,
        ["--json", ...env, "--", "sh", "-c", `${line}; echo evil > deps/lib.txt`],
        NONE,
      ),
    );
    assert.deepEqual(
      [stdout, changes],
      ["real\nkept\ndeps:\nlib.txt\n", { added: ["out.txt"], modified: [], deleted: [] }],
    );
  }
  assert.deepEqual(readdirSync(place.at("work")), ["deps"]);
  assert.deepEqual(readdirSync(place.at("work/deps")), ["mine.txt"]);
  const removed = await harness(place, ["env", "rm", "--all", "--engine", far.host], NONE);
  assert.equal(removed.code, 0, removed.stderr);
  await nothingLeft(place);
});
