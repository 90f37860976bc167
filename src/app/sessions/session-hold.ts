import { setTimeout as sleep } from "node:timers/promises";
import { type Holder, lockSession } from "../../boxes/life/workspace-lock.ts";
import { EXIT, HarnessError } from "../../core/errors.ts";
import type { Host } from "../host.ts";

/** Another process has the session. */
class SessionBusy extends HarnessError {}

/**
 * A session for this process alone, as long as it is worked on: what two wrote at once would be mixed up, and one that is
 * taken away in the middle has no audit and no way back. A kill frees it. Whoever only looks needs none of it.
 */
export async function holdSession(
  host: Host,
  session: string,
  next = `wait for it to end, or go on beside it with a copy: harness run --resume ${session} --fork "…"`,
): Promise<AsyncDisposable> {
  const busy = ({ pid, since }: Holder): SessionBusy => {
    const who = pid === process.pid ? "this harness" : "another harness";
    const message = `the session ${session} is worked on by ${who} (pid ${pid}, since ${since})`;
    return new SessionBusy(EXIT.usage, message, next);
  };
  try {
    return await lockSession(host.places.state, session, busy);
  } catch (thrown) {
    if (thrown instanceof SessionBusy || !(thrown instanceof HarnessError)) throw thrown;
    throw new HarnessError(
      EXIT.failed,
      `the session ${session}: ${thrown.message}`,
      thrown.remedy,
      thrown.cause,
    );
  }
}

const POLL_MS = 100;

/** The same, where whoever has it is about to let go of it: as long as `waits` says so. */
export async function holdBehind(
  host: Host,
  session: string,
  waits: () => boolean,
  next: string,
): Promise<AsyncDisposable> {
  for (;;) {
    try {
      return await holdSession(host, session, next);
    } catch (thrown) {
      if (!(thrown instanceof SessionBusy) || !waits()) throw thrown;
    }
    await sleep(POLL_MS);
  }
}

/** Several for as long as something is done to all of them: all or none. */
export async function holdSessions(
  host: Host,
  sessions: Iterable<string>,
  next: (session: string) => string,
): Promise<AsyncDisposable> {
  await using stack = new AsyncDisposableStack();
  for (const session of sessions) stack.use(await holdSession(host, session, next(session)));
  return stack.move();
}
