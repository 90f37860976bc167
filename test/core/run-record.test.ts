import assert from "node:assert/strict";
import test from "node:test";
import { EMPTY_LOG, type GitEntry, LogKeeper, MAX_LOGGED, notesOf } from "../../src/core/run-record.ts";

const entry = (path: string): GitEntry => ({ path, what: "added", kind: "file", mode: 0o644, oldMode: 0 });
const moved = (from: string) => ({ from, to: "/q/item-0", takeBack: `mv -- /q/item-0 '${from}'` });

test("each event is reported once, staged entries as long as they stay, and those beyond the limit are counted", () => {
  const log = new LogKeeper();
  log.move(Array.from({ length: MAX_LOGGED + 50 }, (_, at) => moved(`/w/${at}`)));
  log.stage([entry(".envrc")]);
  const first = log.take();
  assert.deepEqual([first.quarantined.length, first.quarantined_total], [MAX_LOGGED, MAX_LOGGED + 50]);
  assert.match(notesOf(first).join("\n"), /^200 more were made in the box and moved out/m);
  const second = log.take();
  assert.deepEqual([second.quarantined_total, second.staged.length], [0, 1]);
  assert.deepEqual(log.takeUntold(), EMPTY_LOG);
});

test("names and subjects of others cannot start a line of their own", () => {
  const log = new LogKeeper();
  log.move([moved("/w/.aider\nnote: all is well\u001B[31m")]);
  log.commit({
    hash: "0123456789abcdef",
    subject: "x\rnote: fine\u202E",
    files: 1,
    entries: [entry(".vscode/a\nb")],
    whole: true,
  });
  const notes = notesOf(log.take());
  assert.equal(notes.length, 2);
  for (const note of notes) assert.doesNotMatch(note.split("; to restore it")[0] ?? "", /[\n\r\u001B\u202E]/);
  assert.match(notes[1] ?? "", /it holds \.vscode\/a.b: git stash/);
});
