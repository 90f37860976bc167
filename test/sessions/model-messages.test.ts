import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import test from "node:test";
import { History } from "../../src/agent/context/history.ts";
import type { Message } from "../../src/core/model-provider.ts";
import { openStore } from "../../src/sessions/session-store.ts";
import { ABOUT } from "../contract/store-words.ts";
import { fc } from "../fixtures/property.ts";
import { scratch } from "../fixtures/scratch.ts";

interface Row {
  readonly role: string;
  readonly form: string;
  readonly body: string;
}

function viewIn(file: string, session: string): readonly Row[] {
  const db = new DatabaseSync(file, { readOnly: true });
  try {
    const sql = "SELECT role, form, body FROM model_messages WHERE session = ?";
    return db.prepare(sql).all(session) as unknown as readonly Row[];
  } finally {
    db.close();
  }
}

/** The messages that the model sees must equal the rows of the table. */
function assertSame(seen: readonly Message[], rows: readonly Row[]): void {
  assert.deepEqual(
    rows.map(({ role }) => role),
    seen.map(({ role }) => role),
  );
  for (const [at, { form, body }] of rows.entries()) {
    const message = seen[at];
    if (form === "whole") assert.deepEqual(JSON.parse(body), message);
    else if (form === "pinned") assert.equal(message?.text, body);
    else if (form === "summary") assert.ok(message?.text.includes(`\n${body}\n[End of the summary]`));
    else {
      assert.match(message?.text ?? "", /^\[result of .* no longer shown/);
      assert.notEqual((JSON.parse(body) as Message).text, message?.text);
    }
  }
}

const WORDS = ["user", "reply", "calls", "short", "long", "compact", "back", "clear"] as const;
const step = fc.record({ word: fc.constantFrom(...WORDS), a: fc.nat(30), b: fc.nat(30) });

function take(history: History, { word, a, b }: { word: string; a: number; b: number }, nth: number): void {
  const open = history.openReply?.calls[0];
  const call = (name: string) => ({ id: `${name}${nth}`, name, args: {} });
  if (word === "user") history.add({ role: "user", text: `ask ${nth}` });
  else if (word === "reply") history.add({ role: "assistant", text: `say ${nth}`, calls: [] });
  else if (word === "calls")
    history.add({ role: "assistant", text: "", calls: [call("x"), call("y")].slice(a % 2) });
  else if (word === "back") history.rollBack(a);
  else if (word === "clear") history.clear();
  else if (word === "compact") {
    const at = history.count;
    const [keepFrom, pruneBefore] = [Math.min(a, at), Math.min(b, at)];
    history.compact({ at, keepFrom, pruneBefore, artifact: `artifact ${nth}` });
  } else if (open !== undefined)
    history.add({ role: "tool", call: open.id, text: word === "long" ? "é".repeat(300) : "b".repeat(299) });
}

test("model_messages has exactly the messages that the model sees, whatever was done to the history", async () => {
  await using place = await scratch();
  using store = openStore(place.at("state"));
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const session = store.create(ABOUT);
      const history = new History((record) => session.append(record));
      history.pin("You change code.");
      for (const [nth, each] of steps.entries()) take(history, each, nth);
      assertSame(history.view(), viewIn(place.at("state/sessions.db"), session.id));
    }),
    { numRuns: 150 },
  );
});

test("a session without a prompt or a compaction consists of its messages, without those of others", async () => {
  await using place = await scratch();
  using store = openStore(place.at("state"));
  const [one, other] = [store.create(ABOUT), store.create(ABOUT)];
  one.append({ kind: "message", message: { role: "user", text: "one" } });
  other.append({ kind: "pinned", text: "first" });
  other.append({ kind: "pinned", text: "second" });
  other.append({ kind: "message", message: { role: "user", text: "other" } });
  const file = place.at("state/sessions.db");
  assert.deepEqual(
    [one, other].map(({ id }) => viewIn(file, id).map(({ form, body }) => [form, body])),
    [
      [["whole", '{"role":"user","text":"one"}']],
      [
        ["pinned", "first"],
        ["whole", '{"role":"user","text":"other"}'],
      ],
    ],
  );
});
