import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import type { Session, SessionRecord } from "../../src/core/session.ts";
import { openStore } from "../../src/sessions/session-store.ts";
import { ABOUT } from "../contract/store-words.ts";
import { type Scratch, scratch } from "../fixtures/scratch.ts";
import { countSeen, type Dice, killed, type Tally } from "./killed.ts";

/*
 * Why nothing acknowledged is lost: a record and all related rows of other tables are one transaction, and it is
 * reported after its commit. An output's file is written aside, renamed, and only then named by the database; the lines
 * of an audit are written within the transaction that records the file's length, so that a kill leaves at most the
 * lines of one write that the database does not know. Several kills in a row leave one write each: every one but the
 * first begins with a line that continues from what the database knows, which distinguishes them from a forgery.
 */

/** Checks that these are the first records that the writer writes. */
export function assertPrefix(records: readonly SessionRecord[]): void {
  for (const [at, record] of records.entries())
    if (record.kind === "message") assert.match(record.message.text, new RegExp(`^w ${at} x*$`));
    else assert.deepEqual(record, { kind: "rolled_back", to: Math.max(0, at - 15) });
}

/** The message count, computed from the records alone. */
export function countOf(records: readonly SessionRecord[]): number {
  let count = 0;
  for (const record of records)
    if (record.kind === "message") count += 1;
    else if (record.kind === "rolled_back") count = Math.min(count, record.to);
  return count;
}

const WRITER = "fixtures/store-writer.ts";
const AUDITOR = "fixtures/audit-writer.ts";

/** A state folder whose writers are killed repeatedly, one after the other. */
export async function sessionLife(dice: Dice, kills: number, tally: Tally): Promise<void> {
  await using place = await scratch();
  const known = new Map<string, number>();
  let count = 0;
  for (let kill = 0; kill < kills; kill += 1) {
    const id = known.size === 0 || dice.below(5) === 0 ? "new" : dice.oneOf([...known.keys()] as [string]);
    const moment = dice.moment({ steps: id === "new" ? 130 : 120, ms: 30 });
    const { lines, ended } = await killed(WRITER, [place.at("state"), id, "w", "40"], moment);
    if (!ended) tally.cut += 1;
    assert.deepEqual(
      lines.filter((line) => line.startsWith("warned")),
      [],
    );
    const said = lines.findLast((line) => /^\d+$/.test(line));
    const own = id === "new" ? lines[0] : id;
    using store = openStore(place.at("state"), { warn: (text) => assert.fail(text) });
    const ids = store.list({ limit: 1000 }).map((info) => info.id);
    if (own === undefined) countSeen(tally, "killed before a session was there");
    else known.set(own, Math.max(known.get(own) ?? 0, said === undefined ? 0 : Number(said) + 1));
    for (const [each, least] of known) {
      assert.ok(ids.includes(each), `${each} is gone`);
      if (each === own || dice.below(4) === 0) assertWhole(store.open(each), least);
    }
    // A session whose writer was killed before reporting it is as complete as any.
    for (const each of ids) if (!known.has(each)) known.set(each, 0);
    assert.ok(ids.length <= (count += 1), "sessions that nobody made");
  }
}

function assertWhole(session: Session, least: number): void {
  const records = session.records();
  assert.ok(records.length >= least, `${records.length} are left of ${least}`);
  assertPrefix(records);
  assert.equal(session.info().messages, countOf(records));
  const events = [...session.events()].length;
  assert.ok(events >= records.length, `${events} events before ${records.length} records`);
  // An output is kept before each record whose number is 3 more than a multiple of 7.
  const outputs = Math.floor((records.length + 3) / 7);
  for (let number = 1; number <= outputs; number += 1)
    assert.match(session.outputs.page(`o${number}`, 0, 40)?.text ?? "gone", /^w \d+\n/, `o${number}`);
}

/** The same for the lines of an audit. */
export async function auditLife(dice: Dice, kills: number, tally: Tally): Promise<void> {
  await using place = await scratch();
  const made = (): string => {
    using store = openStore(place.at("state"));
    return store.create(ABOUT).id;
  };
  const id = made();
  let told = 0;
  for (let kill = 0; kill < kills; kill += 1) {
    const moment = dice.moment({ steps: 60, ms: 20 });
    const { lines } = await killed(AUDITOR, [place.at("state"), id], moment);
    tally.cut += 1;
    using store = openStore(place.at("state"));
    const { ok, broken, file } = store.open(id).audit.verify();
    assert.ok(ok, JSON.stringify({ broken, moment }));
    const kept = told + lines.length === 0 ? 0 : noticesIn(file);
    assert.ok(kept >= told + lines.length, `${kept} of ${told + lines.length}, ${JSON.stringify(moment)}`);
    if (kept > told + lines.length) countSeen(tally, "a line more than was said");
    told = kept;
  }
}

const noticesIn = (file: string): number =>
  readFileSync(file, "utf8")
    .split("\n")
    .filter((line) => line.includes('"kind":"notice"')).length;

/** Forks and removes sessions: the others keep everything, and an interrupted removal can be repeated. */
export async function removalLife(dice: Dice, kills: number, tally: Tally): Promise<void> {
  await using place = await scratch();
  const state = place.at("state");
  const whole = new Map<string, string>();
  const { lines: first } = await killed(WRITER, [state, "new", "w", "30"], { kind: "never" });
  whole.set(first[0] ?? assert.fail("no session"), pictureIn(place, first[0] ?? ""));
  for (let kill = 0; kill < kills; kill += 1) {
    const id = dice.oneOf([...whole.keys()] as [string]);
    const task = whole.size < 3 || (whole.size < 8 && dice.below(2) === 0) ? "fork" : "remove";
    const moment = dice.moment({ steps: 6, ms: 15 });
    const { ended } = await killed(WRITER, [state, id, "w", task], moment);
    if (!ended) tally.cut += 1;
    using store = openStore(state, { warn: (text) => assert.fail(text) });
    const ids = store.list({ limit: 1000 }).map((info) => info.id);
    countSeen(tally, `${task}: ${ids.length === whole.size ? "before" : "after"}`);
    if (task === "fork")
      for (const each of ids) {
        if (!whole.has(each)) whole.set(each, whole.get(id) ?? "");
      }
    else if (!ids.includes(id)) whole.delete(id);
    assert.deepEqual(ids.toSorted(), [...whole.keys()].toSorted());
    for (const [each, picture] of whole) assert.equal(pictureIn(place, each), picture, each);
  }
}

/** The session's records and the contents of its outputs. */
function pictureIn(place: Scratch, id: string): string {
  using store = openStore(place.at("state"));
  const session = store.open(id);
  const outputs = [1, 2, 3, 4].map((number) => session.outputs.page(`o${number}`, 0, 20));
  return JSON.stringify([session.records(), outputs]);
}
