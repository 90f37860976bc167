import { bytesOfText } from "../../core/byte-text.ts";

/** A payload of named fields: u8 name, u32 length, bytes; a number is eight bytes, little-endian, rounded up. */

export type FieldValue = string | number | Buffer;

const HEAD = 5;

export function encodeFields(fields: readonly (readonly [name: string, value: FieldValue])[]): Buffer {
  return Buffer.concat(
    fields.flatMap(([name, value]) => {
      const bytes = bytesOf(value);
      const head = Buffer.allocUnsafe(HEAD);
      head.write(name, "latin1");
      head.writeUInt32LE(bytes.length, 1);
      return [head, bytes];
    }),
  );
}

function bytesOf(value: FieldValue): Buffer {
  if (typeof value === "string") return bytesOfText(value);
  if (typeof value !== "number") return value;
  const bytes = Buffer.allocUnsafe(8);
  bytes.writeBigUInt64LE(BigInt(Math.ceil(value)));
  return bytes;
}

export interface Field {
  readonly name: string;
  readonly bytes: Buffer;
}

export function decodeFields(payload: Buffer): readonly Field[] {
  const fields: Field[] = [];
  for (let at = 0; at + HEAD <= payload.length;) {
    const length = payload.readUInt32LE(at + 1);
    const end = at + HEAD + length;
    if (end > payload.length) throw new RangeError("a field is cut short");
    fields.push({ name: payload.toString("latin1", at, at + 1), bytes: payload.subarray(at + HEAD, end) });
    at = end;
  }
  return fields;
}

/** The number in this field, 0 where it is not there. */
export function numberIn(fields: readonly Field[], name: string): number {
  const bytes = fields.find((field) => field.name === name)?.bytes;
  return bytes?.length === 8 ? Number(bytes.readBigUInt64LE()) : 0;
}

export const has = (fields: readonly Field[], name: string): boolean =>
  fields.some((field) => field.name === name);

export const textIn = (fields: readonly Field[], name: string): string =>
  fields.find((field) => field.name === name)?.bytes.toString("utf8") ?? "";
