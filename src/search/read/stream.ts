import { EXIT, HarnessError } from "../../core/errors.ts";
import type { Box, ExecRequest, ExecResult } from "../../core/ports.ts";

const ALL = { head: Number.MAX_SAFE_INTEGER, tail: 0 };
/** Handed over and not taken yet; the box waits until there is room again. */
const HIGH_WATER = 1 << 20;

export interface Running {
  /** What it writes to stdout. Whoever stops reading has it ended. */
  readonly output: AsyncIterable<Buffer>;
  /** Its end, and the last that it said on stderr. */
  readonly ended: Promise<{ readonly result: ExecResult; readonly said: string }>;
}

/** A command of the box whose output is read as it comes, a bounded part of it held at a time. */
export function running(
  box: Box,
  request: Pick<ExecRequest, "words" | "folder" | "input">,
  signal: AbortSignal,
): Running {
  const own = new AbortController();
  const pipe = new Pipe();
  const said = { text: "" };
  const ended = box
    .exec(
      {
        ...request,
        env: { LC_ALL: "C", TZ: "UTC" },
        timeoutMs: 0,
        keep: ALL,
        onOutput: (stream, bytes) => {
          if (stream === "stdout") return pipe.push(Buffer.from(bytes));
          said.text = (said.text + Buffer.from(bytes).toString("utf8")).slice(-SAID);
          return undefined;
        },
      },
      AbortSignal.any([signal, own.signal]),
    )
    .then((result) => ({ result, said: said.text }))
    .finally(() => pipe.end());
  ended.catch(() => undefined);
  return { output: outputOf(pipe, own), ended };
}

const SAID = 4096;

async function* outputOf(pipe: Pipe, own: AbortController): AsyncGenerator<Buffer> {
  try {
    for (let next = await pipe.take(); next !== undefined; next = await pipe.take()) yield next;
  } finally {
    own.abort();
    pipe.drop();
  }
}

class Pipe {
  #held: Buffer[] = [];
  #bytes = 0;
  #ended = false;
  #dropped = false;
  #readable: (() => void) | undefined;
  #writable: (() => void) | undefined;

  push(bytes: Buffer): Promise<void> | undefined {
    if (this.#dropped) return undefined;
    this.#held.push(bytes);
    this.#bytes += bytes.length;
    this.#readable?.();
    if (this.#bytes < HIGH_WATER) return undefined;
    return new Promise((resolve) => (this.#writable = resolve));
  }

  /** All that is there, or undefined at the end. */
  async take(): Promise<Buffer | undefined> {
    if (this.#held.length === 0 && !this.#ended)
      await new Promise<void>((resolve) => (this.#readable = resolve));
    this.#readable = undefined;
    if (this.#held.length === 0) return undefined;
    const [only] = this.#held;
    const all = this.#held.length === 1 && only !== undefined ? only : Buffer.concat(this.#held);
    this.#empty();
    return all;
  }

  end(): void {
    this.#ended = true;
    this.#readable?.();
  }

  drop(): void {
    this.#dropped = true;
    this.#empty();
  }

  #empty(): void {
    this.#held = [];
    this.#bytes = 0;
    this.#writable?.();
    this.#writable = undefined;
  }
}

/** That what came is not all there is. */
export function broken(doing: string, { result, said }: Awaited<Running["ended"]>): HarnessError {
  const last = said.trim().split("\n").at(-1) ?? "";
  const why = result.reason === "" ? `it ended with ${result.exit_code}` : result.reason;
  return new HarnessError(
    EXIT.failed,
    `${doing} in the box failed: ${why}${last === "" ? "" : `: ${last}`}`,
    "try again; harness doctor looks at the box",
  );
}
