import { formatDuration } from "../../core/bounds.ts";
import type { SessionInfo } from "../../core/session.ts";
import { fitted, widthOfStream } from "../../render/tty/fitted.ts";
import { recalled } from "./recall.ts";
import type { Room } from "./room.ts";

const MOST = 10;

export async function sessions(room: Room, screen: NodeJS.WriteStream): Promise<string> {
  const listed = (await room.store()).list({ workspace: room.workspace, limit: MOST });
  if (listed.length === 0) return "There is none of this folder.";
  const width = widthOfStream(screen);
  return listed.map((info) => fitted(rowOf(info, room.talk?.session.id), width)).join("\n");
}

function rowOf({ id, changed, messages, title }: SessionInfo, current: string | undefined): string {
  const ago = formatDuration(Math.max(0, Date.now() - changed));
  return `${id === current ? "*" : " "} ${id}  ${ago} ago  ${messages} messages  ${title}`;
}

/** Without an id the last one of this folder that is not this one. */
export async function resume(room: Room, given: string, screen: NodeJS.WriteStream): Promise<string> {
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
