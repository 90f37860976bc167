import assert from "node:assert/strict";
import test from "node:test";
import { itemText, type ShownItem } from "../../src/render/repository-lines.ts";
import { fakeTerminal } from "../fakes/terminal.ts";

const RULES: ShownItem = {
  what: "rules for commands",
  files: [".harness/policy.toml"],
  standing: "new",
  declined: false,
  does: [{ text: "refuses git push", loosens: false }],
  problem: null,
  waits: false,
  diff: [],
};

const headOf = (item: ShownItem): string => {
  const { stream } = fakeTerminal(80);
  stream.becomePlain();
  return itemText(item, stream).split("\n")[0] ?? "";
};

test("a file that only tightens applies without trust, and one that needs approval is shown as not trusted", () => {
  const name = ".harness/policy.toml  rules for commands: ";
  assert.equal(headOf(RULES), `${name}only tightens, so it applies without trust`);
  assert.equal(headOf({ ...RULES, waits: true }), `${name}not trusted`);
  assert.equal(headOf({ ...RULES, standing: "trusted" }), `${name}trusted`);
  assert.equal(headOf({ ...RULES, problem: "it is a link" }), `${name}ignored`);
});
