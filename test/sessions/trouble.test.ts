import assert from "node:assert/strict";
import { chmodSync, chownSync, cpSync, readdirSync, rmSync } from "node:fs";
import { execFile, spawnSync } from "node:child_process";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import test from "node:test";
import { promisify } from "node:util";
import { EXIT, HarnessError } from "../../src/core/errors.ts";
import { ABOUT } from "../contract/store-words.ts";
import { openStore } from "../../src/sessions/session-store.ts";
import { refusalOf } from "../fixtures/refusal.ts";
import { unprivileged } from "../fixtures/unprivileged.ts";
import { scratch } from "../fixtures/scratch.ts";

const run = promisify(execFile);
const SCRIPT = path.join(import.meta.dirname, "../fixtures/store-in-trouble.ts");

/** File systems of our own need a mount namespace. */
const UNSHARED = ["unshare", "-rm"] as const;
const skip =
  spawnSync("unshare", ["-rm", "true"]).status === 0
    ? false
    : "no mount namespace may be made here (unshare -rm)";

interface Told {
  readonly exit: number;
  readonly message: string;
  readonly remedy: string;
}

async function inNamespace(script: string, place: string): Promise<readonly unknown[]> {
  const [program, ...words] = UNSHARED;
  const { stdout } = await run(program, [
    ...words,
    "sh",
    "-ec",
    script,
    "sh",
    place,
    process.execPath,
    SCRIPT,
  ]);
  return stdout
    .trimEnd()
    .split("\n")
    .map((line): unknown => JSON.parse(line));
}

test("a full disk is reported with the next command to type, and kept data stays", { skip }, async () => {
  await using place = await scratch({ "state/x": "" });
  const [failures, left, last] = await inNamespace(
    'mount -t tmpfs -o size=900k none "$1/state"; "$2" "$3" "$1/state"',
    place.path,
  );
  const { told, output, fresh } = failures as { told: Told; output: Told; fresh: Told };
  for (const one of [told, output, fresh]) {
    assert.match(one.message, /no space is left on the disk/, JSON.stringify(failures));
    assert.deepEqual([one.exit, one.remedy.startsWith("df -h ")], [EXIT.failed, true]);
  }
  const { kept, messages, records, first } = left as Record<string, number | null>;
  assert.ok(kept !== null && kept !== undefined && kept > 20);
  assert.deepEqual([messages, records, first, last], [kept, kept, null, "none"]);
});

test("an unwritable folder is reported, with where to look", { skip }, async () => {
  await using place = await scratch({ "state/x": "" });
  const [failures] = await inNamespace(
    'mount -t tmpfs -o ro none "$1/state"; "$2" "$3" "$1/state"',
    place.path,
  );
  const { told, fresh } = failures as { told: Told; fresh: Told };
  for (const one of [told, fresh]) {
    assert.match(one.message, /is not writable|cannot be reached/, JSON.stringify(failures));
    assert.deepEqual([one.exit, one.remedy.split(";")[0]], [EXIT.failed, `ls -ld ${place.at("state")}`]);
  }
});

test("a database that became read-only loses nothing", { skip }, async () => {
  await using place = await scratch({ "state/x": "" });
  const [before, after] = await inNamespace(
    `mount -t tmpfs -o size=900k none "$1/state"; "$2" "$3" "$1/state" >/dev/null; cp "$1/state/sessions.db" "$1/before"
     mount -o remount,ro "$1/state"; "$2" "$3" "$1/state" | head -n 1
     cmp "$1/before" "$1/state/sessions.db" && echo '"the same"'`,
    place.path,
  );
  const { told } = before as { told: Told };
  assert.match(told.message, /is not writable/, JSON.stringify(before));
  assert.equal(after, "the same");
});

test("for sessions in a folder that became read-only, that reason is reported", { skip }, async () => {
  await using place = await scratch({ "state/x": "" });
  {
    using store = openStore(place.at("state"));
    store.create(ABOUT);
  }
  const [before] = await inNamespace(
    `mount --bind "$1/state" "$1/state"; mount -o remount,ro,bind "$1/state"; "$2" "$3" "$1/state" | head -n 1`,
    place.path,
  );
  const { told } = before as { told: Told };
  assert.match(told.message, /is not writable/, JSON.stringify(before));
});

test("files of the database that another user owns are named, with how to get them back", async (t) => {
  if (process.geteuid?.() !== 0) return t.skip("only root can give a file away");
  await using place = await scratch();
  const state = place.at("state");
  openStore(state)[Symbol.dispose]();
  for (const name of ["sessions.db", "sessions.db.lock"]) {
    await unprivileged(place.path, async () => {
      await Promise.resolve();
      process.seteuid?.(0);
      chownSync(path.join(state, name), 0, 0);
      chmodSync(path.join(state, name), 0o600);
      process.seteuid?.(1000);
      assert.throws(
        () => openStore(state),
        (thrown) =>
          thrown instanceof HarnessError &&
          thrown.message.includes(
            `you may not read and write ${path.join(state, name)}, which belongs to user 0`,
          ) &&
          thrown.remedy.startsWith("sudo chown -R "),
      );
    });
  }
});

test("a state folder that is a file is reported", async () => {
  await using place = await scratch({ state: "a file" });
  for (const folder of [place.at("state"), place.at("state/inner")])
    assert.throws(
      () => openStore(folder),
      (thrown) =>
        thrown instanceof HarnessError && thrown.exit === EXIT.failed && thrown.remedy.startsWith("ls -ld "),
    );
  assert.equal(await place.read("state"), "a file");
});

const MOUNT = "/bin/mount";
const skipMount = process.getuid?.() !== 0 && "only root mounts a file system";

test(
  "sessions in a folder that nobody may write to can be read, and writing says why not",
  { skip: skipMount },
  async (t) => {
    await using place = await scratch({ "state/x": "" });
    const state = place.at("state");
    if (spawnSync(MOUNT, ["-t", "tmpfs", "tmpfs", state]).status !== 0)
      return t.skip("mounting is refused here");
    try {
      const id = writeSession(state);
      const readOnly = ["-o", "remount,ro", state];
      const seen = (): readonly unknown[] => {
        using store = openStore(state);
        const found = store.open(id);
        return [store.list({}).map((each) => each.id), found.records().length, found.info().workspace];
      };
      assert.equal(spawnSync(MOUNT, readOnly).status, 0);
      assert.deepEqual(seen(), [[id], 1, ABOUT.workspace]);
      const [exit, message] = await refusalOf(() => writeSession(state));
      assert.equal(exit, EXIT.failed);
      assert.match(message, /sessions\.db: it is not writable/);
      // A writer that was killed leaves a log beside the database, with what is not in the database yet.
      assert.equal(spawnSync(MOUNT, ["-o", "remount,rw", state]).status, 0);
      const withLog = new DatabaseSync(path.join(state, "sessions.db"));
      withLog.exec(`UPDATE sessions SET workspace = '/from/the/log' WHERE id = '${id}'`);
      cpSync(state, place.at("copied"), { recursive: true });
      withLog.close();
      for (const name of readdirSync(state)) rmSync(path.join(state, name), { recursive: true });
      cpSync(place.at("copied"), state, { recursive: true });
      assert.equal(spawnSync(MOUNT, readOnly).status, 0);
      assert.deepEqual(seen(), [[id], 1, "/from/the/log"]);
    } finally {
      spawnSync("/bin/umount", [state]);
    }
  },
);

function writeSession(state: string): string {
  using store = openStore(state);
  const session = store.create(ABOUT);
  session.append({ kind: "message", message: { role: "user", text: "hello" } });
  return session.id;
}
