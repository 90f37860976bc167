import assert from "node:assert/strict";
import test from "node:test";
import { isTyped, modeNote, namedNote, networkNote, withoutMode } from "../../src/app/run/mode-note.ts";
import type { Message } from "../../src/core/messages.ts";

const user = (text: string): Message => ({ role: "user", text });

test("a mode is told when it is another one than the model knows", () => {
  const note = modeNote([user("hello")], "workspace-write", "read-only");
  assert.match(note, /^\n\n\[harness\] The mode is read-only now: /);
  const told = [user(`look${note}`), user("and now?")];
  assert.equal(modeNote(told, "workspace-write", "read-only"), "");
  assert.match(modeNote(told, "workspace-write", "workspace-write"), /The mode is workspace-write now/);
});

test("a note that was taken back with its message is told again", () => {
  assert.notEqual(modeNote([user("hello")], "workspace-write", "read-only"), "");
  assert.equal(modeNote([], "read-only", "read-only"), "");
});

test("the note is no part of what a person has typed", () => {
  const note = modeNote([], "workspace-write", "danger-full-access");
  assert.equal(withoutMode(`do it${note}`), "do it");
  assert.equal(withoutMode("do it"), "do it");
});

test("a network is told when it is another one than the system prompt or an earlier note says", () => {
  const [none, npm] = ["none. Downloads fail.", "only the registries of npm, to read."];
  const pinned = `You are harness.\nNetwork: ${none}\n\nHow to work`;
  assert.equal(networkNote([user("hello")], pinned, none), "");
  const note = networkNote([user("hello")], pinned, npm);
  assert.equal(note, `\n\n[harness] The network from now on: ${npm}`);
  const told = [user(`install${note}`), user("and now?")];
  assert.equal(networkNote(told, pinned, npm), "");
  assert.notEqual(networkNote(told, pinned, none), "");
  const mode = modeNote([], "workspace-write", "read-only");
  assert.equal(withoutMode(`install${note}${mode}`), "install");
  assert.equal(modeNote([user(`install${note}${mode}`)], "workspace-write", "read-only"), "");
  assert.equal(networkNote([user(`install${note}${mode}`)], pinned, npm), "");
});

test("what the loop says for a person is not typed by them", () => {
  assert.equal(isTyped(user("fix it")), true);
  assert.equal(isTyped(user("[harness] Your reply was cut")), false);
});

test("files that were named are told in one line, which nobody has typed", () => {
  assert.equal(namedNote([]), "");
  const note = namedNote(["src/a.ts", "with blank.md"]);
  assert.equal(note, '\n\n[harness] With @ it names, in the workspace: "src/a.ts", "with blank.md"');
  const mode = modeNote([], "workspace-write", "read-only");
  assert.equal(withoutMode(`see @src/a.ts${note}${mode}`), "see @src/a.ts");
});
