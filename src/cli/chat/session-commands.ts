import { sessionTable } from "../../render/tty/sessions.ts";
import { recalled } from "./recall.ts";
import type { Room } from "./room.ts";
import { type Output } from "../../render/tty/output.ts";

const MOST = 10;

export async function sessions(room: Room, screen: Output): Promise<string> {
  const listed = (await room.store()).list({ workspace: room.workspace, limit: MOST });
  if (listed.length === 0) return "There is none of this folder.";
  return sessionTable(listed, { now: Date.now(), all: false }, screen).trimEnd();
}

/** Without an id the last one of this folder that is not this one. */
export async function resume(room: Room, given: string, screen: Output): Promise<string> {
  const store = await room.store();
  const others = store.list({ workspace: room.workspace, limit: 2 });
  const id = given === "" ? others.find((each) => each.id !== room.talk?.session.id)?.id : given;
  if (id === undefined) return "There is no other session of this folder.";
  const session = store.open(id);
  const { workspace, id: found } = session.info();
  if (workspace !== room.workspace)
    return `${found} is a session of ${workspace}; there: harness resume ${found}`;
  const talk = await room.resume(session);
  return `${recalled(talk.memory.history.messages, screen)}Goes on with ${found}.`;
}
