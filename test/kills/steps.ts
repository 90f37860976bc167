/**
 * Preloaded into a program (`--import`), this module kills the program right before its nth lasting change: a write,
 * rename, removal or commit. Kills between two changes are thus chosen by number, each of them once, while a clock
 * would hit only the long ones. Uncommitted work of a transaction is no change: nobody else sees it. HARNESS_KILL_AT=n;
 * HARNESS_KILL_HALF=1: half of the nth write is done; HARNESS_KILL_COUNT=file: receives the number of changes if the
 * program reaches its end.
 */
import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { DatabaseSync, StatementSync } from "node:sqlite";
import { isMainThread } from "node:worker_threads";

type Work = (this: unknown, ...given: unknown[]) => unknown;
type Holder = Record<string, unknown>;

const killAt = Number(process.env["HARNESS_KILL_AT"] ?? 0);
const leavesHalf = process.env["HARNESS_KILL_HALF"] === "1";
const counted = { steps: 0 };

function die(): never {
  process.kill(process.pid, "SIGKILL");
  // Nothing more may happen until the signal arrives.
  for (;;) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1000);
}

/** Counts a change; true for the last one. */
function step(): boolean {
  counted.steps += 1;
  return counted.steps === killAt;
}

function around(holder: unknown, name: string, wrap: (work: Work) => Work): void {
  const held = holder as Holder;
  const work = held[name];
  if (typeof work === "function") held[name] = wrap(work as Work);
}

/** Makes each call of a function a change, if `counts` says so. */
const changes =
  (counts: (...given: unknown[]) => boolean = () => true, half?: (...given: unknown[]) => unknown[]) =>
  (work: Work): Work =>
    function (this: unknown, ...given) {
      if (!counts(...given) || !step()) return work.apply(this, given);
      if (leavesHalf && half !== undefined) work.apply(this, half(...given));
      return die();
    };

const OWN_STREAMS = 2;
const toFile = (descriptor: unknown): boolean => typeof descriptor !== "number" || descriptor > OWN_STREAMS;
const halfOf = (content: unknown): unknown => {
  if (typeof content === "string") return content.slice(0, content.length >> 1);
  return content instanceof Uint8Array ? content.subarray(0, content.length >> 1) : content;
};
const halfWritten = (where: unknown, content: unknown, ...rest: unknown[]): unknown[] => [
  where,
  halfOf(content),
  // Drops a buffer's offset and length, which would refer to the whole buffer.
  ...(typeof content === "string" || typeof rest[0] === "object" ? rest : []),
];
const firstWritten = (where: unknown, buffers: unknown): unknown[] => [
  where,
  Array.isArray(buffers) ? buffers.slice(0, 1).map(halfOf) : buffers,
];
const WRITING = fs.constants.O_CREAT | fs.constants.O_TRUNC;
const opensNew = (_path: unknown, flags: unknown = "r"): boolean =>
  typeof flags === "number" ? (flags & WRITING) !== 0 : /[wax]/.test(String(flags));

const PLAIN =
  "rename rm unlink rmdir mkdir mkdtemp symlink link chmod fchmod lchmod chown fchown lchown truncate ftruncate copyFile cp utimes futimes lutimes".split(
    " ",
  );

async function patchFiles(): Promise<void> {
  for (const name of PLAIN) {
    around(fs, `${name}Sync`, changes());
    around(fs.promises, name, changes());
  }
  around(fs, "openSync", changes(opensNew));
  around(fs.promises, "open", changes(opensNew));
  around(fs, "writeSync", changes(toFile, halfWritten));
  around(fs, "writevSync", changes(toFile, firstWritten));
  for (const name of ["writeFile", "appendFile"]) {
    around(fs, `${name}Sync`, changes(toFile, halfWritten));
    around(fs.promises, name, changes(toFile));
  }
  const handle = await fs.promises.open(process.execPath);
  const prototype: unknown = Object.getPrototypeOf(handle);
  await handle.close();
  for (const name of ["write", "writev", "writeFile", "appendFile", "truncate", "chmod", "chown", "utimes"])
    around(prototype, name, changes());
  syncBuiltinESMExports();
}

function patchDatabases(): void {
  const databases = new WeakMap<object, DatabaseSync>();
  around(
    DatabaseSync.prototype,
    "prepare",
    (work) =>
      function (this: unknown, ...given) {
        const statement = work.apply(this, given) as object;
        databases.set(statement, this as DatabaseSync);
        return statement;
      },
  );
  around(
    StatementSync.prototype,
    "run",
    (work) =>
      function (this: unknown, ...given) {
        if (databases.get(this as object)?.isTransaction === false && step()) return die();
        return work.apply(this, given);
      },
  );
  around(
    DatabaseSync.prototype,
    "exec",
    (work) =>
      function (this: unknown, ...given) {
        const sql = String(given[0]);
        const open = (this as DatabaseSync).isTransaction;
        const lasts = open ? sql.startsWith("COMMIT") : !/^(?:BEGIN|PRAGMA synchronous)/.test(sql);
        if (lasts && step()) return die();
        return work.apply(this, given);
      },
  );
  // The last process that closes a database moves its journal into it.
  around(DatabaseSync.prototype, "close", changes());
}

if (isMainThread) {
  const { writeFileSync } = fs;
  await patchFiles();
  patchDatabases();
  const file = process.env["HARNESS_KILL_COUNT"];
  if (file !== undefined) process.on("exit", () => writeFileSync(file, String(counted.steps)));
}
