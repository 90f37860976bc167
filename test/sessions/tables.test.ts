import assert from "node:assert/strict";
import { readdirSync, readFileSync, statSync } from "node:fs";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import test from "node:test";
import { openStore } from "../../src/sessions/session-store.ts";
import { ABOUT, event, message, RECORDS, turn } from "../contract/store-words.ts";
import { scratch } from "../fixtures/scratch.ts";

function rows(file: string, sql: string): readonly unknown[] {
  const db = new DatabaseSync(file, { readOnly: true });
  try {
    return db
      .prepare(sql)
      .all()
      .map((row) => Object.values(row));
  } finally {
    db.close();
  }
}

test("messages that were rolled back stay in their table, with the record that removed them", async () => {
  await using place = await scratch();
  using store = openStore(place.at("state"));
  const session = store.create(ABOUT);
  for (const text of ["a", "b", "c"]) session.append(message(text));
  session.append({ kind: "rolled_back", to: 1 });
  session.append(message("d"));
  session.append({ kind: "cleared" });
  session.append(message("e"));
  assert.deepEqual(
    rows(
      place.at("state/sessions.db"),
      "SELECT seq, place, gone, role, json_extract(body, '$.text') FROM messages ORDER BY seq",
    ),
    [
      [1, 0, 6, "user", "a"],
      [2, 1, 4, "user", "b"],
      [3, 2, 4, "user", "c"],
      [5, 1, 6, "user", "d"],
      [7, 0, null, "user", "e"],
    ],
  );
});

test("turns and compactions have tables of their own", async () => {
  await using place = await scratch();
  using store = openStore(place.at("state"));
  const session = store.create(ABOUT);
  for (const record of RECORDS) session.append(record);
  session.append(turn("budget"));
  const file = place.at("state/sessions.db");
  assert.deepEqual(
    rows(file, "SELECT intent, status, requests, prompt_tokens, completion_tokens, cost FROM turn_results"),
    [
      ["change", "done", 2, 100, null, 0.25],
      ["change", "budget", 2, 100, null, 0.25],
    ],
  );
  assert.deepEqual(rows(file, "SELECT at_count, prune_before, keep_from, artifact FROM compactions"), [
    [3, 2, 0, ""],
  ]);
});

test("calls and verdicts can be queried; an end belongs to the last call of its name in its run", async () => {
  await using place = await scratch();
  using store = openStore(place.at("state"));
  const session = store.create(ABOUT);
  const propose = { type: "call.proposed", call: "c1", tool: "shell", args: {} } as const;
  const end = {
    type: "call.ended",
    call: "c1",
    kind: "denied",
    cause: "policy",
    text: "",
    full: null,
    ms: 2,
  } as const;
  const rules = [{ id: "net", reason: "curl reaches the network", span: [0, 4] as const }];
  const ask = { decision: "ask", contained: false, rules, runs: false, by: "nobody" } as const;
  session.log(event(propose));
  session.log({ ...event({ ...propose, tool: "read" }), agent: "c0" });
  session.log(event({ type: "call.decided", call: "c1", ...ask }));
  session.log(event(end));
  session.log(event(propose));
  session.log({ ...event({ ...end, kind: "ok", cause: null, full: "o1" }), agent: "c0" });
  const file = place.at("state/sessions.db");
  assert.deepEqual(
    rows(file, "SELECT proposed, ended, agent, tool, kind, cause, full_output FROM tool_calls"),
    [
      [1, 4, null, "shell", "denied", "policy", null],
      [2, 6, "c0", "read", "ok", null, "o1"],
      [5, null, null, "shell", null, null, null],
    ],
  );
  assert.deepEqual(rows(file, "SELECT seq, call, verdict, contained, runs, said_by, rules FROM decisions"), [
    [3, "c1", "ask", 0, 0, "nobody", JSON.stringify(rules)],
  ]);
});

test("no table keeps anything of a removed session", async () => {
  await using place = await scratch();
  using store = openStore(place.at("state"));
  const [session, other] = [store.create(ABOUT), store.create(ABOUT)];
  for (const one of [session, other]) {
    for (const record of RECORDS) one.append(record);
    one.log(event({ type: "call.proposed", call: "c1", tool: "shell", args: {} }));
    one.outputs.keep(one.id);
  }
  store.remove(session.id);
  const file = place.at("state/sessions.db");
  const tables = rows(file, "SELECT name FROM sqlite_schema WHERE sql LIKE '%session TEXT%'").flat();
  assert.ok(tables.length >= 8, String(tables));
  for (const table of tables)
    assert.deepEqual(
      rows(file, `SELECT session FROM ${String(table)} WHERE session = '${session.id}'`),
      [],
      String(table),
    );
  assert.ok(rows(file, "SELECT * FROM messages").length > 0);
});

test("removed data leaves the disk when the last process closes the database", async () => {
  await using place = await scratch();
  const state = place.at("state");
  const sizeOf = (): number => statSync(place.at("state/sessions.db")).size;
  let full = 0;
  {
    using store = openStore(state);
    const [session, other] = [store.create(ABOUT), store.create(ABOUT)];
    for (let at = 0; at < 300; at += 1) session.append(message(`a secret ${at} ${"x".repeat(3000)}`));
    session.outputs.keep("a secret output");
    other.append(message("no matter"));
    store[Symbol.dispose]();
    full = sizeOf();
    using again = openStore(state);
    again.remove(session.id);
  }
  assert.ok(sizeOf() < full / 4, `${sizeOf()} of ${full}`);
  const files = readdirSync(state, { recursive: true, encoding: "utf8" }).map((name) =>
    path.join(state, name),
  );
  const texts = files.filter((file) => statSync(file).isFile()).map((file) => readFileSync(file, "latin1"));
  assert.deepEqual(
    [texts.some((text) => text.includes("secret")), texts.some((text) => text.includes("matter"))],
    [false, true],
  );
});
