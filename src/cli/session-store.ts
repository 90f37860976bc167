import { realpath } from "node:fs/promises";
import path from "node:path";
import type { SessionStore } from "../core/session.ts";
import { visible } from "../core/visible.ts";
import { openSessions } from "./session-seat.ts";
import { stderr } from "../render/tty/output.ts";

/** For one command. What was lost is said whatever else is to be quiet. */
export async function withSessions<T>(work: (store: SessionStore) => T | Promise<T>): Promise<T> {
  using store = openSessions((text) => {
    stderr.write(`warning: ${visible(text)}\n`);
  });
  return await work(store);
}

/** A workspace as sessions name it; one that is gone by now still has sessions. */
export const sessionsWorkspace = (folder: string): Promise<string> =>
  realpath(folder).catch(() => path.resolve(folder));
