import assert from "node:assert/strict";
import path from "node:path";
import test from "node:test";
import { describeFailure, failureText } from "../../src/app/stderr-messages.ts";
import { ALL_HOSTILE, activeBesideEmoji } from "../fixtures/hostile.ts";
import { fakeTerminal } from "../fakes/terminal.ts";

const LONG =
  "the folder of this session is gone, or is no folder any more, and nothing that it held can be looked at from here";
const COMMAND = `harness run --continue --check "make test" ${"--allow-domain example.org ".repeat(4).trim()}`;

test("an error message is wrapped between words, and the command to type stays on one line", () => {
  for (const columns of [40, 80, 120]) {
    const { stream } = fakeTerminal(columns);
    const rows = failureText({ message: LONG, remedy: COMMAND }, stream).trimEnd().split("\n");
    const said = rows.slice(0, -1);
    assert.ok(
      said.every((row) => row.length <= columns),
      said.join("\n"),
    );
    assert.equal(said.map((row) => row.trim()).join(" "), `error: ${LONG}`);
    assert.equal(rows.at(-1), `  next: ${COMMAND}`);
  }
  assert.equal(failureText({ message: LONG, remedy: "" }, fakeTerminal().stream), `error: ${LONG}\n`);
});

test("nothing in an error acts on the terminal", () => {
  for (const columns of [undefined, 40]) {
    const text = failureText({ message: ALL_HOSTILE, remedy: ALL_HOSTILE }, fakeTerminal(columns).stream);
    assert.equal(activeBesideEmoji(text), undefined);
  }
});

test("the folder that the remedy names exists", () => {
  const thrown = Object.assign(new Error("EACCES: permission denied, mkdir"), {
    code: "EACCES",
    syscall: "mkdir",
    path: path.join(import.meta.dirname, "no/such/folder/at/all"),
  });
  assert.match(
    describeFailure(thrown, []).remedy,
    new RegExp(`^ls -ld ${import.meta.dirname}; df -h ${import.meta.dirname} `),
  );
});
