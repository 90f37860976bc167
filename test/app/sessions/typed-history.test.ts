import assert from "node:assert/strict";
import { mkdirSync, readdirSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import {
  isKept,
  MAX_KEPT,
  MAX_TEXT,
  typedHistory,
  withTyped,
} from "../../../src/app/sessions/typed-history.ts";
import { scratch } from "../../fixtures/scratch.ts";

test("typed texts are available to the next chat, per workspace, and readable only by their owner", async () => {
  await using place = await scratch();
  const of = (workspace: string) => typedHistory({ stateDir: place.at("state"), workspace });
  assert.deepEqual(of("/a").read(), []);
  for (const text of ["one", "two\nlines", "one"]) assert.equal(await of("/a").keep(text), undefined);
  assert.equal(await of("/b").keep("other"), undefined);
  assert.deepEqual(
    [of("/a").read(), of("/b").read(), of("/c").read()],
    [["two\nlines", "one"], ["other"], []],
  );
  const folder = place.at("state/typed");
  for (const name of readdirSync(folder))
    assert.equal(statSync(path.join(folder, name)).mode & 0o777, 0o600, name);
});

test("two chats that write at the same time lose nothing", async () => {
  await using place = await scratch();
  const history = () => typedHistory({ stateDir: place.path, workspace: "/a" });
  await Promise.all(Array.from({ length: 8 }, (_, at) => history().keep(`text ${at}`)));
  assert.equal(history().read().length, 8);
});

test("texts with secrets, with a leading blank or of too great a length are not stored", async () => {
  await using place = await scratch();
  const history = typedHistory({ stateDir: place.path, workspace: "/a" });
  const token = `ghp_${"a1B2".repeat(10)}`;
  for (const text of [`use ${token} here`, " not this", "\tnor this", "", "x".repeat(MAX_TEXT + 1)]) {
    assert.equal(isKept(text), false, text.slice(0, 20));
    assert.equal(await history.keep(text), undefined);
  }
  assert.deepEqual(history.read(), []);
  for (const text of ["use a token here", "not this ", "x".repeat(MAX_TEXT)])
    assert.equal(isKept(text), true);
});

test("the oldest texts are dropped when there are too many or they are too large", () => {
  const many = Array.from({ length: MAX_KEPT }, (_, at) => `${at}`);
  const next = withTyped(many, "new");
  assert.deepEqual([next.length, next[0], next.at(-1)], [MAX_KEPT, "1", "new"]);
  const long = Array.from({ length: MAX_KEPT }, (_, at) => `${at}${"x".repeat(8000)}`);
  const fewer = withTyped(long, "new");
  assert.ok(fewer.length > 10 && fewer.length < 40, `${fewer.length}`);
  assert.equal(fewer.at(-1), "new");
});

test("a damaged or linked file counts as empty, and a folder that cannot be created is reported", async () => {
  await using place = await scratch();
  const history = typedHistory({ stateDir: place.path, workspace: "/a" });
  await history.keep("one");
  const name = readdirSync(place.at("typed")).find((each) => each.endsWith(".json")) ?? "";
  writeFileSync(place.at("typed", name), '["one", 2');
  assert.deepEqual(history.read(), []);
  await history.keep("two");
  assert.deepEqual(history.read(), ["two"]);
  const linked = typedHistory({ stateDir: place.at("linked"), workspace: "/a" });
  mkdirSync(place.at("linked/typed"), { recursive: true });
  symlinkSync(place.at("typed", name), place.at("linked/typed", name));
  assert.deepEqual(linked.read(), []);
  writeFileSync(place.at("file"), "");
  assert.notEqual(await typedHistory({ stateDir: place.at("file"), workspace: "/a" }).keep("x"), undefined);
});
