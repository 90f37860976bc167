import assert from "node:assert/strict";
import { cp, link, mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import test, { describe } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { git, noGit } from "../../boxes/workspace/repository.ts";
import { noOverlay } from "../../docker/box/open-box.ts";
import { household, sandboxExec } from "../../e2e/box-command.ts";
import { boxesFor, goneWithin } from "../../e2e/frozen.ts";
import { approve, DONE, endOf, FAR, FINE, park, PARKED, sessionOf } from "../../e2e/parked.ts";
import { bash, finishedOf, harness, type Model, startModel } from "../../e2e/run-command.ts";
import { skip } from "../../fixtures/engine.ts";
import { giveAway } from "../../fixtures/give-away.ts";
import type { Scratch } from "../../fixtures/scratch.ts";

/** A mount protects what it lies over, not the name: the host gives that name to something else. */

const FILES = {
  ".envrc": "mine\n",
  ".git/config": "[core]\n",
  ".git/HEAD": "ref: refs/heads/main\n",
  "sub/.git/config": "[core]\n",
  "sub/.git/HEAD": "ref: refs/heads/main\n",
  "plain.txt": "plain\n",
};

const PLANTED = "planted-by-the-box";

/** Writes to the path as long as it runs, ten times as often as the box is looked at. */
const attack = (target: string): string =>
  `touch begun; for i in $(seq 4000); do echo ${PLANTED} >> ${target}; sleep 0.01; done 2> /dev/null; true`;

const planted = async (place: Scratch, target: string): Promise<number> =>
  (await readFile(place.at("work", target), "utf8")).split(PLANTED).length - 1;

/** A burst cannot be kept from it, least of all where others compute; the attack as a whole makes thousands. */
const BURST = 400;

interface Replacing {
  readonly target: string;
  readonly named: string;
  readonly steps: (at: Scratch["at"]) => Promise<unknown>;
}

const renamed = async (file: string): Promise<void> => {
  await writeFile(`${file}.new`, "mine, too\n");
  await giveAwayFile(`${file}.new`);
  await rename(`${file}.new`, file);
};
const moved = async (folder: string): Promise<void> => {
  await rename(folder, `${folder}.old`);
  await cp(`${folder}.old`, folder, { recursive: true });
};
/** As an editor of the box's user has it. */
const giveAwayFile = async (file: string): Promise<void> => {
  const { chown } = await import("node:fs/promises");
  if (process.getuid?.() === 0) await chown(file, 1000, 1000);
};

const WAYS: Readonly<Record<string, Replacing>> = {
  "a file, by a rename over it": {
    target: ".envrc",
    named: ".envrc",
    steps: (at) => renamed(at("work/.envrc")),
  },
  "a file, moved away and made anew": {
    target: ".envrc",
    named: ".envrc",
    steps: async (at) => {
      await rename(at("work/.envrc"), at("work/.envrc.old"));
      await writeFile(at("work/.envrc"), "mine, too\n");
      await giveAwayFile(at("work/.envrc"));
    },
  },
  "a file, removed and linked back: the same inode": {
    target: ".envrc",
    named: ".envrc",
    steps: async (at) => {
      await link(at("work/.envrc"), at("work/saved"));
      await rm(at("work/.envrc"));
      await rename(at("work/saved"), at("work/.envrc"));
    },
  },
  "a folder, moved away and copied back": {
    target: ".git/config",
    named: ".git",
    steps: async (at) => {
      await moved(at("work/.git"));
      await giveAway(at("work/.git"));
    },
  },
  "a folder, removed and made anew": {
    target: ".git/config",
    named: ".git",
    steps: async (at) => {
      await rm(at("work/.git"), { recursive: true });
      await mkdir(at("work/.git"));
      await writeFile(at("work/.git/config"), "[core]\n");
      await giveAway(at("work"));
    },
  },
  "a folder above a protected one, moved away and copied back": {
    target: "sub/.git/config",
    named: "sub",
    steps: async (at) => {
      await moved(at("work/sub"));
      await giveAway(at("work"));
    },
  },
};

describe("the host replaces a path while a command runs", { concurrency: 2 }, () => {
  for (const [way, { target, named, steps }] of Object.entries(WAYS))
    test(`${way}: the box ends, and the path is reported`, { skip }, async () => {
      await using place = await household(FILES);
      const state = { replaced: Promise.resolve<unknown>(undefined) };
      const { code, stderr } = await sandboxExec(place, ["--", "bash", "-c", attack(target)], {
        whenMade: [place.at("work/begun"), () => (state.replaced = steps(place.at))],
      });
      await state.replaced;
      const writes = await planted(place, target);
      assert.ok(writes <= BURST, `${writes} writes`);
      assert.equal(code, 125, stderr);
      assert.match(stderr, /protected path was replaced from outside/);
      // Twice: why it ended, and what to look at.
      const file = place.at("work", named);
      assert.ok(stderr.split(file).length > 2, stderr);
      assert.match(stderr, /note: [^\n]*check it before you use it/);
    });
});

test(
  "a workspace that was moved away ends the box, and what is there now is left alone and reported",
  { skip },
  async () => {
    await using place = await household({ "a.txt": "a" });
    const line =
      "touch begun; for i in $(seq 200); do [ -e moved ] && break; sleep 0.05; done; echo planted > .envrc";
    const { code, stderr } = await sandboxExec(place, ["--", "bash", "-c", line], {
      whenMade: [
        place.at("work/begun"),
        async () => {
          await rename(place.at("work"), place.at("away"));
          await mkdir(place.at("work/.vscode"), { recursive: true });
          await writeFile(place.at("work/.vscode/tasks.json"), "mine");
          await writeFile(place.at("away/moved"), "");
        },
      ],
    });
    assert.equal(await readFile(place.at("work/.vscode/tasks.json"), "utf8"), "mine");
    assert.equal(await readFile(place.at("away/.envrc"), "utf8"), "planted\n");
    assert.equal(code, 125, stderr);
    assert.match(stderr, /was moved or replaced while the box was open, so the folder/);
  },
);

test(
  "changes by the host to other files and inside protected ones end nothing",
  { skip: skip || noGit },
  async () => {
    await using place = await household({ ".envrc": "mine\n", "plain.txt": "plain\n" });
    git(place.at("work"), "init", "-q", ".");
    git(place.at("work"), "add", "plain.txt");
    await giveAway(place.at("work"));
    const done = { host: Promise.resolve() };
    const { code, stdout, stderr } = await sandboxExec(
      place,
      [
        "--",
        "bash",
        "-c",
        "touch begun; for i in $(seq 600); do [ -e newer ] && break; sleep 0.05; done; cat plain.txt; (echo x >> .envrc) 2> /dev/null || echo kept",
      ],
      {
        whenMade: [
          place.at("work/begun"),
          () => {
            done.host = (async () => {
              await renamed(place.at("work/plain.txt"));
              await writeFile(place.at("work/.envrc"), "mine, in place\n");
              git(place.at("work"), "commit", "-q", "-m", "one");
              git(place.at("work"), "config", "user.name", "me");
              await mkdir(place.at("work/new/deep"), { recursive: true });
              await rename(place.at("work/new"), place.at("work/newer"));
            })();
          },
        ],
      },
    );
    await done.host;
    assert.deepEqual([code, stdout.toString(), stderr], [0, "mine, too\nkept\n", ""]);
  },
);

test("a run reports replaced files among those that the host executes", { skip }, async () => {
  // The project's own code, which the policy lets run as contained.
  await using place = await household({ ...FILES, "attack.sh": attack(".envrc") });
  await using model = await startModel([bash("bash ./attack.sh"), FINE]);
  const ran = await harness(place, ["run", "--json", ...model.flags, "do it"], {
    whenMade: [place.at("work/begun"), () => void renamed(place.at("work/.envrc"))],
  });
  const { exit_code, handoff } = finishedOf(ran);
  assert.deepEqual([ran.code, exit_code], [6, 6], ran.stderr);
  assert.deepEqual(
    handoff.map(({ path, tier }) => [path, tier]),
    [[".envrc", "dangerous"]],
  );
  assert.match(ran.stderr, /\.envrc was replaced from outside/);
});

/** Several at a time, so that some write in the very moment of a thaw. */
const loop = (target: string): string =>
  `touch looping; for i in 1 2 3; do (while :; do echo ${PLANTED} >> ${target}; done 2> /dev/null) & done; wait`;

/** Parked, with such a job in its box. */
async function parkedWith(place: Scratch, model: Model, flags: readonly string[] = []): Promise<string> {
  const ran = await park(place, model, flags);
  assert.deepEqual([endOf(ran), ran.stderr], [PARKED, ""]);
  return sessionOf(ran);
}

// The project's own code, which the policy lets run as contained.
const attacked = (target: string): Promise<Scratch> => household({ ...FILES, "loop.sh": loop(target) });
const REPLIES = [
  { calls: [["bash", { command: "bash ./loop.sh", background: true }]] },
  bash("while [ ! -e looping ]; do sleep 0.05; done"),
  bash(FAR),
  FINE,
] as const;

describe("the host replaces a path while a box is frozen", { concurrency: 2 }, () => {
  for (const [way, { target, steps }] of Object.entries(WAYS).filter((_, at) => at % 2 === 0 || at > 4))
    test(`${way}: nothing in the frozen box runs again`, { skip }, async () => {
      await using place = await attacked(target);
      await using model = await startModel(REPLIES);
      const session = await parkedWith(place, model);
      await steps(place.at);
      const more = await approve(place, session, ["--deny", "--json"]);
      assert.equal(await planted(place, target), 0);
      assert.match(more.stderr, /cannot be resumed: [^]*A new one continues/);
      await goneWithin(place, 5000);
    });

  test("a discarded frozen box does not run again either", { skip }, async () => {
    await using place = await attacked(".envrc");
    await using model = await startModel(REPLIES);
    await parkedWith(place, model);
    await renamed(place.at("work/.envrc"));
    const more = await harness(place, ["run", "--continue", "--json", ...model.flags, "something else"]);
    assert.notEqual(more.code, null);
    await goneWithin(place, 5000);
    assert.equal(await planted(place, ".envrc"), 0);
  });

  test("without a replacement the same box continues", { skip }, async () => {
    await using place = await attacked(".envrc");
    await using model = await startModel(REPLIES);
    const session = await parkedWith(place, model);
    await renamed(place.at("work/plain.txt"));
    await writeFile(place.at("work/.envrc"), "mine, in place\n");
    const more = await approve(place, session, ["--once", "--json"]);
    assert.deepEqual([endOf(more), more.stderr], [DONE, ""]);
    assert.equal(await planted(place, ".envrc"), 0);
  });

  test("over a layer nothing is lost", { skip: skip || noOverlay }, async () => {
    await using place = await attacked("plain.txt");
    await using model = await startModel(REPLIES);
    const session = await parkedWith(place, model, ["--isolation", "overlay"]);
    const [box] = await boxesFor(place);
    await renamed(place.at("work/.envrc"));
    await sleep(10);
    const more = await approve(place, session, ["--once", "--json"]);
    assert.ok(box !== undefined && more.code === 0, more.stderr);
    assert.doesNotMatch(more.stderr, /A new one continues/);
    assert.equal(await planted(place, ".envrc"), 0);
  });
});
