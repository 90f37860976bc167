import assert from "node:assert/strict";
import { readdirSync, readFileSync, statSync, truncateSync, writeFileSync } from "node:fs";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import test from "node:test";
import { EXIT, HarnessError } from "../../src/core/errors.ts";
import { openDatabase } from "../../src/sessions/sessions-db.ts";
import { openStore } from "../../src/sessions/session-store.ts";
import { ABOUT, message } from "../contract/store-words.ts";
import { scratch } from "../fixtures/scratch.ts";

const NOW = Date.UTC(2026, 0, 2, 3, 4, 5);

/** A closed store with this many records; the path of its database. */
function filled(state: string, count: number): string {
  using store = openStore(state);
  const session = store.create(ABOUT);
  for (let at = 0; at < count; at += 1) session.append(message(`${at} ${"x".repeat(2000)}`));
  return path.join(state, "sessions.db");
}

function zero(file: string, from: number, length: number): void {
  const bytes = readFileSync(file);
  writeFileSync(file, bytes.fill(0, from, from + length));
}

const PAGE = 4096;

const DAMAGES: readonly (readonly [string, (file: string) => void])[] = [
  ["garbage", (file) => writeFileSync(file, "no database at all\n".repeat(500))],
  ["a few bytes", (file) => writeFileSync(file, "x")],
  ["a first page of zeros", (file) => zero(file, 0, PAGE)],
  ["a later page of zeros", (file) => zero(file, 3 * PAGE, PAGE)],
  ["half of it", (file) => truncateSync(file, 40 * PAGE)],
  ["an end within a page", (file) => truncateSync(file, statSync(file).size - 1000)],
  ["its head only", (file) => truncateSync(file, 100)],
];

for (const [what, damage] of DAMAGES)
  test(`a damaged database is set aside with a warning, and replaced by a new one: ${what}`, async () => {
    await using place = await scratch();
    const file = filled(place.at("state"), 100);
    damage(file);
    const left = readFileSync(file);
    const warnings: string[] = [];
    using store = openStore(place.at("state"), { now: () => NOW, warn: (text) => void warnings.push(text) });
    assert.deepEqual(store.list({}), []);
    store.create(ABOUT).append(message("after"));
    const aside = `${file}.damaged-20260102T030405Z`;
    assert.deepEqual(readFileSync(aside), left);
    assert.equal(warnings.length, 1);
    assert.ok(warnings[0]?.includes(aside), warnings[0]);
    using again = openStore(place.at("state"), { warn: assert.fail });
    assert.equal(again.list({}).length, 1);
  });

test("a damaged database that another process has open is left in place", async () => {
  await using place = await scratch();
  const state = place.at("state");
  filled(state, 100);
  using inUse = openStore(state);
  writeFileSync(place.at("state/sessions.db"), "garbage ".repeat(1000));
  const opening = { file: place.at("state/sessions.db"), now: () => NOW, patienceMs: 20 };
  assert.throws(
    () => openDatabase({ ...opening, warn: assert.fail }),
    (thrown) => thrown instanceof HarnessError && /another harness has it open/.test(thrown.message),
  );
  assert.equal(await place.read("state/sessions.db"), "garbage ".repeat(1000));
  inUse[Symbol.dispose]();
  const warnings: string[] = [];
  openDatabase({ ...opening, warn: (text) => void warnings.push(text) })[Symbol.dispose]();
  assert.equal(warnings.length, 1);
});

test("a second damaged database does not overwrite the first", async () => {
  await using place = await scratch();
  for (const text of ["first garbage", "second garbage"]) {
    await place.write("state/sessions.db", text);
    using store = openStore(place.at("state"), { now: () => NOW });
    assert.deepEqual(store.list({}), []);
  }
  const aside = readdirSync(place.at("state"))
    .filter((name) => name.includes("damaged"))
    .toSorted();
  assert.deepEqual(aside, ["sessions.db.damaged-20260102T030405Z", "sessions.db.damaged-20260102T030405Z-2"]);
  assert.equal(await place.read("state/sessions.db.damaged-20260102T030405Z"), "first garbage");
});

test("a database of another program is set aside too", async () => {
  await using place = await scratch({ "state/x": "" });
  const other = new DatabaseSync(place.at("state/sessions.db"));
  other.exec("CREATE TABLE theirs (a); INSERT INTO theirs VALUES (7)");
  other.close();
  const warnings: string[] = [];
  using store = openStore(place.at("state"), { now: () => NOW, warn: (text) => void warnings.push(text) });
  assert.deepEqual(store.list({}), []);
  const aside = new DatabaseSync(place.at("state/sessions.db.damaged-20260102T030405Z"));
  assert.equal(aside.prepare("SELECT a FROM theirs").get()?.["a"], 7);
  aside.close();
  assert.equal(warnings.length, 1);
});

test("damage found only in use is reported, and the next start sets the database aside", async () => {
  await using place = await scratch();
  const state = place.at("state");
  const file = filled(state, 1200);
  zero(file, PAGE * 24, statSync(file).size - PAGE * 24);
  const warnings: string[] = [];
  {
    using store = openStore(state, { warn: assert.fail });
    assert.throws(
      () => store.list({ query: "something" }),
      (thrown) =>
        thrown instanceof HarnessError && /damaged/.test(thrown.message) && /again/.test(thrown.remedy),
    );
  }
  using store = openStore(state, { now: () => NOW, warn: (text) => void warnings.push(text) });
  assert.deepEqual(store.list({ query: "something" }), []);
  assert.equal(warnings.length, 1);
  assert.ok(statSync(`${file}.damaged-20260102T030405Z`).size > PAGE * 100);
});

test("a damaged text is reported with its session, and the others stay readable", async () => {
  await using place = await scratch();
  const state = place.at("state");
  const file = filled(state, 1);
  const { id } = withLong(state);
  const bytes = readFileSync(file);
  writeFileSync(file, bytes.fill(0, bytes.lastIndexOf("yyyy") - 100, bytes.lastIndexOf("yyyy")));
  using store = openStore(state, { warn: assert.fail });
  assert.equal(store.list({ query: "0 xxx" }).length, 1);
  assert.deepEqual(store.list({ query: "yyyy" }), []);
  assert.throws(
    () => store.open(id).records(),
    (thrown) => thrown instanceof HarnessError && thrown.remedy.startsWith(`harness sessions rm ${id}`),
  );
});

function withLong(state: string): { readonly id: string } {
  using store = openStore(state);
  const session = store.create(ABOUT);
  session.append(message("y".repeat(50_000)));
  return session;
}

test("a suspicion of damage that proves wrong loses nothing", async () => {
  await using place = await scratch();
  filled(place.at("state"), 3);
  await place.write("state/sessions.db.suspect", "");
  using store = openStore(place.at("state"), { warn: assert.fail });
  assert.equal(store.list({})[0]?.messages, 3);
  assert.ok(!readdirSync(place.at("state")).includes("sessions.db.suspect"));
});

const opening = (file: string, steps: readonly string[]): Parameters<typeof openDatabase>[0] => ({
  file,
  steps,
  warn: assert.fail,
  now: () => NOW,
});

test("a database is upgraded step by step, and its rows stay", async () => {
  await using place = await scratch();
  const file = place.at("state/sessions.db");
  const steps = ["CREATE TABLE a (x) STRICT", "ALTER TABLE a ADD COLUMN y TEXT DEFAULT 'new'"].map((step) =>
    step.replace("(x)", "(x TEXT)"),
  );
  {
    using old = openDatabase(opening(file, steps.slice(0, 1)));
    old.insert("a", { x: "kept" });
  }
  using db = openDatabase(opening(file, steps));
  assert.deepEqual({ ...(db.get("SELECT x, y FROM a") as object) }, { x: "kept", y: "new" });
  assert.deepEqual(
    (db.all("SELECT number, length(hash) AS length FROM migrations") as readonly object[]).map((row) => ({
      ...row,
    })),
    [1, 2].map((number) => ({ number, length: 64 })),
  );
});

for (const [what, made, known] of [
  ["has steps unknown to this version", ["CREATE TABLE a (x)", "CREATE TABLE b (x)"], ["CREATE TABLE a (x)"]],
  ["was made by another step of the same number", ["CREATE TABLE a (x)"], ["CREATE TABLE a (y)"]],
] as const)
  test(`a database that ${what} is left unchanged`, async () => {
    await using place = await scratch();
    const file = place.at("state/sessions.db");
    openDatabase(opening(file, made))[Symbol.dispose]();
    const before = readFileSync(file);
    assert.throws(
      () => openDatabase(opening(file, known)),
      (thrown) =>
        thrown instanceof HarnessError &&
        thrown.exit === EXIT.usage &&
        /written by a newer harness/.test(thrown.message),
    );
    assert.deepEqual(readFileSync(file), before);
    assert.deepEqual(
      readdirSync(place.at("state")).filter((name) => name.includes("damaged")),
      [],
    );
  });

test("a failing step leaves the database as it was", async () => {
  await using place = await scratch();
  const file = place.at("state/sessions.db");
  openDatabase(opening(file, ["CREATE TABLE a (x)"]))[Symbol.dispose]();
  assert.throws(
    () => openDatabase(opening(file, ["CREATE TABLE a (x)", "CREATE TABLE b (x); CREATE TABLE a (x)"])),
    HarnessError,
  );
  using db = openDatabase(opening(file, ["CREATE TABLE a (x)"]));
  assert.deepEqual(db.all("SELECT name FROM sqlite_schema WHERE name = 'b'"), []);
});

test("only the owner can read the recorded data", async () => {
  await using place = await scratch();
  using store = openStore(place.at("state"));
  const session = store.create(ABOUT);
  session.append(message("a secret"));
  session.outputs.keep("another");
  const modes = readdirSync(place.at("state"), { recursive: true, encoding: "utf8" }).map((name) => {
    const stat = statSync(place.at("state", name));
    return [name, (stat.mode & 0o777).toString(8), stat.isDirectory() ? "700" : "600"] as const;
  });
  assert.ok(modes.length >= 6, String(modes));
  for (const [name, mode, wanted] of modes) assert.equal(mode, wanted, name);
  assert.equal(statSync(place.at("state")).mode & 0o777, 0o700);
});

test("a database that is empty beside audits is reported, and a first start is not", async () => {
  await using place = await scratch();
  {
    using first = openStore(place.at("state"), { warn: assert.fail });
    first.create(ABOUT).append(message("before"));
  }
  await place.write("state/audit/1ng41dkw23pc.jsonl", "{}\n");
  for (const suffix of ["-wal", "-shm"]) writeFileSync(place.at(`state/sessions.db${suffix}`), "");
  truncateSync(place.at("state/sessions.db"), 0);
  const warnings: string[] = [];
  using store = openStore(place.at("state"), { warn: (text) => void warnings.push(text) });
  assert.deepEqual(store.list({}), []);
  assert.match(warnings.join("\n"), /^the session database .* was empty or missing.* audits of 1 session/);
  assert.match(warnings.join("\n"), /harness sessions checkpoints --all$/);
});
