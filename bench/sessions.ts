import { openStore } from "../src/sessions/session-store.ts";
import { ABOUT, event } from "../test/contract/store-words.ts";
import { scratch } from "../test/fixtures/scratch.ts";
import type { Figure, Pair } from "./figure.ts";

const CALLS = 1500;
const WRITES_PER_CALL = 6;

/** What one tool call of a run makes the store write, in microseconds a write, over a session of this many calls. */
async function perWrite(): Promise<Pair> {
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
  return { value: ((performance.now() - start) * 1000) / (CALLS * WRITES_PER_CALL), baseline: 200 };
}

/** The baseline is the figure to hold itself. */
export const SESSIONS: readonly Figure[] = [
  { name: "sessions.write", unit: "us", hold: 1, measure: perWrite },
];
