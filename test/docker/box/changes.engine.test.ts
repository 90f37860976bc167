import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readdir } from "node:fs/promises";
import { before, describe, test } from "node:test";
import { type Lists, listsOf, NOTHING } from "../../fixtures/changes.ts";
import { skip } from "../../fixtures/engine.ts";
import { scratch, type Scratch } from "../../fixtures/scratch.ts";
import { leftOver, noOverlay, openBox } from "./open-box.ts";

const shell = (line: string): string => execFileSync("bash", ["-ec", line]).toString();

/** A tree with one of everything; a repository's own state as one text, to see that nothing of it moved. */
const TREE = `
  mkdir -p a/deep/er empty keep/one swap "$(printf 'new\\nline')" many
  echo f >file; echo x >run; chmod 640 run; echo g >a/g; echo h >a/deep/h; echo i >a/deep/er/i
  echo 1 >keep/one/1; echo 2 >keep/2; echo s >swap/s; echo t >turn; echo same >same; echo big >late
  ln -s file link; ln file hard; mkfifo pipe; echo b >"$(printf 'b\\377d')"; echo n >"$(printf 'new\\nline')/n"
  for n in 1 2 3 4 5 6 7 8 9; do echo $n >many/$n; done`;

const stateOf = (folder: string): string =>
  shell(
    `cd '${folder}' && find . -printf '%p %y %m %i %s %T@ %l\\n' | sort && find . -type f -path '*/file' -exec cat {} + && cat */a/g`,
  );

/** The same tree in each of these folders: one box is enough to see many things done. */
async function treesIn(folders: readonly string[]): Promise<Scratch> {
  const place = await scratch({ "w/.harness-test": "" });
  const made = folders.map((folder) => `mkdir ${folder}; cd ${folder}; ${TREE.trim()}; cd ..`);
  shell(`cd '${place.at("w")}' && rm .harness-test\n${made.join("\n")}`);
  return place;
}

type Case = readonly [what: string, line: string, changes: Partial<Lists>];

/** What every isolation tells alike. */
const ALIKE: readonly Case[] = [
  ["nothing", "true", {}],
  ["reading", "cat file a/g; ls -R; git status || true", {}],
  [
    "a new file, a changed one, a deleted one",
    "echo 1 >new; echo 2 >>same; rm a/g",
    {
      added: ["new"],
      modified: ["same"],
      deleted: ["a/g"],
    },
  ],
  ["a mode", "chmod 600 run", { modified: ["run"] }],
  ["a folder deleted", "rm -r a", { deleted: ["a/deep/er/i", "a/deep/h", "a/g"] }],
  [
    "a folder deleted and made again, empty",
    "rm -r a; mkdir a",
    { deleted: ["a/deep/er/i", "a/deep/h", "a/g"] },
  ],
  [
    "a folder deleted and made again with other files",
    "rm -r a; mkdir -p a/deep; echo 2 >a/deep/new",
    {
      added: ["a/deep/new"],
      deleted: ["a/deep/er/i", "a/deep/h", "a/g"],
    },
  ],
  [
    "a folder renamed",
    "mv a z",
    {
      added: ["z/deep/er/i", "z/deep/h", "z/g"],
      deleted: ["a/deep/er/i", "a/deep/h", "a/g"],
    },
  ],
  [
    "a folder in the place of another",
    "rm -r keep; mv a keep",
    {
      added: ["keep/deep/er/i", "keep/deep/h", "keep/g"],
      deleted: ["a/deep/er/i", "a/deep/h", "a/g", "keep/2", "keep/one/1"],
    },
  ],
  ["a file for a folder", "rm -r swap; echo >swap", { added: ["swap"], deleted: ["swap/s"] }],
  ["a folder for a file", "rm turn; mkdir turn; echo >turn/in", { added: ["turn/in"], deleted: ["turn"] }],
  ["a link for a file", "rm turn; ln -s file turn", { modified: ["turn"] }],
  ["another target of a link", "ln -sfn run link", { modified: ["link"] }],
  ["a link deleted", "rm link", { deleted: ["link"] }],
  ["a new link that leads out", "ln -s /etc/passwd out", { added: ["out"] }],
  ["an empty folder, made and removed", "mkdir new; rmdir empty", {}],
  [
    "a pipe and a socket",
    `mkfifo p; python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("s")'`,
    {
      added: ["p", "s"],
      odd: ["p", "s"],
    },
  ],
  ["a pipe deleted", "rm pipe", { deleted: ["pipe"] }],
  [
    "names that are not text",
    `echo >$'b\\377d'; echo >$'new\\nline/n'; echo >$'x\\n\\200'`,
    {
      added: ["x\n\uDC80"],
      modified: ["b\uDCFFd", "new\nline/n"],
    },
  ],
  [
    "all but one of a folder",
    "rm many/[1-8]; echo 0 >many/0",
    {
      added: ["many/0"],
      deleted: [1, 2, 3, 4, 5, 6, 7, 8].map((n) => `many/${n}`),
    },
  ],
  ["a file made and deleted", "echo >gone; rm gone; mkdir -p g/h; echo >g/h/i; rm -r g", {}],
];

/** What only contents tell: a layer compares them, the runner's snapshot sees that something was done. */
const BY_CONTENT: readonly Case[] = [
  ["touched", "touch file a/deep/h; touch -d 1999-01-01 run", {}],
  ["written with the same bytes", "echo f >file; cp --remove-destination file t && cat t >file; rm t", {}],
  ["mode there and back", "chmod 777 run; chmod 640 run", {}],
  ["deleted and made again", "rm same; echo same >same", {}],
  ["a file replaced by a folder and back", "rm turn; mkdir turn; echo >turn/x; rm -r turn; echo t >turn", {}],
  ["a folder replaced by a file and back", "rm -r swap; echo >swap; rm swap; mkdir swap; echo s >swap/s", {}],
  ["a folder renamed there and back", "mv a z; mv z a", {}],
  ["a folder deleted and made again as it was", "cp -a a /tmp/a; rm -r a; cp -a /tmp/a a; rm -r /tmp/a", {}],
  ["of the same size", "echo e >turn", { modified: ["turn"] }],
  [
    "of the same size and time",
    "touch -r turn /tmp/t; echo e >turn; touch -r /tmp/t turn",
    { modified: ["turn"] },
  ],
  ["another name of a file", "ln run run2", { added: ["run2"] }],
  [
    "one of two names of a file: the other keeps its content",
    "echo 2 >>file; grep -x f hard",
    { modified: ["file"] },
  ],
  ["pipes that stay", "mv a z; mv z a; chmod 600 pipe; chmod 644 pipe", {}],
];

const SCENES = [
  ["overlay", [...ALIKE, ...BY_CONTENT]],
  ["copy", ALIKE],
  ["bind", ALIKE],
] as const;

/** A copy has no odd files, and in the folder itself those of the host are covered, so none can be deleted. */
const isFor = (isolation: string, what: string): boolean =>
  isolation === "overlay" || what !== "a pipe deleted";

const PATHS = ["added", "modified", "deleted", "odd"] as const;

/** Of all that changed, what did so in this folder. */
const within = (folder: string, all: Lists): Lists => {
  const here = (paths: readonly string[]): readonly string[] =>
    paths.filter((each) => each.startsWith(`${folder}/`)).map((each) => each.slice(folder.length + 1));
  return { ...all, ...Object.fromEntries(PATHS.map((which) => [which, here(all[which])])) };
};

for (const [isolation, every] of SCENES)
  describe(isolation, { skip: isolation === "overlay" ? noOverlay : skip }, () => {
    const cases = every.filter(([what]) => isFor(isolation, what));
    const folders = cases.map((_case, at) => `case-${at}`);
    let told: Lists = NOTHING;
    before(async () => {
      await using place = await treesIn(folders);
      const workspace = place.at("w");
      let state = "";
      {
        await using opened = await openBox(place, { isolation });
        state = stateOf(workspace);
        for (const [at, [, line]] of cases.entries()) await opened.sh(`cd ${folders[at]}; ${line}`);
        told = await listsOf(opened.box.changes());
      }
      if (isolation !== "bind") assert.equal(stateOf(workspace), state);
      assert.deepEqual(await leftOver(workspace), []);
      assert.deepEqual(isolation === "overlay" ? await readdir(place.at("state/boxes")) : [], []);
    });

    for (const [at, [what, , expected]] of cases.entries())
      test(what, () => assert.deepEqual(within(folders[at] ?? "", told), { ...NOTHING, ...expected }));

    test("and nothing else", () => {
      const expected = cases.flatMap(([, , lists]) => PATHS.flatMap((which) => lists[which] ?? []));
      assert.equal(PATHS.flatMap((which) => told[which]).length, expected.length);
    });
  });

for (const [isolation, line, expected] of [
  ["overlay", "true", {}],
  ["copy", "true", {}],
  ["bind", "true", {}],
  ["overlay", "cd case; mv a ..; rm -r ../case", { added: ["a/deep/er/i", "a/deep/h", "a/g"] }],
] as const)
  test(
    `${isolation}, at the workspace's top: ${line}`,
    {
      skip: isolation === "overlay" ? noOverlay : skip,
    },
    async () => {
      await using place = await treesIn(["case"]);
      await using opened = await openBox(place, { isolation });
      await opened.sh(line);
      const { deleted, ...lists } = await listsOf(opened.box.changes());
      assert.deepEqual({ ...lists, deleted: [] }, { ...NOTHING, ...expected });
      assert.equal(deleted.length > 0, line !== "true");
    },
  );
