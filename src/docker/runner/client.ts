import { constants } from "node:os";
import type { Duplex } from "node:stream";
import { EXIT, HarnessError } from "../../core/errors.ts";
import { type CreditWindow, creditWindow } from "./credit.ts";
import { notTaken, readExit, type RunnerExit } from "./exit.ts";
import { encodeFields, type FieldValue } from "./fields.ts";
import { EXEC_STDIN, EXEC_TTY, type Frame, MAX_PAYLOAD, REPLY, REQUEST } from "./frames.ts";
import { openWire, type Wire } from "./wire.ts";

export interface Command {
  readonly words: readonly string[];
  readonly folder: string;
  readonly env: Readonly<Record<string, string>>;
  /** 0 for no limit. */
  readonly timeoutMs: number;
  /** Bytes of each stream that are handed on as they come; of what follows, only the last `tail` are. */
  readonly head: number;
  readonly tail: number;
  readonly terminal: boolean;
  /** undefined for none at all. */
  readonly input: AsyncIterable<Uint8Array> | undefined;
}

export interface Listener {
  /** A promise holds back everything that the box sends, until it is settled. */
  readonly onOutput: (
    stream: "stdout" | "stderr",
    part: "head" | "tail",
    bytes: Buffer,
  ) => Promise<void> | void;
}

/** A command in progress. `ended` never rejects but for the loss of the box. */
export interface Running {
  readonly ended: Promise<RunnerExit>;
  readonly signal: (signal: number) => void;
  readonly resize: (columns: number, rows: number) => void;
}

interface Pending {
  readonly onFrame: (frame: Frame) => void;
  readonly onLost: (lost: HarnessError) => void;
}

const OUTPUTS = new Map([
  [REPLY.out, ["stdout", "head"]],
  [REPLY.err, ["stderr", "head"]],
  [REPLY.outTail, ["stdout", "tail"]],
  [REPLY.errTail, ["stderr", "tail"]],
] as const);

/** Input that the runner has not taken yet never exceeds this. */
const INPUT_WINDOW = 512 * 1024;

/** The calls to one box. Any number run side by side; all end when the box does. */
export class RunnerClient {
  readonly #wire: Wire;
  readonly #pending = new Map<number, Pending>();
  #next = 1;
  #lost: HarnessError | undefined;
  /** Resolves, never rejects, when the box is gone, with the reason. */
  readonly gone: Promise<string>;

  constructor(stream: Duplex, secret: Buffer) {
    const { promise, resolve } = Promise.withResolvers<string>();
    this.gone = promise;
    this.#wire = openWire(stream, secret, {
      onFrame: (frame) => this.#pending.get(frame.call)?.onFrame(frame),
      onEnd: (reason) => {
        this.#lost = new HarnessError(EXIT.sandbox, `the box was lost: ${reason}`, "harness doctor");
        for (const { onLost } of this.#pending.values()) onLost(this.#lost);
        this.#pending.clear();
        resolve(reason);
      },
    });
  }

  /** Ends the box: the runner leaves when its input does. */
  close(): void {
    this.#wire.close();
  }

  run(command: Command, { onOutput }: Listener): Running {
    const call = this.#number();
    const credit = creditWindow(INPUT_WINDOW);
    const ended = this.#call<RunnerExit>(call, (frame, done) => {
      const output = OUTPUTS.get(frame.type as never);
      if (output !== undefined) this.#holdBack(onOutput(output[0], output[1], frame.payload));
      else if (frame.type === REPLY.credit) credit.give(frame.payload);
      else if (frame.type === REPLY.exit) done(readExit(frame.payload));
      else if (frame.type === REPLY.end) done(notTaken(frame.payload));
    });
    void ended.then(credit.stop, credit.stop);
    const payload = execPayload(command);
    if (payload.length > MAX_PAYLOAD) throw tooLong(payload.length);
    this.#send(REQUEST.exec, call, payload);
    if (command.input !== undefined) void this.#feed(call, command.input, credit);
    return {
      ended,
      signal: (signal) => this.#send(REQUEST.kill, call, encodeFields([["s", signal]])),
      resize: (columns, rows) =>
        this.#send(
          REQUEST.resize,
          call,
          encodeFields([
            ["c", columns],
            ["r", rows],
          ]),
        ),
    };
  }

  /** One request that is answered with data, then an end. */
  async ask(
    type: number,
    fields: readonly (readonly [string, FieldValue])[],
    content?: Uint8Array,
  ): Promise<{ readonly data: Buffer; readonly end: Frame }> {
    const call = this.#number();
    const parts: Buffer[] = [];
    const credit = creditWindow(INPUT_WINDOW);
    const answered = this.#call<Frame>(call, (frame, done) => {
      if (frame.type === REPLY.data) parts.push(frame.payload);
      else if (frame.type === REPLY.credit) credit.give(frame.payload);
      else done(frame);
    });
    void answered.then(credit.stop, credit.stop);
    this.#send(type, call, encodeFields(fields));
    if (content !== undefined) void this.#feed(call, [content], credit);
    const end = await answered;
    return { data: Buffer.concat(parts), end };
  }

  #holdBack(busy: Promise<void> | void): void {
    if (busy === undefined) return;
    this.#wire.pause();
    void busy.finally(() => this.#wire.resume());
  }

  #number(): number {
    const call = this.#next;
    this.#next = call === 0xffff_ffff ? 1 : call + 1;
    return call;
  }

  #call<T>(call: number, onFrame: (frame: Frame, done: (value: T) => void) => void): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.#lost !== undefined) return reject(this.#lost);
      const done = (value: T): void => {
        this.#pending.delete(call);
        resolve(value);
      };
      this.#pending.set(call, { onFrame: (frame) => onFrame(frame, done), onLost: reject });
    });
  }

  #send(type: number, call: number, payload: Buffer): void {
    this.#wire.send({ type, call, payload });
  }

  /** Stops quietly when the call ends before its input does. */
  async #feed(
    call: number,
    input: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
    credit: CreditWindow,
  ): Promise<void> {
    try {
      for await (const chunk of input)
        for (let at = 0; at < chunk.length; at += PIECE) {
          const piece = Buffer.from(chunk.subarray(at, at + PIECE));
          if (!(await credit.take(piece.length))) return;
          this.#send(REQUEST.stdin, call, piece);
        }
    } finally {
      this.#send(REQUEST.stdinEnd, call, EMPTY);
    }
  }
}

const EMPTY = Buffer.alloc(0);
const PIECE = 64 * 1024;

/** SIGKILL ends a call with all that it started. */
export const KILL = constants.signals.SIGKILL;

function execPayload(command: Command): Buffer {
  const flags = (command.input === undefined ? 0 : EXEC_STDIN) + (command.terminal ? EXEC_TTY : 0);
  return encodeFields([
    ...command.words.map((word) => ["a", word] as const),
    ...Object.entries(command.env).map(([name, value]) => ["e", `${name}=${value}`] as const),
    ["d", command.folder],
    ["t", command.timeoutMs],
    ["h", command.head],
    ["l", command.tail],
    ["f", flags],
  ]);
}

const tooLong = (bytes: number): HarnessError =>
  new HarnessError(
    EXIT.usage,
    `a command of ${bytes} bytes is too long: ${MAX_PAYLOAD} at most, and 128 KiB for one word`,
    "put it into a file, or give it on stdin",
  );
