import { DamagedIndex } from "../index-failure.ts";

/** Whole numbers from 0, in as few bytes as they need: seven bits a byte, the lowest first. */
export class NumberWriter {
  #bytes = new Uint8Array(16);
  #length = 0;

  write(value: number): void {
    if (this.#length + 5 > this.#bytes.length) this.#grow();
    let left = value;
    while (left > 0x7f) {
      this.#bytes[this.#length++] = (left & 0x7f) | 0x80;
      left >>>= 7;
    }
    this.#bytes[this.#length++] = left;
  }

  get bytes(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }

  #grow(): void {
    const more = new Uint8Array(this.#bytes.length * 2);
    more.set(this.#bytes);
    this.#bytes = more;
  }
}

export class NumberReader {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: unknown) {
    if (!(bytes instanceof Uint8Array)) throw new DamagedIndex("numbers are missing");
    this.#bytes = bytes;
  }

  get more(): boolean {
    return this.#at < this.#bytes.length;
  }

  next(): number {
    const bytes = this.#bytes;
    let byte = bytes[this.#at++];
    if (byte === undefined) throw new DamagedIndex("numbers end early");
    if (byte < 0x80) return byte;
    let value = byte & 0x7f;
    for (let shift = 7; byte >= 0x80; shift += 7) {
      byte = bytes[this.#at++];
      if (byte === undefined || shift > 28) throw new DamagedIndex("numbers end early");
      value |= (byte & 0x7f) << shift;
    }
    return value >>> 0;
  }
}
