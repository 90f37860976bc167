import { readFileSync } from "node:fs";
import { errorCode } from "../../core/errors.ts";

/** One content of a pack: 32 bytes of its SHA-256, 8 of its offset, 8 of its length. */
export const RECORD = 48;

interface Known {
  readonly id: string;
  readonly offset: number;
  readonly length: number;
}

export function writeRecord(id: string, offset: number, length: number): Buffer {
  const record = Buffer.alloc(RECORD);
  record.write(id, 0, 32, "base64url");
  record.writeBigUInt64BE(BigInt(offset), 32);
  record.writeBigUInt64BE(BigInt(length), 40);
  return record;
}

/** What is not a whole record at its end was being written when the writer was killed. */
export function readIndex(file: string): readonly Known[] {
  const bytes = contentOf(file);
  const known: Known[] = [];
  for (let at = 0; at + RECORD <= bytes.length; at += RECORD)
    known.push({
      id: bytes.toString("base64url", at, at + 32),
      offset: Number(bytes.readBigUInt64BE(at + 32)),
      length: Number(bytes.readBigUInt64BE(at + 40)),
    });
  return known;
}

function contentOf(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (thrown) {
    if (errorCode(thrown) === "ENOENT") return Buffer.alloc(0);
    throw thrown;
  }
}
