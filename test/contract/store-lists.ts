import assert from "node:assert/strict";
import { EXIT, HarnessError } from "../../src/core/errors.ts";
import { ABOUT, message, turn } from "./store-words.ts";
import type { Add } from "./store-suite.ts";

const isUsage = (thrown: unknown): boolean =>
  thrown instanceof HarnessError &&
  thrown.exit === EXIT.usage &&
  thrown.remedy.includes("harness sessions list");

export function listCases(add: Add): void {
  idCases(add);
  orderCases(add);
  searchCases(add);
  noteCases(add);
}

function idCases(add: Add): void {
  add("an id is short, lower case, and can be abbreviated", ({ store, at }) => {
    const first = store.create(ABOUT).id;
    at.now += 5000;
    const second = store.create(ABOUT).id;
    assert.match(first, /^[0-9a-hjkmnp-tv-z]{12}$/);
    assert.ok(first < second, `${first} ${second}`);
    const apart = Array.from(first).findIndex((digit, index) => digit !== second[index]);
    assert.equal(store.open(first.slice(0, apart + 1)).id, first);
    assert.equal(store.open(second.slice(0, apart + 1)).id, second);
    assert.throws(() => store.open(first.slice(0, apart)), isUsage);
  });

  add("an unknown id, an empty one and a pattern open nothing", ({ store }) => {
    const { id } = store.create(ABOUT);
    for (const given of ["nothing", "", "%", "_", `${id}x`, `${id}\u0000`, "'"])
      assert.throws(() => store.open(given), isUsage, given);
    assert.throws(() => store.remove("nothing"), isUsage);
    assert.equal(store.list({}).length, 1);
  });

  add("many sessions created at once have different ids", ({ store }) => {
    const ids = Array.from({ length: 300 }, () => store.create(ABOUT).id);
    assert.equal(new Set(ids).size, 300);
  });

  add("a reserved id opens nothing until its session is created, and can be used once", ({ store }) => {
    const id = store.reserve();
    assert.throws(() => store.open(id), isUsage);
    assert.deepEqual(store.list({}), []);
    assert.notEqual(store.create(ABOUT).id, id);
    assert.equal(store.create(ABOUT, id).id, id);
    assert.equal(store.open(id).info().title, ABOUT.title);
    assert.throws(() => store.create(ABOUT, id));
    assert.equal(store.list({}).length, 2);
  });

  add("a removed session is gone, and writing to it fails", ({ store }) => {
    const [session, other] = [store.create(ABOUT), store.create(ABOUT)];
    session.append(message("a"));
    other.append(message("b"));
    store.remove(session.id);
    assert.throws(() => store.open(session.id), isUsage);
    assert.throws(() => session.append(message("c")), HarnessError);
    assert.deepEqual(store.list({}), [other.info()]);
    assert.deepEqual(other.records(), [message("b")]);
  });
}

function orderCases(add: Add): void {
  add("the last session of a workspace is the one changed last", ({ store }) => {
    assert.equal(store.last(ABOUT.workspace), undefined);
    const [first, second] = [store.create(ABOUT), store.create(ABOUT)];
    assert.equal(store.last(ABOUT.workspace), second.id);
    first.append(message("a"));
    assert.equal(store.last(ABOUT.workspace), first.id);
    store.create({ ...ABOUT, workspace: `${ABOUT.workspace}/inner` });
    assert.equal(store.last(ABOUT.workspace), first.id);
    for (const other of ["/home/dev", "/home/dev/PROJECT", "/home/dev/project/"])
      assert.equal(store.last(other), undefined, other);
  });

  add("a session states its subject and when it was started and changed", ({ store, at }) => {
    at.now = 1000;
    const session = store.create(ABOUT);
    at.now = 2000;
    session.append(message("a"));
    session.append(turn("failed"));
    const info = { ...ABOUT, id: session.id, started: 1000, changed: 2000, messages: 1, status: "failed" };
    assert.deepEqual(session.info(), info);
    assert.deepEqual(store.list({}), [info]);
  });

  add("a clock that was set back does not make a session older", ({ store, at }) => {
    const session = store.create(ABOUT);
    const { changed } = session.info();
    at.now -= 60_000;
    session.append(message("a"));
    assert.ok(session.info().changed >= changed);
  });
}

function searchCases(add: Add): void {
  add("a list is filtered by workspace, words and count, with the last changed first", ({ store }) => {
    const one = store.create({ ...ABOUT, title: "Größe of the sum" });
    const two = store.create({ ...ABOUT, workspace: "/tmp/x", title: "b" });
    const three = store.create({ ...ABOUT, title: "c" });
    one.append(message('please "quote" C:\\old\nline'));
    const ids = (filter: Parameters<typeof store.list>[0]): readonly string[] =>
      store.list(filter).map(({ id }) => id);
    assert.deepEqual(ids({}), [one.id, three.id, two.id]);
    assert.deepEqual(ids({ workspace: ABOUT.workspace }), [one.id, three.id]);
    assert.deepEqual(ids({ limit: 2 }), [one.id, three.id]);
    assert.deepEqual(ids({ limit: 0 }), []);
    for (const query of ["größe", "GRÖßE", "PLEASE", '"quote"', "c:\\OLD", "old\nline"])
      assert.deepEqual(ids({ query }), [one.id], query);
    for (const query of ["%", "_", "role", "user", "\\n", "nothing like it"])
      assert.deepEqual(ids({ query }), [], query);
    assert.deepEqual(ids({ query: "c", limit: 1 }), [one.id]);
  });

  add("rolled back messages can still be found", ({ store }) => {
    const session = store.create(ABOUT);
    session.append(message("needle"));
    session.append({ kind: "rolled_back", to: 0 });
    assert.deepEqual(store.list({ query: "needle" }), [session.info()]);
  });
}

function noteCases(add: Add): void {
  add("notes belong to a workspace, newest first", ({ store, at }) => {
    const notes = store.notes("/w");
    at.now = 7;
    const build = notes.write({ title: "Build", body: "npm run build", tags: ["npm"] });
    at.now = 8;
    const tests = notes.write({ title: "Tests", body: "are in test/", tags: [] });
    store.notes("/other").write({ title: "Else", body: "", tags: [] });
    assert.deepEqual(
      [build, tests],
      [
        { number: build.number, title: "Build", body: "npm run build", tags: ["npm"], written: 7 },
        { number: tests.number, title: "Tests", body: "are in test/", tags: [], written: 8 },
      ],
    );
    assert.deepEqual(store.notes("/w").find("", 10), [tests, build]);
    assert.deepEqual(notes.find("", 1), [tests]);
    for (const query of ["BUILD", "run b", "NPM"]) assert.deepEqual(notes.find(query, 10), [build], query);
    assert.deepEqual(notes.find("else", 10), []);
  });

  add("a note is replaced only if it is unchanged, and then is the newest", ({ store, at }) => {
    const notes = store.notes("/w");
    const [one, two] = ["one", "two"].map((title) => notes.write({ title, body: "b", tags: ["t"] }));
    assert.ok(one !== undefined && two !== undefined);
    at.now += 5;
    const text = { title: "One", body: "more", tags: [] };
    assert.equal(notes.replace(one, text), true);
    const after = { ...text, number: one.number, written: at.now };
    assert.deepEqual(notes.find("", 5), [after, two]);
    assert.equal(notes.replace(one, { ...text, body: "from what it was before" }), false);
    assert.equal(store.notes("/other").replace(after, text), false);
    assert.deepEqual(notes.get(one.number), after);
  });

  add("a removed note is gone, and its number is not reused", ({ store }) => {
    const notes = store.notes("/w");
    const text = { title: "one", body: "", tags: [] };
    const one = notes.write(text);
    assert.equal(store.notes("/other").remove(one.number), false);
    assert.deepEqual(store.notes("/other").get(one.number), undefined);
    assert.deepEqual([notes.remove(one.number), notes.remove(one.number)], [true, false]);
    assert.equal(notes.get(one.number), undefined);
    assert.equal(notes.replace(one, text), false);
    assert.notEqual(notes.write(text).number, one.number);
  });
}
