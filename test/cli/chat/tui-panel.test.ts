import assert from "node:assert/strict";
import test from "node:test";
import { choicesOf, yesOrNo } from "../../../src/cli/approval-question.ts";
import { ChoicePanel, LinePanel } from "../../../src/cli/chat/tui-panel.ts";
import { answersTo } from "../../../src/render/tty/call-lines.ts";
import type { Key } from "../../../src/render/tui/terminal-keys.ts";

const key = (name: string): Key => ({ kind: "key", name });
const text = (typed: string): Key => ({ kind: "text", text: typed });

function panel(offered: Partial<Parameters<typeof answersTo>[0]> = {}): ChoicePanel {
  const all = { grants: false, edits: true, whole: true, ...offered };
  return new ChoicePanel({ asks: "run it?", answers: answersTo(all), choices: choicesOf(all) });
}

/** What these keys come to. */
function answered(keys: readonly Key[], offered?: Parameters<typeof panel>[0]): unknown {
  const asked = panel(offered);
  for (const each of keys) {
    const settled = asked.take(each);
    if (settled !== undefined) return settled.is;
  }
  return "open";
}

const enter = key("enter");

for (const [what, keys, wanted] of [
  ["Enter alone", [enter], "no"],
  ["y and Enter", [text("y"), enter], "yes"],
  ["the whole word", [text("yes"), enter], "yes"],
  ["y alone", [text("y")], "open"],
  ["other words that begin with y", [text("y"), text("ou"), enter], "no"],
  ["a deleted answer", [text("yo"), key("backspace"), enter], "yes"],
  ["s", [text("s"), enter], "session"],
  ["a", [text("A"), enter], "always"],
  ["t", [text("t"), enter], "tell"],
  ["e", [text("e"), enter], "edit"],
  ["n", [text("n"), enter], "no"],
  ["an arrow up from no", [key("up"), enter], "always"],
  ["arrows to the first", [key("up"), key("up"), key("up"), key("up"), enter], "yes"],
  ["a paste", [{ kind: "paste", text: "y\n" } as Key, enter], "no"],
  ["Ctrl-C", [key("ctrl+c")], "interrupt"],
  ["Escape", [key("escape")], "interrupt"],
  ["Ctrl-D", [key("ctrl+d")], "no"],
] as const)
  test(`${what}: ${wanted}`, () => assert.equal(answered(keys), wanted));

for (const [what, offered, wanted] of [
  ["y and Enter", [text("y"), enter], "once"],
  ["n and Enter", [text("n"), enter], "no"],
  ["Ctrl-D at a marked yes", [key("up"), key("up"), key("ctrl+d")], "no"],
  ["Ctrl-D at a typed yes", [text("y"), key("ctrl+d")], "no"],
  ["Escape at a typed yes", [text("y"), key("escape")], "interrupted"],
] as const)
  test(`the history shows the answer that was given: ${what}`, () => {
    const asked = panel();
    const settled = offered.map((each) => asked.take(each)).at(-1);
    assert.ok(settled !== undefined);
    assert.equal(asked.wordsOf(settled.is), wanted);
  });

test("a plain question refused by Ctrl-D is shown as refused", () => {
  const asked = new ChoicePanel(yesOrNo("Take this back?"));
  asked.take(text("y"));
  assert.equal(asked.wordsOf(asked.take(key("ctrl+d"))?.is ?? "yes"), "no");
});

test("no key approves what was not shown completely", () => {
  for (const letter of ["y", "s", "a", "g", "e"])
    assert.equal(answered([text(letter), enter], { whole: false }), "no", letter);
  assert.equal(answered([text("t"), enter], { whole: false }), "tell");
});

test("a grant is accepted only where something can be granted", () => {
  assert.equal(answered([text("g"), enter], { grants: true }), "call");
  assert.equal(answered([text("g"), enter]), "no");
});

const line = (...keys: readonly Key[]): unknown => {
  const asked = new LinePanel("edit> ", "npm test", 80);
  return keys.map((each) => asked.take(each)).at(-1);
};

test("a line can be entered, left empty or discarded", () => {
  assert.deepEqual(line(text(" -v"), enter), { is: "npm test -v" });
  assert.deepEqual(line(key("ctrl+u"), enter), { is: "" });
  assert.deepEqual(line(key("escape")), { is: undefined });
  assert.deepEqual(line(key("ctrl+c")), { is: undefined });
});
