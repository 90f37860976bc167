import { once } from "node:events";
import type { WriteStream } from "node:tty";
import { visibleStream } from "../core/visible.ts";

/** Hands on a command's bytes as they are; a terminal gets them with its own controls taken out of effect. */
export function streamTo(stream: WriteStream | NodeJS.WriteStream): {
  readonly write: (bytes: Uint8Array) => Promise<void> | void;
  readonly end: () => Promise<void> | void;
} {
  const state = { left: false };
  stream.once("error", () => (state.left = true));
  const put = (chunk: Uint8Array | string): Promise<void> | void => {
    // What a reader that left would have got is dropped: nothing would ever drain.
    if (chunk.length === 0 || state.left || stream.write(chunk)) return undefined;
    return once(stream, "drain").then(() => undefined);
  };
  if (!stream.isTTY) return { write: put, end: () => undefined };
  const text = visibleStream();
  return { write: (bytes) => put(text.push(bytes)), end: () => put(text.end()) };
}
