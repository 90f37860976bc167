import type { IncomingMessage } from "node:http";
import { endless } from "../wire.ts";

export interface LineBounds {
  /** UTF-16 units of one line. */
  readonly longest: number;
  /** Bytes of all of them; without a bound when left out. */
  readonly whole?: number;
}

/**
 * The lines of a stream, blank ones left out. Throws where the connection is cut or a line has no end. Bytes that are
 * no UTF-8 become U+FFFD, as Ollama makes it of what a model cut short. Whoever stops early ends the response.
 */
export async function* linesOf(
  response: IncomingMessage,
  { longest, whole = Number.POSITIVE_INFINITY }: LineBounds,
): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let parts: string[] = [];
  let length = 0;
  let came = 0;
  const chunks = response.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>;
  for await (const chunk of chunks) {
    came += chunk.length;
    if (came > whole) throw endless("the server's reply has no end: it was ended at its bound");
    const [first = "", ...others] = decoder.decode(chunk, { stream: true }).split("\n");
    parts.push(first);
    length += first.length;
    for (const other of others) {
      yield* unlessBlank(parts);
      parts = [other];
      length = other.length;
    }
    if (length > longest) throw endless("the server sends a line without an end");
  }
  parts.push(decoder.decode());
  yield* unlessBlank(parts);
}

/** For what may come behind a reply that is complete. */
const LINGER_MS = 200;

/** Lets a reply that has said all come to its end, so that its connection serves the next request too. */
export function letGo(response: IncomingMessage): void {
  const late = setTimeout(() => response.destroy(), LINGER_MS);
  late.unref();
  response.once("close", () => clearTimeout(late));
  response.on("error", () => undefined).resume();
}

function* unlessBlank(parts: readonly string[]): Generator<string> {
  const line = parts.join("");
  if (line.trim() !== "") yield line;
}
