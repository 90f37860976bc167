import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import test from "node:test";
import { knownNotes, knownSessions } from "../../src/sessions/known-sessions.ts";
import { openStore } from "../../src/sessions/session-store.ts";
import { ABOUT } from "../contract/store-words.ts";
import { scratch } from "../fixtures/scratch.ts";

test("the folder's sessions come first, then the others, the last changed first", async () => {
  await using place = await scratch();
  const ids = { old: "", other: "", fresh: "" };
  {
    let now = 1_700_000_000_000;
    using store = openStore(place.at("state"), { now: () => (now += 60_000) });
    ids.old = store.create({ ...ABOUT, workspace: "/here", title: "old" }).id;
    ids.fresh = store.create({ ...ABOUT, workspace: "/here", title: "fresh" }).id;
    ids.other = store.create({ ...ABOUT, workspace: "/there", title: "other" }).id;
  }
  const found = knownSessions(place.at("state"), "/here", 10);
  assert.deepEqual(found, [
    { id: ids.fresh, title: "fresh", model: ABOUT.model },
    { id: ids.old, title: "old", model: ABOUT.model },
    { id: ids.other, title: "other", model: ABOUT.model },
  ]);
  assert.deepEqual(
    knownSessions(place.at("state"), "/there", 1).map(({ id }) => id),
    [ids.other],
  );
});

test("sessions can be listed while another process writes", async () => {
  await using place = await scratch();
  using store = openStore(place.at("state"));
  const { id } = store.create(ABOUT);
  using writer = new DatabaseSync(place.at("state/sessions.db"));
  writer.exec("BEGIN IMMEDIATE");
  assert.deepEqual(
    knownSessions(place.at("state"), "/", 5).map((each) => each.id),
    [id],
  );
});

test("nothing is created where nothing exists, and a damaged database is left unchanged", async () => {
  await using place = await scratch({ "state/sessions.db": "this is no database, but it is long enough" });
  assert.deepEqual(knownSessions(place.at("none"), "/", 5), []);
  assert.deepEqual(knownSessions(place.at("state"), "/", 5), []);
  assert.deepEqual(readdirSync(place.path), ["state"]);
  assert.deepEqual(readdirSync(place.at("state")), ["sessions.db"]);
});

test("the folder's notes are listed with their numbers, the newest first", async () => {
  await using place = await scratch();
  {
    using store = openStore(place.at("state"));
    for (const title of ["old", "fresh"]) store.notes("/here").write({ title, body: "", tags: [] });
    store.notes("/there").write({ title: "other", body: "", tags: [] });
  }
  assert.deepEqual(knownNotes(place.at("state"), "/here", 5), [
    { number: 2, title: "fresh" },
    { number: 1, title: "old" },
  ]);
  assert.deepEqual(knownNotes(place.at("state"), "/here", 1).length, 1);
  assert.deepEqual(knownNotes(place.at("none"), "/here", 5), []);
});
