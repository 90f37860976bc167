import type { KeptOutput } from "../../core/ports.ts";

interface KeptParts {
  readonly head?: Buffer;
  readonly tail?: Buffer;
}

/** One stream of a command as it is kept on this side: never more than its head and tail. */
export class OutputKeeper {
  readonly #head: Buffer[] = [];
  readonly #tail: Buffer[] = [];

  constructor({ head, tail }: KeptParts = {}) {
    if (head !== undefined) this.#head.push(head);
    if (tail !== undefined) this.#tail.push(tail);
  }

  get parts(): Required<KeptParts> {
    return { head: Buffer.concat(this.#head), tail: Buffer.concat(this.#tail) };
  }

  add(part: "head" | "tail", bytes: Buffer): void {
    (part === "head" ? this.#head : this.#tail).push(bytes);
  }

  soFar(): Buffer {
    return Buffer.concat([...this.#head, ...this.#tail]);
  }

  kept({ total, lost }: { readonly total: number; readonly lost: number }): KeptOutput {
    return { head: Buffer.concat(this.#head), tail: Buffer.concat(this.#tail), total, lost };
  }
}

const LAST = 64 * 1024;

/** What a stream said last, of whatever came by. */
export class LastBytes {
  #bytes: Buffer;

  constructor(before: Buffer = Buffer.alloc(0)) {
    this.#bytes = before;
  }

  get bytes(): Buffer {
    return this.#bytes;
  }

  add(bytes: Buffer): void {
    this.#bytes = Buffer.concat([this.#bytes, bytes.subarray(-LAST)]).subarray(-LAST);
  }

  get text(): string {
    return this.#bytes.toString("utf8");
  }
}
