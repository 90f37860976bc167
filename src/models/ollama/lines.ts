import type { IncomingMessage } from "node:http";

/**
 * The lines of a stream, blank ones left out. Throws where the connection is cut or a line has no end. Bytes that are
 * no UTF-8 become U+FFFD, as Ollama makes it of what a model cut short.
 */
export async function* linesOf(response: IncomingMessage, longest: number): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let parts: string[] = [];
  let length = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    const [first = "", ...others] = decoder.decode(chunk, { stream: true }).split("\n");
    parts.push(first);
    length += first.length;
    for (const other of others) {
      yield* unlessBlank(parts);
      parts = [other];
      length = other.length;
    }
    if (length > longest) throw new Error("the server sends a line without an end");
  }
  parts.push(decoder.decode());
  yield* unlessBlank(parts);
}

function* unlessBlank(parts: readonly string[]): Generator<string> {
  const line = parts.join("");
  if (line.trim() !== "") yield line;
}
