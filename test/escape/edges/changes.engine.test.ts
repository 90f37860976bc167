import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import test from "node:test";
import type { RunChanges } from "../../../src/core/events.ts";
import type { Handoff } from "../../../src/core/run-record.ts";
import { household } from "../../e2e/box-command.ts";
import { git, noGit } from "../../boxes/workspace/repository.ts";
import { skip as noEngine } from "../../fixtures/engine.ts";
import { type Measured, measured } from "../../fixtures/measured.ts";
import { giveAway } from "../../fixtures/give-away.ts";
import type { Scratch } from "../../fixtures/scratch.ts";

/** What a run has changed, where it is a great deal or somebody would rather not have it listed. */

const skip = noEngine || noGit;
const MAX_MIB = 300;
const MAX_JSON = 2 ** 20 + 1000;

interface Finished {
  readonly changes: RunChanges;
  readonly handoff: readonly Handoff[];
  readonly handoff_left_out?: Readonly<Record<"dangerous" | "look", number>>;
}

/** A script that a scripted model has run, and how the run ended. */
async function ranOn(
  place: Scratch,
  script: string,
  ...flags: readonly string[]
): Promise<Measured & Finished> {
  await place.write("work/go.sh", script);
  const reply = [{ call: "bash", args: { command: "bash go.sh" } }];
  const file = await place.write("s.jsonl", `${JSON.stringify({ reply })}\n{"reply":["done"]}\n`);
  const words = [
    "run",
    "--json",
    "--intent",
    "change",
    "--provider",
    "scripted",
    "--model",
    file,
    ...flags,
    "x",
  ];
  const ran = await measured(place, words, place.at("work"));
  assert.equal(ran.code, 0, ran.stdout.slice(-800) + ran.stderr);
  const last = JSON.parse(ran.stdout.trimEnd().split("\n").at(-1) ?? "") as Finished;
  return { ...ran, ...last };
}

const FILES = {
  "src/a.c": "a\n",
  "src/b.c": "b\n",
  "keep/c": "c\n",
  "lib/inner/x": "x\n",
  "lib/inner/y": "y\n",
};

async function committed(files: Readonly<Record<string, string>> = FILES): Promise<Scratch> {
  const place = await household(files);
  const work = place.at("work");
  git(work, "init", "-q");
  for (const name of Object.keys(files).filter((each) => !each.startsWith("lib/"))) git(work, "add", name);
  git(work, "commit", "-q", "-m", "first");
  git(path.join(work, "lib/inner"), "init", "-q");
  git(path.join(work, "lib/inner"), "add", "x");
  await giveAway(work);
  return place;
}

const SPOIL = `printf '*\\n' > .gitignore; mkdir -p ~/.config/git; printf '*\\n' > ~/.config/git/ignore
  git config --global core.excludesFile ~/.config/git/ignore || true
  echo 1 >> src/a.c; rm src/b.c keep/c; echo 1 >> lib/inner/x; echo 1 >> lib/inner/y; mkdir -p build; echo o > build/o`;

const LISTED: RunChanges = {
  added: [".gitignore"],
  modified: ["lib/inner/x", "src/a.c"],
  deleted: ["keep/c", "src/b.c"],
  ignored: 2,
};

/** With full access the box may change the index, which is reported. */
const own = (list: readonly string[]): readonly string[] => list.filter((each) => !each.startsWith(".git/"));

for (const [what, flags, more] of [
  ["in the folder itself", [], "true"],
  [
    "with full access, where git can be told to forget them",
    ["--mode", "danger-full-access"],
    "git rm -rq --cached src keep",
  ],
  ["in a layer", ["--isolation", "overlay"], "git rm -rq --cached src keep"],
] as const)
  test(`files tracked by git are listed whatever the ignore rules say, ${what}`, { skip }, async () => {
    await using place = await committed();
    const { changes } = await ranOn(place, `${more}; ${SPOIL}`, ...flags);
    assert.deepEqual({ ...changes, added: own(changes.added), modified: own(changes.modified) }, LISTED);
  });

test(
  "tracked files are also listed in a folder below the repository's top, and the box user's rules hide nothing",
  { skip },
  async () => {
    await using place = await household();
    git(place.path, "init", "-q");
    await place.write("work/kept", "k\n");
    git(place.path, "add", "work/kept");
    await giveAway(place.at("work"));
    const { changes } = await ranOn(place, "echo more >> kept; echo kept > .gitignore");
    assert.deepEqual(changes, { added: [".gitignore"], modified: ["kept"], deleted: [], ignored: 0 });
    const line = "mkdir -p ~/.config/git; echo '*' > ~/.config/git/ignore; echo n > new";
    assert.deepEqual((await ranOn(place, line)).changes.added, ["new"]);
  },
);

/** So many files with long names in so many folders, the one in the other. */
function fill(top: string, files: number, deep: number): void {
  const script = `import os,sys
os.mkdir(sys.argv[1]); fd = os.open(sys.argv[1], os.O_RDONLY)
for _ in range(int(sys.argv[3])):
    os.mkdir("d" * 250, dir_fd=fd); fd = os.open("d" * 250, os.O_RDONLY, dir_fd=fd)
for n in range(int(sys.argv[2])):
    os.close(os.open("%0200d" % n, os.O_CREAT | os.O_WRONLY, dir_fd=fd))`;
  execFileSync("python3", ["-c", script, top, String(files), String(deep)]);
}

const noPython = ((): string | false => {
  try {
    execFileSync("python3", ["--version"]);
    return false;
  } catch {
    return "no python3 on this machine, which makes the files of this test";
  }
})();

for (const [what, files, deep] of [
  ["many long paths", 6000, 14],
  ["very many names", 12_000, 0],
] as const)
  test(
    `a list of ${what} is cut at its size limit and takes little memory`,
    { skip: skip || noPython },
    async () => {
      await using place = await household();
      fill(place.at("work/a"), files, deep);
      await giveAway(place.at("work"));
      const words = ["sandbox", "exec", "--json", "--", "mv", "a", "b"];
      const ran = await measured(place, words, place.at("work"));
      assert.equal(ran.code, 0, ran.stderr);
      const { changes } = JSON.parse(ran.stdout) as { changes: RunChanges };
      assert.ok(Buffer.byteLength(JSON.stringify(changes)) < MAX_JSON);
      const { added, deleted, left_out: left } = changes;
      assert.ok(added.length + deleted.length > 100);
      assert.deepEqual(
        [added.length + (left?.added ?? 0), deleted.length + (left?.deleted ?? 0)],
        [files, files],
      );
      assert.ok(ran.peak > 0 && ran.peak < MAX_MIB, `${ran.peak} MiB`);
    },
  );

test("files that the host executes are found among all changes and listed first", { skip }, async () => {
  await using place = await household();
  await mkdir(place.at("work/a"));
  for (let at = 0; at < 2400; at += 1)
    await writeFile(place.at(`work/a/${"m".repeat(240)}${at}.sh`), "", { mode: 0o755 });
  await giveAway(place.at("work"));
  const command =
    "mv a b; mkdir -p z/last; echo x > z/last/.envrc; ln -s /etc/passwd z/last/link; echo x > Makefile";
  const { changes, handoff, handoff_left_out: left } = await ranOn(place, command, "--isolation", "overlay");
  assert.ok(Buffer.byteLength(JSON.stringify({ changes, handoff })) < 2 * MAX_JSON);
  assert.ok(!changes.added.some((each) => each.startsWith("z/")), "cut before them");
  assert.deepEqual(
    handoff.slice(0, 2).map(({ path: at, tier }) => [at, tier]),
    [
      ["z/last/.envrc", "dangerous"],
      ["z/last/link", "dangerous"],
    ],
  );
  const looks = handoff.filter(({ tier }) => tier === "look").length;
  assert.deepEqual(left, { dangerous: 0, look: 2401 - looks });
});
