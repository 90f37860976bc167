import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import test, { after } from "node:test";
import { RunCheckpoints } from "../../src/sessions/checkpoints/recorder.ts";
import { writeJournal } from "../../src/sessions/checkpoints/undo-changes.ts";
import { CheckpointStore } from "../../src/sessions/checkpoints/checkpoint-store.ts";
import { openStore } from "../../src/sessions/session-store.ts";
import { ABOUT } from "../contract/store-words.ts";
import { type Ended, runProgram } from "../fixtures/cli.ts";
import { scratch, type Scratch } from "../fixtures/scratch.ts";

const cache = await scratch();
after(() => cache[Symbol.asyncDispose]());

interface Worked extends AsyncDisposable {
  readonly place: Scratch;
  readonly id: string;
  readonly harness: (...words: readonly string[]) => Promise<Ended>;
}

/** A folder `here` with a session that has changed a.txt, removed b.txt and made c.txt, and done what is `beside`. */
async function worked(beside: (place: Scratch) => void = () => undefined): Promise<Worked> {
  const place = await scratch({
    "here/a.txt": "one\ntwo\n",
    "here/b.txt": "b\n",
    "home/x": "",
    "empty/x": "",
  });
  const [stateDir, workspace] = [place.at("state/harness"), place.at("here")];
  using store = openStore(stateDir);
  const { id, steps } = store.create({ ...ABOUT, workspace });
  const open = (): CheckpointStore => new CheckpointStore({ stateDir, workspace });
  {
    await using run = new RunCheckpoints({ session: id, steps, open, notice: assert.fail });
    const write = { turn: 1, lasting: false };
    await run.around({ ...write, call: "c1" }, () =>
      Promise.resolve(writeFileSync(place.at("here/a.txt"), "one\n2\n")),
    );
    await run.around({ ...write, call: "c2" }, () => {
      rmSync(place.at("here/b.txt"));
      writeFileSync(place.at("here/c.txt"), "c\n");
      beside(place);
      return Promise.resolve();
    });
  }
  const env = { XDG_STATE_HOME: place.at("state"), XDG_CACHE_HOME: cache.path, XDG_CONFIG_HOME: place.path };
  return {
    place,
    id,
    harness: (...words) => {
      const cwd = existsSync(workspace) ? workspace : place.path;
      return runProgram("bin/harness", words, { home: place.at("home"), cwd, env });
    },
    [Symbol.asyncDispose]: () => place[Symbol.asyncDispose](),
  };
}

test("diff shows the folder's last session, with --stat one line per path", async () => {
  await using session = await worked();
  const { code, stdout } = await session.harness("diff", "--stat");
  assert.deepEqual(
    [code, stdout],
    [0, "M a.txt  +1 -1\nD b.txt  +0 -1\nA c.txt  +1 -0\n3 paths changed, +2 -2 lines\n"],
  );
  const whole = await session.harness("diff", session.id);
  assert.match(
    whole.stdout,
    /^diff --git a\/a.txt b\/a.txt\n--- a\/a.txt\n\+\+\+ b\/a.txt\n@@ -1,2 \+1,2 @@\n one\n-two\n\+2$/m,
  );
  const json = JSON.parse((await session.harness("diff", "--json", "--from", "1")).stdout) as {
    readonly files: readonly { readonly path: string; readonly change: string }[];
  };
  assert.deepEqual(
    json.files.map(({ path: at, change }) => [at, change]),
    [
      ["b.txt", "deleted"],
      ["c.txt", "added"],
    ],
  );
});

test("diff in a pipe is a patch that git accepts, with folders, line ends and binaries", async () => {
  await using session = await worked(({ at }) => {
    mkdirSync(at("here/new"));
    writeFileSync(at("here/new/crlf.txt"), "one\r\ntwo\r\n");
    writeFileSync(at("here/new/b.bin"), "\0");
  });
  const { code, stdout, stderr } = await session.harness("diff");
  assert.equal(code, 0);
  assert.match(stderr, /a patch cannot express these changes, .*: new\/b\.bin$/m);
  const copy = session.place.at("copy");
  mkdirSync(copy);
  writeFileSync(path.join(copy, "a.txt"), "one\ntwo\n");
  writeFileSync(path.join(copy, "b.txt"), "b\n");
  execFileSync("git", ["apply", "--whitespace=nowarn", "-"], { cwd: copy, input: stdout });
  assert.deepEqual(readdirSync(copy).toSorted(), ["a.txt", "c.txt", "new"]);
  assert.equal(readFileSync(path.join(copy, "new/crlf.txt"), "utf8"), "one\r\ntwo\r\n");
});

test("undo goes back to a step or to the start, and reports what it did", async () => {
  await using session = await worked();
  const dry = await session.harness("undo", "--dry-run", "--json");
  assert.deepEqual(JSON.parse(dry.stdout), {
    session: session.id,
    to: 0,
    redo: false,
    dry_run: true,
    paths: [
      { path: "a.txt", action: "reverted" },
      { path: "b.txt", action: "restored" },
      { path: "c.txt", action: "removed" },
    ],
    refused: [],
    left: [],
    done: false,
  });
  assert.equal((await session.harness("undo", "--to", "1")).code, 0);
  assert.equal(await session.place.read("here/b.txt"), "b\n");
  assert.equal(await session.place.read("here/a.txt"), "one\n2\n");
  const { code, stdout } = await session.harness("undo");
  assert.equal(code, 0);
  assert.equal(
    stdout,
    `reverted a.txt\n1 path brought back\nnext: harness undo ${session.id} --redo   (reverses this)\n`,
  );
  assert.equal(await session.place.read("here/a.txt"), "one\ntwo\n");
  assert.equal((await session.harness("undo")).stdout, "nothing to undo: all is as it was before\n");
  const { stdout: steps } = await session.harness("diff", "--steps");
  assert.match(steps, /^1 .* c1\n2 .* c2\n3 .* undo to 1\n4 .* undo to 0$/m);
});

test("an undo that was cut short is finished, also if the folder's last session changed nothing", async () => {
  await using session = await worked();
  const [stateDir, workspace] = [session.place.at("state/harness"), session.place.at("here")];
  {
    using sessions = openStore(stateDir);
    const { steps } = sessions.open(session.id);
    using store = new CheckpointStore({ stateDir, workspace });
    const [now, start] = [await store.look(), store.trees.load(steps.all()[0]?.before ?? "")];
    const ops = ["a.txt", "b.txt", "c.txt"].map((at) => ({
      path: at,
      from: now.get(at) ?? null,
      to: start.get(at) ?? null,
    }));
    const before = store.save(session.id, now);
    const step = steps.begin({ kind: "undo", call: null, turn: null, before, target: 0 });
    const journal = { session: session.id, step, before, whole: true, aside: ".harness-undo-x", ops };
    writeJournal(store.folder, journal);
    sessions.create({ ...ABOUT, workspace });
  }
  const { code, stderr } = await session.harness("undo");
  assert.equal(code, 0, stderr);
  assert.match(stderr, /An interrupted undo was finished\./);
  assert.equal(readFileSync(session.place.at("here/a.txt"), "utf8"), "one\ntwo\n");
  assert.deepEqual(readdirSync(workspace).toSorted(), ["a.txt", "b.txt"]);
});

test("a conflict ends with 1, names the file, and nothing is changed", async () => {
  await using session = await worked();
  writeFileSync(session.place.at("here/a.txt"), "one\nzwei\n");
  const { code, stdout } = await session.harness("undo");
  assert.equal(code, 1);
  assert.match(stdout, /^refused {2}a.txt: the same lines were changed since$/m);
  assert.equal(existsSync(session.place.at("here/c.txt")), true);
  assert.match(stdout, new RegExp(`^next: harness undo ${session.id} --skip$`, "m"));
  const skipped = await session.harness("undo", "--skip");
  assert.equal(skipped.code, 1);
  assert.equal(existsSync(session.place.at("here/c.txt")), false);
  assert.equal(await session.place.read("here/a.txt"), "one\nzwei\n");
  const again = await session.harness("undo", "--skip");
  assert.equal(again.code, 1);
  assert.match(again.stdout, new RegExp(`^nothing was changed\nnext: harness diff ${session.id}$`, "m"));
});

test("an impossible step ends with 2 and lists the possible ones", async () => {
  await using session = await worked();
  for (const command of ["undo", "diff"]) {
    const none = await session.harness(command, "--cwd", session.place.at("empty"));
    assert.equal(none.code, 2);
    assert.match(none.stderr, /no session of/);
    assert.equal((await session.harness(command, "zzzz")).code, 2);
  }
  const far = await session.harness("undo", "--to", "9");
  assert.equal(far.code, 2);
  assert.match(far.stderr, /has steps 1 to 2/);
  const behind = await session.harness("diff", "--from", "9");
  assert.equal(behind.code, 2);
  assert.match(behind.stderr, /has steps 1 to 2/);
  const last = await session.harness("diff", "--from", "2");
  assert.deepEqual([last.code, last.stdout], [0, ""]);
  assert.match(last.stderr, /has changed nothing in .* after step 2\n/);
  assert.match((await session.harness("undo", "--redo")).stderr, /there is no undo to redo/);
  renameSync(session.place.at("here"), session.place.at("moved"));
  const gone = await session.harness("undo", session.id);
  assert.equal(gone.code, 2);
  assert.match(gone.stderr, /the folder of this session no longer exists/);
});

test("removing a session removes its stored states", async () => {
  await using session = await worked();
  assert.equal((await session.harness("sessions", "rm", session.id)).code, 0);
  const kept = path.join(session.place.at("state/harness/checkpoints"));
  const files = readdirSync(kept, { recursive: true }).map(String);
  assert.deepEqual(
    files.filter((name) => /pack|idx|trees\//.test(path.basename(name)) && name.includes(".")),
    [],
  );
});

test("the command suggested after a conflict undoes no more than requested, and redoes the same", async () => {
  await using session = await worked();
  writeFileSync(session.place.at("here/c.txt"), "mine\n");
  const conflict = await session.harness("undo", "--to", "1");
  assert.match(conflict.stdout, new RegExp(`^next: harness undo ${session.id} --to 1 --skip$`, "m"));
  rmSync(session.place.at("here/c.txt"));
  assert.equal((await session.harness("undo")).code, 0);
  writeFileSync(session.place.at("here/a.txt"), "one\nzwei\n");
  const redone = await session.harness("undo", "--redo");
  assert.match(redone.stdout, new RegExp(`^next: harness undo ${session.id} --redo --skip$`, "m"));
});
