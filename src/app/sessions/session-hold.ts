import { setTimeout as sleep } from "node:timers/promises";
import { type Holder, lockSession } from "../../boxes/workspace/workspace-lock.ts";
import { EXIT, HarnessError } from "../../core/errors.ts";
import type { Host } from "../host.ts";

/** Another process has the session. */
class SessionBusy extends HarnessError {}

/**
 * Holds a session for this process while it works on the session: two writers would mix up their records, and a session
 * that is removed in between loses its audit and its undo. A kill frees the hold. Reading needs none.
 */
export async function holdSession(
  host: Host,
  session: string,
  next = `wait for it to end, or continue in a copy: harness run --resume ${session} --fork "…"`,
): Promise<AsyncDisposable> {
  const busy = ({ pid, since }: Holder): SessionBusy => {
    const who = pid === process.pid ? "this harness" : "another harness";
    const message = `the session ${session} is in use by ${who} (pid ${pid}, since ${since})`;
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

/** Like holdSession, but waits for a holder that is about to finish, as long as `waits` returns true. */
export async function holdWhenFree(
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

/** Holds several sessions at once: all or none. */
export async function holdSessions(
  host: Host,
  sessions: Iterable<string>,
  next: (session: string) => string,
): Promise<AsyncDisposable> {
  await using stack = new AsyncDisposableStack();
  for (const session of sessions) stack.use(await holdSession(host, session, next(session)));
  return stack.move();
}
