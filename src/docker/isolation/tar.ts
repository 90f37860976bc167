import { Buffer } from "node:buffer";

/** Headers of the GNU form: names are bytes of any kind and length, numbers of any size. */
export interface TarEntry {
  readonly path: Buffer;
  readonly type: "file" | "folder" | "link";
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  readonly size: number;
  /** Seconds since 1970. */
  readonly modified: number;
  readonly target?: Buffer;
}

export const BLOCK = 512;
const NAME_BYTES = 100;
const TYPES = { file: "0", link: "2", folder: "5" } as const;

export function tarHeader(entry: TarEntry): Buffer {
  const { path, type, target = Buffer.alloc(0) } = entry;
  const name = type === "folder" ? Buffer.concat([path, Buffer.from("/")]) : path;
  return Buffer.concat([
    ...(name.length > NAME_BYTES ? long("L", name) : []),
    ...(target.length > NAME_BYTES ? long("K", target) : []),
    block(entry, { name, type: TYPES[type], target }),
  ]);
}

/** What fills the last block of this many bytes. */
export const padding = (size: number): Buffer => Buffer.alloc((BLOCK - (size % BLOCK)) % BLOCK);

export const TAR_END = (): Buffer => Buffer.alloc(2 * BLOCK);

/** A name that does not fit stands as content before its entry. */
function long(type: string, name: Buffer): readonly Buffer[] {
  const content = Buffer.concat([name, Buffer.alloc(1)]);
  const fields = { mode: 0, uid: 0, gid: 0, size: content.length, modified: 0 };
  const header = block(fields, { name: Buffer.from("././@LongLink"), type, target: Buffer.alloc(0) });
  return [header, content, padding(content.length)];
}

function block(
  { mode, uid, gid, size, modified }: Omit<TarEntry, "path" | "type">,
  { name, type, target }: { readonly name: Buffer; readonly type: string; readonly target: Buffer },
): Buffer {
  const header = Buffer.alloc(BLOCK);
  name.copy(header, 0, 0, NAME_BYTES);
  number(header, 100, 8, mode & 0o7777);
  number(header, 108, 8, uid);
  number(header, 116, 8, gid);
  number(header, 124, 12, size);
  number(header, 136, 12, Math.max(0, Math.floor(modified)));
  header.write("        ", 148, "latin1");
  header.write(type, 156, "latin1");
  target.copy(header, 157, 0, NAME_BYTES);
  header.write("ustar  \0", 257, "latin1");
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "latin1");
  return header;
}

/** Octal digits, or big-endian behind a set first bit where those do not fit. */
function number(header: Buffer, at: number, length: number, value: number): void {
  const digits = value.toString(8);
  if (digits.length < length) {
    header.write(digits.padStart(length - 1, "0"), at, "latin1");
    return;
  }
  header.writeBigUInt64BE(BigInt(value), at + length - 8);
  header[at] = 0x80;
}
