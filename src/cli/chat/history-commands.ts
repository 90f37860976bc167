import { visible } from "../../core/visible.ts";
import { isTyped, withoutMode } from "./mode-note.ts";
import type { Room } from "./room.ts";

const NOTHING = "Nothing has been said yet.";

/** The system prompt stays, and the tools that are offered. */
export function clear({ talk }: Room): string {
  if (talk === undefined) return NOTHING;
  talk.memory.clear();
  return "The conversation is forgotten. Files are as they are.";
}

/** Events say more of it, with the figures. */
export async function compact(room: Room): Promise<string> {
  const { talk } = room;
  if (talk === undefined || talk.memory.history.count === 0) return NOTHING;
  return (await room.compact(talk)) ? "" : "The conversation is as it was.";
}

export function undo({ talk }: Room): string {
  if (talk === undefined) return NOTHING;
  const { memory } = talk;
  for (;;) {
    const text = memory.history.undo();
    if (text === undefined) return "There is nothing to take back.";
    // What the loop has said for the person goes with what they said.
    if (!isTyped({ role: "user", text })) continue;
    memory.rollBack(memory.history.count);
    return `Taken back, with all behind it: ${visible(withoutMode(text))}\nFiles are NOT changed back.`;
  }
}
