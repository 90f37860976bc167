import assert from "node:assert/strict";
import test from "node:test";
import {
  boxNote,
  isTyped,
  modeNote,
  namedNote,
  networkNote,
  undoNote,
  typedText,
} from "../../src/app/run/person-request.ts";
import { networkOf, systemPrompt } from "../../src/agent/context/prompt.ts";
import type { Message } from "../../src/core/model-provider.ts";

const user = (text: string): Message => ({ role: "user", text });

test("a change of mode is reported when it differs from what the model knows", () => {
  const note = modeNote([user("hello")], "workspace-write", "read-only");
  assert.match(note, /^\n\n\[harness\] The mode is read-only now: /);
  const told = [user(`look${note}`), user("and now?")];
  assert.equal(modeNote(told, "workspace-write", "read-only"), "");
  assert.match(modeNote(told, "workspace-write", "workspace-write"), /The mode is workspace-write now/);
});

test("a note that was rolled back with its message is given again", () => {
  assert.notEqual(modeNote([user("hello")], "workspace-write", "read-only"), "");
  assert.equal(modeNote([], "read-only", "read-only"), "");
});

test("the note is not part of what a person typed", () => {
  const note = modeNote([], "workspace-write", "danger-full-access");
  assert.equal(typedText(`do it${note}`), "do it");
  assert.equal(typedText("do it"), "do it");
});

test("a change of the network is reported when it differs from the system prompt or an earlier note", () => {
  const [none, npm] = ["none. Downloads fail.", "only the registries of npm, to read."];
  const pinned = `You are harness.\nNetwork: ${none}\n\nHow to work`;
  const facts = { workspace: "/w", mode: "workspace-write", domains: [], instructions: "" } as const;
  const now = networkOf("workspace-write", [], []);
  for (const instructions of ["", "Be kind."])
    assert.equal(networkNote([], systemPrompt({ ...facts, instructions }), now), "", instructions);
  assert.equal(networkNote([user("hello")], pinned, none), "");
  const note = networkNote([user("hello")], pinned, npm);
  assert.equal(note, `\n\n[harness] The network from now on: ${npm}`);
  const told = [user(`install${note}`), user("and now?")];
  assert.equal(networkNote(told, pinned, npm), "");
  assert.notEqual(networkNote(told, pinned, none), "");
  const mode = modeNote([], "workspace-write", "read-only");
  assert.equal(typedText(`install${note}${mode}`), "install");
  assert.equal(modeNote([user(`install${note}${mode}`)], "workspace-write", "read-only"), "");
  assert.equal(networkNote([user(`install${note}${mode}`)], pinned, npm), "");
});

test("messages from the loop are not something a person typed", () => {
  assert.equal(isTyped(user("fix it")), true);
  assert.equal(isTyped(user("[harness] Your reply was cut")), false);
});

test("files that were undone are reported once, and again if that was forgotten", () => {
  const worked: readonly Message[] = [user("write"), { role: "tool", call: "c1", text: "made" }];
  const paths = ["src/a.ts", "two\nlines"];
  const note = undoNote(worked, [{ step: 4, kind: "undo", paths }]);
  assert.match(
    note,
    /^\n\n\[harness\] Undone \(step 4\): .* what you changed in "src\/a\.ts", "two\\nlines"\. /,
  );
  const told = [...worked, user(`and now?${note}`)];
  assert.equal(undoNote(told, [{ step: 4, kind: "undo", paths }]), "");
  const again = undoNote(told, [
    { step: 4, kind: "undo", paths },
    { step: 5, kind: "redo", paths: [] },
  ]);
  assert.match(again, /^\n\n\[harness\] Redone \(step 5\): .*some of what you changed\.$/);
  assert.equal(undoNote([user("hello")], [{ step: 4, kind: "undo", paths }]), "", "it has changed nothing");
  assert.equal(typedText(`and now?${note}${again}`), "and now?");
  const many = undoNote(worked, [
    { step: 4, kind: "undo", paths: Array.from({ length: 50 }, (_, at) => `${at}`) },
  ]);
  assert.match(many, /"19" and 30 more\./);
});

test("a new box is reported to a conversation that used the previous one", () => {
  const worked = [user("install"), user("done")];
  assert.equal(boxNote(worked, undefined), "");
  const note = boxNote(worked, 2);
  assert.match(note, /^\n\n\[harness\] The box is a new one: /);
  assert.equal(boxNote([...worked, user(`go on${note}`)], 2), "");
  const mode = modeNote([], "workspace-write", "read-only");
  assert.equal(boxNote([...worked, user(`go on${mode}`)], 2), "");
  assert.equal(boxNote([...worked, user(`go on${note}`)], 3), note);
  assert.equal(typedText(`go on${note}`), "go on");
});

test("mentioned files are listed in one line that is not part of the typed text", () => {
  assert.equal(namedNote([]), "");
  const note = namedNote(["src/a.ts", "with blank.md"]);
  assert.equal(note, '\n\n[harness] With @ it names, in the workspace: "src/a.ts", "with blank.md"');
  const mode = modeNote([], "workspace-write", "read-only");
  assert.equal(typedText(`see @src/a.ts${note}${mode}`), "see @src/a.ts");
});
