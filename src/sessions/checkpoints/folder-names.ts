import { opendirSync, readdirSync } from "node:fs";
import { bytesOfText, textOfBytes } from "../../core/text/bytes.ts";

/** The names in a folder as byte texts, in byte order. */
export interface Names {
  readonly next: () => string | undefined;
}

export const NO_NAMES: Names = { next: () => undefined };

/** The reported size of a folder is only a hint: a wrong one costs memory or time, nothing else. */
const LARGE = 256 * 1024;

/** Throws the system's errors. */
export const sortedNames = (folder: string | Buffer, size: number): Names =>
  size < LARGE ? fromTexts(namesIn(folder)) : fromBytes(folder);

function namesIn(folder: string | Buffer): readonly string[] {
  const names = readdirSync(folder);
  // U+FFFD may stand for a byte that is not valid text.
  if (!names.some((name) => name.includes("\uFFFD"))) return names;
  return readdirSync(folder, { encoding: "buffer" }).map(textOfBytes);
}

function fromTexts(names: readonly string[]): Names {
  if (names.length === 0) return NO_NAMES;
  // Only these code units make the order of UTF-16 units differ from that of bytes.
  const sorted = names.some((name) => /[\uD800-\uFFFF]/.test(name))
    ? names.toSorted((a, b) => Buffer.compare(bytesOfText(a), bytesOfText(b)))
    : names.toSorted();
  let at = 0;
  return { next: () => sorted[at++] };
}

const CHUNK = 2 ** 20;
const MAX_NAME = 1024;

/**
 * Holds all names of a large folder in a few buffers: as strings they would take several times the memory, for longer.
 */
function fromBytes(folder: string | Buffer): Names {
  const chunks: Buffer[] = [];
  const starts: number[] = [];
  let end = 0;
  using open = opendirSync(folder, { encoding: "latin1", bufferSize: 256 });
  for (let entry = open.readSync(); entry !== null; entry = open.readSync()) {
    if (end + MAX_NAME > chunks.length * CHUNK)
      end = (chunks.push(Buffer.allocUnsafeSlow(CHUNK)) - 1) * CHUNK;
    starts.push(end);
    const chunk = chunks[chunks.length - 1] as Buffer;
    chunk.write(entry.name, (end % CHUNK) + 2, "latin1");
    chunk.writeUInt16LE(entry.name.length, end % CHUNK);
    end += 2 + entry.name.length;
  }
  const nameAt = (start: number): Buffer => {
    const chunk = chunks[Math.floor(start / CHUNK)] as Buffer;
    const from = start % CHUNK;
    return chunk.subarray(from + 2, from + 2 + chunk.readUInt16LE(from));
  };
  const sorted = Float64Array.from(starts).toSorted((a, b) => Buffer.compare(nameAt(a), nameAt(b)));
  let at = 0;
  return {
    next: () => {
      const start = sorted[at++];
      return start === undefined ? undefined : textOfBytes(nameAt(start));
    },
  };
}
