import type { Readable } from "node:stream";

/** Of one message. The SDKs end the connection at the first that is longer; here it alone is dropped. */
const MAX_MESSAGE_BYTES = 8 * 1024 * 1024;

/** The two ends of standard input and output, or of anything like them. */
export interface Wire {
  readonly input: Readable;
  /** One message, whole; resolves when the reader has room for more. */
  readonly write: (message: object) => Promise<void>;
}

export type MessageLine =
  | { readonly kind: "message"; readonly value: unknown }
  /** Not JSON, or more than is taken. */
  | { readonly kind: "unreadable"; readonly why: string };

const NEWLINE = 0x0a;

/**
 * The messages of a peer, one JSON value on each line, as they come; the last line needs no end. Of a line that is too
 * long nothing is kept. Ends with the input, whatever ends that.
 */
export async function* messageLines(
  input: AsyncIterable<Uint8Array>,
  max = MAX_MESSAGE_BYTES,
): AsyncGenerator<MessageLine> {
  let parts: Uint8Array[] = [];
  let size = 0;
  const take = (bytes: Uint8Array): void => {
    size += bytes.length;
    if (size > max) parts = [];
    else parts.push(bytes);
  };
  const line = (): MessageLine | undefined => {
    const read = size > max ? tooLong(max) : readLine(Buffer.concat(parts));
    parts = [];
    size = 0;
    return read;
  };
  try {
    for await (const chunk of input) {
      let from = 0;
      for (let at = chunk.indexOf(NEWLINE); at !== -1; at = chunk.indexOf(NEWLINE, from)) {
        take(chunk.subarray(from, at));
        from = at + 1;
        const read = line();
        if (read !== undefined) yield read;
      }
      take(chunk.subarray(from));
    }
  } catch {
    // A pipe that breaks is a peer that left.
  }
  const rest = line();
  if (rest !== undefined) yield rest;
}

const tooLong = (max: number): MessageLine => ({
  kind: "unreadable",
  why: `a message of more than ${max / (1024 * 1024)} MiB`,
});

/** Undefined for a blank line. */
function readLine(bytes: Buffer): MessageLine | undefined {
  const text = bytes.toString("utf8").trim();
  if (text === "") return undefined;
  try {
    return { kind: "message", value: JSON.parse(text) as unknown };
  } catch {
    return { kind: "unreadable", why: "no JSON" };
  }
}
