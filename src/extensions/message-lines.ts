import type { Readable } from "node:stream";

/** Bytes of one message. The SDKs close the connection at a longer message; here only that message is dropped. */
const MAX_MESSAGE_BYTES = 8 * 1024 * 1024;

/** Code here and later recurses into messages: no tool call is nested this deep. */
const MAX_DEPTH = 100;

/** Both ends of standard input and output, or of a similar connection. */
export interface MessageWire {
  readonly input: Readable;
  /** Writes one whole message; resolves when the reader has room for more. */
  readonly write: (message: object) => Promise<void>;
}

export type MessageLine =
  | { readonly kind: "message"; readonly value: unknown }
  /** Not JSON, too long, or nested too deep. */
  | { readonly kind: "unreadable"; readonly why: string };

const NEWLINE = 0x0a;

/**
 * A peer's messages as they arrive, one JSON value per line; the last line may lack its end. Nothing of a line that is
 * too long is kept. Ends with the input, for whatever reason.
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
    // A broken pipe means that the peer has left.
  }
  const rest = line();
  if (rest !== undefined) yield rest;
}

const tooLong = (max: number): MessageLine => ({
  kind: "unreadable",
  why: `a message larger than ${max / (1024 * 1024)} MiB`,
});

/** Undefined for a blank line. */
function readLine(bytes: Buffer): MessageLine | undefined {
  const text = bytes.toString("utf8").trim();
  if (text === "") return undefined;
  if (isDeeper(bytes))
    return { kind: "unreadable", why: `a message nested more than ${MAX_DEPTH} levels deep` };
  try {
    return { kind: "message", value: JSON.parse(text) as unknown };
  } catch {
    return { kind: "unreadable", why: "not JSON" };
  }
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** Counts brackets only, before anything is parsed. */
function isDeeper(bytes: Buffer): boolean {
  let depth = 0;
  let quoted = false;
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at];
    if (quoted && byte === BACKSLASH) at += 1;
    else if (byte === QUOTE) quoted = !quoted;
    else if (!quoted && (byte === 0x5b || byte === 0x7b)) {
      depth += 1;
      if (depth > MAX_DEPTH) return true;
    } else if (!quoted && (byte === 0x5d || byte === 0x7d)) depth -= 1;
  }
  return false;
}
