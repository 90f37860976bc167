import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmod, readdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import path from "node:path";
import test from "node:test";
import { type Ended, runProgram } from "../fixtures/cli.ts";
import { skip } from "../fixtures/engine.ts";
import type { Scratch } from "../fixtures/scratch.ts";
import { answerOf, household, sandboxExec } from "./box-command.ts";
import { approve, endOf, FAR, FINE, park, PARKED, sessionOf } from "./parked.ts";
import { bash, startModel } from "./run-command.ts";
import { resultsIn } from "./run-requests.ts";

/** A recipe of the user's: its set-up wants no network. */
async function withRecipe(place: Scratch, recipe: object): Promise<void> {
  await place.write(".config/harness/environments/own.json", JSON.stringify(recipe));
}

type Told = (text: string, pid: number) => void;

const harness = (place: Scratch, words: readonly string[], onStderr?: Told): Promise<Ended> =>
  runProgram("bin/harness", words, {
    home: place.path,
    cwd: place.at("work"),
    ...(onStderr === undefined ? {} : { onStderr }),
  });

const build = (place: Scratch, ...words: readonly string[]): Promise<Ended> =>
  harness(place, ["env", "build", "--env", "own", ...words]);

const removed = async (place: Scratch): Promise<void> => {
  const { code, stderr } = await harness(place, ["env", "rm", "--all"]);
  assert.equal(code, 0, stderr);
};

const inBox = async (place: Scratch, line: string): Promise<string> => {
  const ended = await sandboxExec(place, ["--env", "own", "--", "sh", "-c", line]);
  assert.equal(ended.code, 0, ended.stderr);
  return ended.stdout.toString();
};

const LOCK = '{"packages":{"node_modules/left-pad":{"version":"1.3.0"}}}';
const SETUP = [
  {
    run: "echo real > deps/lib.txt; mkdir deps/sub; echo kept > /var/cache/harness/kept.txt; echo stray > stray.txt",
  },
  { run: "test -f deps/lib.txt" },
];

test(
  "what set-up installs is in every box, the host's own folder is untouched, and everything else is discarded",
  { skip },
  async () => {
    await using place = await household({ "deps/mine.txt": "the host's" });
    const setup = [...SETUP, { run: `printf '%s' '${LOCK}' > node_modules/.package-lock.json` }];
    const folders = ["deps", "made/here", "node_modules"];
    await withRecipe(place, { folders, setup, env: { FLAVOUR: "x" } });
    const { code, stdout, stderr } = await build(place, "--json");
    assert.equal(code, 0, stderr);
    const packages = [{ ecosystem: "npm", name: "left-pad", version: "1.3.0" }];
    const installed = { total: 1, new: 1, packages };
    assert.partialDeepStrictEqual(JSON.parse(stdout), { how: "built", lost: 1, installed });
    const shown = await harness(place, ["env", "show", "--env", "own"]);
    assert.match(shown.stdout, /1 package, 1 of them new\n {2}npm left-pad 1\.3\.0\n/);
    assert.equal((await build(place, "--json")).stdout.includes('"how":"kept"'), true);
    const line =
      'cat deps/lib.txt /var/cache/harness/kept.txt; ls deps stray.txt 2>&1; echo "$FLAVOUR"; echo new > out.txt';
    const said = await inBox(place, line);
    assert.match(said, /^real\nkept\n/);
    assert.match(said, /stray\.txt.*No such file/);
    assert.match(said, /\nx\n$/);
    assert.doesNotMatch(said, /mine\.txt/);
    assert.deepEqual(await readdir(place.at("work/deps")), ["mine.txt"]);
    // What was made only to mount on it is gone with the box, and what the command made is there.
    assert.deepEqual((await readdir(place.at("work"))).toSorted(), ["deps", "out.txt"]);
    const other = await sandboxExec(place, ["--env", "none", "--", "ls", "deps"]);
    assert.equal(other.stdout.toString(), "mine.txt\n");
    await removed(place);
    const gone = await sandboxExec(place, ["--env", "own", "--", "true"]);
    assert.match(gone.stderr, /own is not built.*\n.*harness env build --env own/);
  },
);

test("changes that a run makes to the environment reach no other run", { skip }, async () => {
  await using place = await household();
  await withRecipe(place, { folders: ["deps"], setup: SETUP });
  assert.equal((await build(place)).code, 0);
  const poison = [
    "echo evil > deps/lib.txt",
    "rm -rf deps/sub",
    "echo evil > deps/new.txt",
    "ln -s /etc/passwd deps/link",
    "echo evil > /var/cache/harness/kept.txt",
    "cat deps/lib.txt",
  ].join("; ");
  assert.equal(await inBox(place, poison), "evil\n");
  assert.equal(
    await inBox(place, "cat deps/lib.txt /var/cache/harness/kept.txt; ls deps"),
    "real\nkept\nlib.txt\nsub\n",
  );
  const changes = answerOf(
    await sandboxExec(place, ["--env", "own", "--json", "--", "sh", "-c", "echo x > deps/y; echo z > z"]),
  );
  assert.deepEqual(changes["changes"], { added: ["z"], modified: [], deleted: [] });
  for (const isolation of ["overlay", "copy"]) {
    const words = [
      "--env",
      "own",
      "--isolation",
      isolation,
      "--json",
      "--",
      "sh",
      "-c",
      "cat deps/lib.txt; echo x > deps/y; echo q > q",
    ];
    const told = answerOf(await sandboxExec(place, words));
    assert.partialDeepStrictEqual(told, {
      stdout: "real\n",
      changes: { added: ["q"], modified: [], deleted: [] },
    });
  }
  await removed(place);
});

test(
  "a failing step shows its last lines and keeps the log, and after a fix the build continues there",
  { skip },
  async () => {
    await using place = await household();
    const broken = { run: "echo first-line; test -f ok || { echo it is wrong; exit 3; }" };
    const recipe = { folders: ["deps"], setup: [{ run: "echo one >> deps/count" }, broken] };
    await withRecipe(place, recipe);
    const failed = await build(place);
    assert.equal(failed.code, 1);
    assert.match(
      failed.stderr,
      /set-up failed: .*\n(?: {4}.*\n)*? {4}it is wrong\n {2}next: harness env show --log/,
    );
    const log = await harness(place, ["env", "show", "--env", "own", "--log"]);
    assert.match(log.stdout, /first-line\nit is wrong/);
    const listed = await harness(place, ["env", "list"]);
    assert.match(listed.stdout, /unfinished/, listed.stderr);
    await place.write("work/ok", "");
    assert.equal((await build(place)).code, 0);
    assert.equal(await inBox(place, "cat deps/count"), "one\n", "the step that was done is not done again");
    await removed(place);
  },
);

test("a killed build leaves nothing valid, and continues where it was", { skip }, async () => {
  await using place = await household();
  const setup = [{ run: "echo one >> deps/count" }, { run: "test -f go || sleep 60" }];
  await withRecipe(place, { folders: ["deps"], setup });
  const killed = await harness(place, ["env", "build", "--env", "own"], (text, pid) => {
    if (text.includes("2/2")) process.kill(pid, "SIGKILL");
  });
  assert.equal(killed.code, null);
  const before = await sandboxExec(place, ["--env", "own", "--", "true"]);
  assert.match(before.stderr, /is not built/);
  await writeFile(place.at("work/go"), "");
  const ended = await build(place);
  assert.equal(ended.code, 0, ended.stderr);
  assert.equal(await inBox(place, "cat deps/count"), "one\n");
  await removed(place);
});

test("an outdated environment is used with a notice, and a damaged one is not used", { skip }, async () => {
  await using place = await household({ "package.json": "{}" });
  await withRecipe(place, { folders: ["deps"], setup: SETUP });
  assert.equal((await build(place)).code, 0);
  await place.write("work/package-lock.json", "{}");
  const stale = await sandboxExec(place, ["--env", "own", "--", "cat", "deps/lib.txt"]);
  assert.equal(stale.stdout.toString(), "real\n");
  assert.match(stale.stderr, /lock files.*have changed.*Rebuild it: harness env build --env own/);
  const folder = place.at(".local/state/harness/environments");
  const [id = ""] = await readdir(folder);
  const record = path.join(folder, id, "record");
  const text = await readFile(record, "utf8");
  await writeFile(record, text.replaceAll(/harness-env-[\w-]+/g, "harness-env-no-such-volume"));
  const damaged = await sandboxExec(place, ["--env", "own", "--", "sh", "-c", "ls deps/lib.txt"]);
  assert.notEqual(damaged.code, 0);
  assert.match(damaged.stderr, /is not used: the engine no longer has a volume/);
  await writeFile(record, text);
  await removed(place);
});

test(
  "a service is available to every command and ends with the box, and a failing one reports why",
  { skip },
  async () => {
    await using place = await household({ "server.cjs": SERVER });
    const service = {
      name: "web",
      start: "exec node server.cjs",
      health: "curl -fsS http://127.0.0.1:5099/",
    };
    await withRecipe(place, { services: [service] });
    assert.equal((await build(place)).code, 0);
    assert.equal(await inBox(place, "curl -fsS http://127.0.0.1:5099/"), "served");
    await withRecipe(place, { services: [{ ...service, start: "echo no such luck; exit 3" }] });
    assert.equal((await build(place)).code, 0);
    const ended = await sandboxExec(place, ["--env", "own", "--", "true"]);
    assert.equal(ended.code, 125);
    assert.match(ended.stderr, /the service web could not be used: it exited with code 3\n {4}no such luck/);
    const without = await sandboxExec(place, [
      "--env",
      "none",
      "--",
      "curl",
      "-fsS",
      "http://127.0.0.1:5099/",
    ]);
    assert.equal(without.code, 7);
    await removed(place);
  },
);

const ROOM = "-o size=3m";
/** The engine has to see it, so it is no file system of a namespace of our own. */
const mounted = (words: string, folder: string): boolean =>
  spawnSync("mount", [...words.split(" "), folder]).status === 0;

test(
  "a full disk is reported, and with room again the build continues where it was",
  { skip },
  async (context) => {
    await using place = await household();
    await place.write(".local/state/x", "");
    const state = place.at(".local/state");
    if (!mounted(`-t tmpfs ${ROOM} none`, state))
      return context.skip("no file system may be mounted here, so none can be full");
    try {
      const large = "head -c 8000000 /dev/zero > stray.bin && echo two >> deps/count";
      await withRecipe(place, {
        folders: ["deps"],
        setup: [{ run: "echo one >> deps/count" }, { run: large }],
      });
      const full = await build(place);
      assert.equal(full.code, 1);
      assert.match(
        full.stderr,
        /No space left on device\n {2}next: free some space .* which continues there/,
      );
      assert.ok(mounted("-o remount,size=64m", state));
      const mended = await build(place);
      assert.equal(mended.code, 0, mended.stderr);
      assert.equal(await inBox(place, "cat deps/count"), "one\ntwo\n");
      await removed(place);
    } finally {
      spawnSync("umount", [state]);
    }
  },
);

test("a parked run continues with its environment unchanged", { skip }, async () => {
  await using place = await household();
  await withRecipe(place, { folders: ["deps"], setup: SETUP });
  assert.equal((await build(place)).code, 0);
  await using model = await startModel([
    bash("echo mine >> deps/lib.txt"),
    bash(FAR),
    bash("cat deps/lib.txt"),
    FINE,
  ]);
  const ran = await park(place, model, ["--env", "own"]);
  assert.deepEqual(endOf(ran), PARKED, ran.stderr);
  const ended = await approve(place, sessionOf(ran), ["--once", "--json"]);
  assert.equal(ended.code, 0, ended.stderr);
  assert.match(resultsIn(model.asked().at(-1)).at(-1) ?? "", /^real\nmine$/);
  assert.equal(await inBox(place, "cat deps/lib.txt"), "real\n");
  const left = await sandboxRm(place);
  assert.match(left.stderr, /environments stay: 1 \(harness env list, harness env rm --all\)/);
  await removed(place);
  assert.doesNotMatch((await sandboxRm(place)).stderr, /environments stay/);
});

/** As a user without boxes, so that those of parallel tests stay. */
async function sandboxRm(place: Scratch): Promise<Ended> {
  const preload = await place.write("as-user.mjs", "process.getuid = () => 64_342;");
  const env = { NODE_OPTIONS: `--import=${preload}` };
  return runProgram("bin/harness", ["sandbox", "rm", "--all"], {
    home: place.path,
    cwd: place.at("work"),
    env,
  });
}

const SERVER =
  'require("node:http").createServer((_, answer) => answer.end("served")).listen(5099, "127.0.0.1");';

test("a link in place of an environment folder is not followed, and is reported", { skip }, async () => {
  await using place = await household();
  await withRecipe(place, { folders: ["deps"], setup: SETUP });
  assert.equal((await build(place)).code, 0);
  await rm(place.at("work/deps"), { recursive: true, force: true });
  await place.write("outside/kept.txt", "mine");
  await symlink(place.at("outside"), place.at("work/deps"));
  const ended = await sandboxExec(place, ["--env", "own", "--", "sh", "-c", "ls deps/lib.txt"]);
  assert.notEqual(ended.code, 0);
  assert.match(ended.stderr, /deps is not the environment's: .*is not a folder/);
  assert.equal((await stat(place.at("outside"))).isDirectory(), true);
  assert.deepEqual(await readdir(place.at("outside")), ["kept.txt"]);
  await removed(place);
});

test(
  "programs in place of a virtual environment that is not mounted are not found first",
  { skip },
  async () => {
    await using place = await household();
    await withRecipe(place, { folders: [".venv"], setup: [{ run: "mkdir .venv/bin; touch .venv/bin/own" }] });
    assert.equal((await build(place)).code, 0);
    const which = ["--env", "own", "--", "sh", "-c", 'ls; echo "$PATH"'];
    const first = await sandboxExec(place, which);
    assert.match(first.stdout.toString(), /\/work\/\.venv\/bin:/);
    await rm(place.at("work/.venv"), { recursive: true, force: true });
    await place.write("work/tools/bin/ls", "#!/bin/sh\necho shadowed\n");
    await chmod(place.at("work/tools/bin/ls"), 0o755);
    await symlink("tools", place.at("work/.venv"));
    const ended = await sandboxExec(place, which);
    assert.match(ended.stderr, /\.venv is not the environment's: .*is not a folder/);
    assert.doesNotMatch(ended.stdout.toString(), /shadowed|\.venv/);
    await removed(place);
  },
);

/** Where a set-up command might leave something for somebody else. */
const REACHES = [
  "touch /usr/local/bin/planted",
  "cp /bin/true /usr/local/lib/harness/bin/git",
  "touch /etc/planted",
  'touch "$OTHER/planted"',
];
const HOSTILE = [
  ...REACHES.map((line) => `(${line}) 2>/dev/null && echo '${line}' >> /var/cache/harness/could`),
  "echo evil > /var/cache/harness/shared; echo evil > deps/lib.txt; echo evil > README; echo evil > /tmp/planted",
  // In its layer of the workspace, which is thrown away.
  "mkdir -p .git/hooks; touch .git/hooks/planted .harness/planted",
  "mkdir -p ~/.config/git; echo evil > ~/.config/git/config; (setsid sleep 600 &); true",
].join("\n");

test(
  "a hostile set-up affects only its own environment: no image, workspace, cache or box of others",
  { skip },
  async () => {
    await using hostile = await household({ README: "mine\n", ".git/HEAD": "", ".harness/x": "" });
    await using other = await household({ README: "the other's\n" });
    await withRecipe(hostile, {
      folders: ["deps"],
      setup: [{ run: HOSTILE }],
      env: { OTHER: other.at("work") },
    });
    const good = "echo good > deps/lib.txt; echo good > /var/cache/harness/shared";
    await withRecipe(other, { folders: ["deps"], setup: [{ run: good }] });
    const made = await build(hostile);
    assert.equal(made.code, 0, made.stderr);
    assert.equal((await build(other)).code, 0);
    const own =
      "cat /var/cache/harness/could 2>/dev/null; cat deps/lib.txt README; ls -A ~ .git .harness; ls /tmp/planted 2>/dev/null; pgrep -x sleep; true";
    const left = await inBox(hostile, own);
    assert.equal(left, "evil\nmine\n.git:\nHEAD\n\n.harness:\nx\n\n/home/box:\n");
    const shared =
      "cat deps/lib.txt /var/cache/harness/shared README; ls /usr/local/bin/planted 2>&1 | wc -l";
    assert.equal(await inBox(other, shared), "good\ngood\nthe other's\n1\n");
    assert.deepEqual(await readdir(other.at("work")), ["README"]);
    await removed(hostile);
    await removed(other);
  },
);
