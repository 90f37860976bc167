import type { ExecRequest, ExecResult, KeptOutput } from "../../src/core/ports.ts";

type Put = (bytes: Uint8Array | string) => Promise<void>;

/** The output of one fake command: its head, its tail, and its total size. */
export class FakeKeeper {
  readonly #streams = { stdout: new Stream(), stderr: new Stream() };
  readonly #request: ExecRequest;
  #errors = "";
  readonly #start = performance.now();

  constructor(request: ExecRequest) {
    this.#request = request;
  }

  readonly out: Put = (bytes) => this.#add("stdout", bytes);
  readonly err: Put = (bytes) => this.#add("stderr", bytes);

  async #add(name: "stdout" | "stderr", given: Uint8Array | string): Promise<void> {
    if (name === "stderr")
      this.#errors = (this.#errors + Buffer.from(given as Uint8Array).toString()).slice(-1000);
    const { keep, onOutput } = this.#request;
    const head = this.#streams[name].add(Buffer.from(given as Uint8Array), keep, onOutput === undefined);
    if (head.length === 0 || onOutput === undefined) return;
    // A failing reader must not affect the command.
    await (async () => onOutput(name, head))().catch(() => undefined);
  }

  /** The tail of stderr, whoever has read it. */
  get errors(): string {
    return this.#errors;
  }

  soFar(): { readonly stdout: Uint8Array; readonly stderr: Uint8Array } {
    return { stdout: this.#streams.stdout.kept, stderr: this.#streams.stderr.kept };
  }

  kept(): Pick<ExecResult, "stdout" | "stderr" | "duration_ms"> {
    const { stdout, stderr } = this.#streams;
    return { stdout: stdout.whole, stderr: stderr.whole, duration_ms: performance.now() - this.#start };
  }
}

class Stream {
  #head: Buffer = Buffer.alloc(0);
  #tail: Buffer = Buffer.alloc(0);
  #total = 0;
  #lost = 0;

  /** The part of these bytes that belongs to the head. */
  add(bytes: Buffer, keep: ExecRequest["keep"], holdHead: boolean): Buffer {
    const room = Math.max(0, keep.head - this.#total);
    const head = bytes.subarray(0, room);
    const rest = Buffer.concat([this.#tail, bytes.subarray(head.length)]);
    const dropped = Math.max(0, rest.length - keep.tail);
    this.#total += bytes.length;
    this.#lost += dropped;
    this.#tail = rest.subarray(dropped);
    if (holdHead) this.#head = Buffer.concat([this.#head, head]);
    return head;
  }

  get kept(): Buffer {
    return Buffer.concat([this.#head, this.#tail]);
  }

  get whole(): KeptOutput {
    return { head: this.#head, tail: this.#tail, total: this.#total, lost: this.#lost };
  }
}
