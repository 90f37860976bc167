import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import type { Session, SessionStore } from "../../src/core/session.ts";
import { openStore } from "../../src/sessions/session-store.ts";
import { ABOUT, message } from "../contract/store-words.ts";
import { scratch } from "../fixtures/scratch.ts";

const fileOf = (state: string, text: string): string => {
  const hash = createHash("sha256").update(text).digest("hex");
  return path.join(state, "outputs", hash.slice(0, 2), hash);
};

const files = (state: string): readonly string[] =>
  readdirSync(path.join(state, "outputs"), { recursive: true, encoding: "utf8" }).filter(
    (name) => name.length > 2,
  );

const textOf = (session: Session, id: string): string | undefined => session.outputs.page(id, 0, 1e6)?.text;

test("an output is a file named by its content, stored once for all sessions", async () => {
  await using place = await scratch();
  using store = openStore(place.at("state"));
  const text = "déjà vu\n".repeat(100);
  for (const session of [store.create(ABOUT), store.create(ABOUT)]) {
    assert.deepEqual([session.outputs.keep(text), session.outputs.keep(text)], ["o1", "o2"]);
  }
  assert.equal(files(place.at("state")).length, 1);
  assert.equal(readFileSync(fileOf(place.at("state"), text), "utf8"), text);
});

test("a missing, cut or changed file gives no page, and keeping its text again repairs it", async () => {
  await using place = await scratch();
  using store = openStore(place.at("state"));
  const session = store.create(ABOUT);
  const text = "0123456789";
  const file = fileOf(place.at("state"), text);
  const damages = [() => rmSync(file), () => truncateSync(file, 4), () => writeFileSync(file, "0123456780")];
  for (const damage of damages) {
    const id = session.outputs.keep(text);
    assert.equal(textOf(session, id), text);
    damage();
    assert.equal(textOf(session, id), undefined);
  }
  session.outputs.keep(text);
  assert.equal(textOf(session, "o1"), text);
});

test("removing a session removes the files that only it kept, and the remains of killed writers", async () => {
  await using place = await scratch();
  const state = place.at("state");
  using store = openStore(state);
  const [one, two] = [store.create(ABOUT), store.create(ABOUT)];
  for (const text of ["only one's", "of both"]) one.outputs.keep(text);
  two.outputs.keep("of both");
  const half = `${fileOf(state, "of both")}.half`;
  writeFileSync(half, "of b");
  store.remove(one.id);
  assert.deepEqual(
    [fileOf(state, "only one's"), fileOf(state, "of both"), half].map((file) => existsSync(file)),
    [false, true, false],
  );
  assert.equal(textOf(two, "o1"), "of both");
});

test("outputs of a database that was set aside are not removed with a newer session", async () => {
  await using place = await scratch();
  const state = place.at("state");
  {
    using store = openStore(state);
    store.create(ABOUT).outputs.keep("old");
  }
  await place.write("state/sessions.db", "garbage");
  using store = openStore(state);
  const session = store.create(ABOUT);
  session.outputs.keep("new");
  store.remove(session.id);
  assert.deepEqual([existsSync(fileOf(state, "old")), existsSync(fileOf(state, "new"))], [true, false]);
});

const text = (name: string): string => name.repeat(1000);

function three(store: SessionStore): readonly [Session, Session, Session] {
  const sessions = [store.create(ABOUT), store.create(ABOUT), store.create(ABOUT)] as const;
  for (const [index, session] of sessions.entries()) session.outputs.keep(text(String(index)));
  return sessions;
}

test("over the quota the outputs of the session unchanged for longest are removed first", async () => {
  await using place = await scratch();
  using store = openStore(place.at("state"), { quota: 3500 });
  const [first, second, third] = three(store);
  first.append(message("changed last"));
  third.outputs.keep(text("x"));
  assert.deepEqual(
    [textOf(first, "o1"), textOf(second, "o1"), textOf(third, "o1"), textOf(third, "o2")],
    [text("0"), undefined, text("2"), text("x")],
  );
  assert.equal(second.outputs.keep("again"), "o2", "a name is not used twice");
  assert.equal(textOf(second, "o1"), undefined);
});

test("the session in use keeps its outputs, even if they alone exceed the quota", async () => {
  await using place = await scratch();
  using store = openStore(place.at("state"), { quota: 3500 });
  const [first, second, third] = three(store);
  for (const name of ["a", "b", "c", "d"]) first.outputs.keep(text(name));
  first.outputs.keep(text("1"));
  assert.deepEqual(
    ["o1", "o2", "o3", "o4", "o5", "o6"].map((id) => textOf(first, id)?.[0]),
    ["0", "a", "b", "c", "d", "1"],
  );
  assert.deepEqual([textOf(second, "o1"), textOf(third, "o1")], [text("1"), undefined]);
});
