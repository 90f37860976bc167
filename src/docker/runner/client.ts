import { constants } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import type { Duplex } from "node:stream";
import { EXIT, HarnessError } from "../../core/errors.ts";
import { type Command, execPayload, unsendable } from "./command.ts";
import { type CreditWindow, creditWindow } from "./credit.ts";
import { exitUnstarted, readExit, type RunnerExit } from "./exit.ts";
import { decodeFields, encodeFields, type FieldValue, numberIn } from "./fields.ts";
import { type Frame, frameWriter, MAX_PAYLOAD, REPLY, REQUEST } from "./frames.ts";
import { openWire, type Wire } from "./wire.ts";

export interface Listener {
  /** A promise holds back everything that the box sends, until it is settled. That it fails is its maker's affair. */
  readonly onOutput: (
    stream: "stdout" | "stderr",
    part: "head" | "tail",
    bytes: Buffer,
  ) => Promise<void> | void;
}

/** A command in progress. `ended` never rejects but for the loss of the box. */
export interface Running {
  readonly call: number;
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

/** What a command asks of the harness, and waits for. */
export type Asked = Pick<Frame, "call" | "payload">;

/** A runner that was held by another process, and goes on with this one. */
export interface HeldRunner {
  /** Of the one frame that takes it up. */
  readonly key: Buffer;
  /** The first number of a call that was not given yet. */
  readonly next: number;
  readonly asks: readonly Asked[];
}

interface Held extends Omit<HeldRunner, "key"> {
  /** Calls that had not ended. */
  readonly going: ReadonlySet<number>;
}

export interface ClientParts {
  /** Gets what a command asks of the harness, if it may (sandbox/runner/ask.h), and gives the answer. */
  readonly onAsk?: ((asked: Buffer) => Promise<Buffer>) | undefined;
  readonly held?: HeldRunner | undefined;
}

/** Input that the runner has not taken yet never exceeds this. */
const INPUT_WINDOW = 512 * 1024;

/** The calls to one box. Any number run side by side; all end when the box does. */
export class RunnerClient {
  readonly #wire: Wire;
  readonly #pending = new Map<number, Pending>();
  #next = 1;
  #lost: HarnessError | undefined;
  #asking = 0;
  /** From the request to hold it on: what came too late to be answered. */
  #late: Asked[] | undefined;
  readonly #onAsk: ClientParts["onAsk"];
  /** Resolves, never rejects, when the box is gone, with the reason. */
  readonly gone: Promise<string>;

  constructor(stream: Duplex, secret: Buffer, { onAsk, held }: ClientParts = {}) {
    const { promise, resolve } = Promise.withResolvers<string>();
    this.gone = promise;
    this.#onAsk = onAsk;
    this.#next = held?.next ?? 1;
    const call = this.#next;
    const first = held && frameWriter(held.key)({ type: REQUEST.resume, call, payload: secret });
    this.#wire = openWire(stream, first === undefined ? { secret } : { secret, first }, {
      onFrame: (frame) => {
        if (frame.type === REPLY.ask) this.#asked(frame);
        else this.#pending.get(frame.call)?.onFrame(frame);
      },
      onEnd: (reason) => {
        this.#lost = new HarnessError(EXIT.sandbox, `the box was lost: ${reason}`, "harness doctor");
        for (const { onLost } of this.#pending.values()) onLost(this.#lost);
        this.#pending.clear();
        resolve(reason);
      },
    });
    if (held === undefined) return;
    const resumed = this.#call<void>(this.#number(), (_, done) => done());
    resumed.then(() => held.asks.forEach((each) => this.#asked(each))).catch(() => undefined);
  }

  /** Tells a runner with a lease that somebody is there. */
  alive(): void {
    if (this.#late === undefined) this.#send(REQUEST.alive, 0, EMPTY);
  }

  /**
   * Has the runner do nothing and say nothing until somebody comes with this key; nothing can be asked any more. It is
   * refused while other calls than the `lasting` ones are under way.
   */
  async hold(key: Buffer, lasting: ReadonlySet<number>): Promise<Held> {
    while (this.#asking > 0) await sleep(ASK_POLL_MS);
    const others = [...this.#pending.keys()].filter((call) => !lasting.has(call));
    if (others.length > 0 || this.#late !== undefined)
      throw new HarnessError(EXIT.sandbox, "the box is at work and cannot be held", "");
    const asks = (this.#late = []);
    const call = this.#number();
    const held = this.#call<void>(call, (frame, done) => frame.type === REPLY.held && done());
    this.#send(REQUEST.hold, call, key);
    await held;
    return { next: this.#next, asks, going: new Set(this.#pending.keys()) };
  }

  /** Why there is no box any more, or undefined. */
  get lost(): HarnessError | undefined {
    return this.#lost;
  }

  /** Ends the box: the runner leaves when its input does. */
  close(): void {
    this.#wire.close();
  }

  run(command: Command, { onOutput }: Listener): Running {
    const payload = execPayload(command);
    const impossible = unsendable(command, payload);
    if (impossible !== undefined) return this.#unstarted(impossible);
    const call = this.#number();
    const credit = creditWindow(INPUT_WINDOW);
    const running = this.#follow(call, onOutput, credit);
    this.#send(REQUEST.exec, call, payload);
    if (command.input !== undefined) void this.#feed(call, command.input, credit);
    return running;
  }

  /** A command that was begun before the runner was held, without input. */
  follow(call: number, { onOutput }: Listener): Running {
    return this.#follow(call, onOutput, creditWindow(INPUT_WINDOW));
  }

  #follow(call: number, onOutput: Listener["onOutput"], credit: CreditWindow): Running {
    const ended = this.#call<RunnerExit>(call, (frame, done) => {
      const output = OUTPUTS.get(frame.type as never);
      if (output !== undefined) this.#holdBack(() => onOutput(output[0], output[1], frame.payload));
      else if (frame.type === REPLY.credit) credit.give(frame.payload);
      else if (frame.type === REPLY.exit) done(readExit(frame.payload));
      else if (frame.type === REPLY.end) done(exitUnstarted(numberIn(decodeFields(frame.payload), "e")));
    });
    void ended.then(credit.stop, credit.stop);
    return {
      call,
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

  #asked({ call, payload }: Asked): void {
    if (this.#late === undefined) void this.#answer(call, payload);
    else this.#late.push({ call, payload });
  }

  async #answer(call: number, payload: Buffer): Promise<void> {
    this.#asking += 1;
    const answer = (await this.#onAsk?.(payload)) ?? EMPTY;
    this.#asking -= 1;
    this.#send(REQUEST.answer, call, answer.subarray(0, MAX_PAYLOAD));
  }

  #holdBack(work: () => Promise<void> | void): void {
    const busy = attempted(work);
    if (busy === undefined) return;
    this.#wire.pause();
    const resume = (): void => this.#wire.resume();
    void busy.then(resume, resume);
  }

  #unstarted(errno: number): Running {
    const ended =
      this.#lost === undefined ? Promise.resolve(exitUnstarted(errno)) : Promise.reject(this.#lost);
    return { call: 0, ended, signal: () => undefined, resize: () => undefined };
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

  /** Stops quietly when the call ends before its input does; input that fails is over. */
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
    } catch {
      // Whoever gave the input knows.
    }
    this.#send(REQUEST.stdinEnd, call, EMPTY);
  }
}

const EMPTY = Buffer.alloc(0);
const PIECE = 64 * 1024;
const ASK_POLL_MS = 20;

/** SIGKILL ends a call with all that it started. */
export const KILL = constants.signals.SIGKILL;

function attempted(work: () => Promise<void> | void): Promise<void> | void {
  try {
    return work();
  } catch {
    return undefined;
  }
}
