import { mkdirSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { openStore } from "../src/sessions/session-store.ts";
import { ABOUT, event } from "../test/contract/store-words.ts";
import { scratch } from "../test/fixtures/scratch.ts";
import { type Figure, inTurn, type Measured } from "./figure.ts";

const CALLS = 1500;
const WRITES_PER_CALL = 6;

/** Microseconds per write for what one tool call makes the store write, over a session of this many calls. */
async function perWrite(): Promise<number> {
  await using place = await scratch();
  using store = openStore(place.at("state"));
  const session = store.create(ABOUT);
  const start = performance.now();
  for (let at = 0; at < CALLS; at += 1) {
    const call = `c${at}`;
    const calls = [{ id: call, name: "shell", args: { command: "npm test" } }];
    session.append({ kind: "message", message: { role: "assistant", text: "I run the tests.", calls } });
    session.log(event({ type: "call.proposed", call, tool: "shell", args: { command: "npm test" } }));
    session.log(
      event({
        type: "call.decided",
        call,
        decision: "ask",
        contained: true,
        rules: [],
        runs: true,
        by: "contained",
      }),
    );
    session.log(
      event({ type: "call.ended", call, kind: "ok", cause: null, text: "x".repeat(1500), full: null, ms: 9 }),
    );
    session.append({ kind: "message", message: { role: "tool", call, text: "x".repeat(1500) } });
    session.append({ kind: "shell", folder: "/home/dev/project", env: {} });
  }
  return ((performance.now() - start) * 1000) / (CALLS * WRITES_PER_CALL);
}

/** Microseconds per row of the same size in an otherwise empty table, each in its own transaction. */
async function perRow(): Promise<number> {
  await using place = await scratch();
  mkdirSync(place.at("plain"));
  using database = new DatabaseSync(place.at("plain", "rows.db"));
  database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; CREATE TABLE rows (text TEXT)");
  const insert = database.prepare("INSERT INTO rows VALUES (?)");
  const start = performance.now();
  for (let at = 0; at < CALLS * WRITES_PER_CALL; at += 1) insert.run(`${at} ${"x".repeat(600)}`);
  return ((performance.now() - start) * 1000) / (CALLS * WRITES_PER_CALL);
}

export const SESSIONS: readonly Figure[] = [
  {
    name: "sessions.write",
    unit: "us",
    against: "a row of a plain table, in a transaction of its own",
    hold: 5,
    measure: (): Promise<Measured> => inTurn(5, perWrite, perRow),
  },
];
