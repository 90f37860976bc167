import assert from "node:assert/strict";
import test from "node:test";
import { Memory } from "../../../src/agent/context/memory.ts";
import type { SessionRecord } from "../../../src/core/session.ts";

function remembered(): { readonly memory: Memory; readonly records: SessionRecord[] } {
  const records: SessionRecord[] = [];
  return { memory: new Memory("/repo", [], (record) => void records.push(record)), records };
}

const again = (records: readonly SessionRecord[]): Memory => new Memory("/repo", records, () => undefined);

test("the known files are rolled back with the history and restored with the session", () => {
  const { memory, records } = remembered();
  memory.history.add({ role: "user", text: "one" });
  memory.seen.saw("/repo/a", "1");
  memory.history.add({ role: "user", text: "two" });
  memory.history.add({ role: "assistant", text: "", calls: [] });
  memory.seen.saw("/repo/b", "2");
  memory.seen.saw("/repo/a", "3");
  assert.deepEqual(
    [again(records).seen.hashOf("/repo/a"), again(records).seen.hashOf("/repo/b")],
    ["3", "2"],
  );
  memory.rollBack(1);
  for (const each of [memory, again(records)])
    assert.deepEqual([each.seen.hashOf("/repo/a"), each.seen.hashOf("/repo/b")], ["1", undefined]);
});

test("a forgotten file is known again when the turn that forgot it is rolled back", () => {
  const { memory, records } = remembered();
  memory.history.add({ role: "user", text: "one" });
  memory.seen.saw("/repo/a", "1");
  memory.history.add({ role: "user", text: "two" });
  memory.history.add({ role: "user", text: "three" });
  memory.seen.forget("/repo/a");
  assert.equal(memory.seen.hashOf("/repo/a"), undefined);
  memory.rollBack(1);
  assert.deepEqual([memory.seen.hashOf("/repo/a"), again(records).seen.hashOf("/repo/a")], ["1", "1"]);
});

test("clear forgets the known files and keeps the system prompt", () => {
  const { memory, records } = remembered();
  memory.history.pin("the prompt");
  memory.history.add({ role: "user", text: "one" });
  memory.seen.saw("/repo/a", "1");
  memory.clear();
  for (const each of [memory, again(records)]) {
    assert.equal(each.seen.hashOf("/repo/a"), undefined);
    assert.deepEqual(each.history.view(), [{ role: "system", text: "the prompt" }]);
  }
});

test("a subagent knows its parent's files, and the parent does not know the subagent's", () => {
  const { memory, records } = remembered();
  memory.seen.saw("/repo/a", "1");
  const { memory: child } = memory.child("/repo");
  child.seen.saw("/repo/b", "2");
  child.history.add({ role: "user", text: "a part" });
  assert.deepEqual([child.seen.hashOf("/repo/a"), memory.seen.hashOf("/repo/b")], ["1", undefined]);
  assert.equal(records.length, 1);
});

test("a subagent starts in the folder of its parent's shell without its variables, and changes folder independently", () => {
  const { memory } = remembered();
  memory.shell.move("/repo/src", { A: "1" });
  const { memory: child, records } = memory.child("/repo");
  assert.deepEqual([child.shell.folder, child.shell.env], ["/repo/src", {}]);
  child.shell.move("/repo/test", {});
  assert.equal(memory.shell.folder, "/repo/src");
  const { memory: parked } = memory.child("/repo", { records, name: "one" });
  assert.equal(parked.shell.folder, "/repo/test");
  assert.equal(remembered().memory.child("/repo").records.length, 0);
});

test("the shell's folder and variables are restored with the session", () => {
  const { memory, records } = remembered();
  memory.shell.move("/repo/src", { A: "1" });
  memory.shell.move("/repo/src", { A: "1" });
  assert.equal(records.length, 1);
  const { folder, env } = again(records).shell;
  assert.deepEqual([folder, env], ["/repo/src", { A: "1" }]);
});

const plan = (text: string) => [{ text, status: "doing" }] as const;

test("the plan is rolled back with the history, restored with the session and cleared with the conversation", () => {
  const { memory, records } = remembered();
  memory.history.add({ role: "user", text: "one" });
  memory.planned(plan("first"));
  memory.history.add({ role: "user", text: "two" });
  memory.planned(plan("second"));
  assert.deepEqual([memory.plan, again(records).plan], [plan("second"), plan("second")]);
  memory.rollBack(1);
  assert.deepEqual([memory.plan, again(records).plan], [plan("first"), plan("first")]);
  memory.clear();
  assert.deepEqual([memory.plan, again(records).plan], [[], []]);
});
