import { constants } from "node:os";
import type { Duplex } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { BoxLost, EXIT, HarnessError } from "../core/errors.ts";
import { textOfBytes } from "../core/raw-data.ts";
import {
  type Command,
  type CommandRequest,
  CommandRequests,
  type CreditWindow,
  creditWindow,
  execPayload,
  exitUnstarted,
  feed,
  readExit,
  type RunnerExit,
  unsendable,
} from "./runner-command.ts";
import {
  decodeFields,
  encodeFields,
  type FieldValue,
  type Frame,
  frameWriter,
  greeting,
  numberIn,
  openWire,
  REPLY,
  REQUEST,
  type FrameWire,
} from "./runner-protocol.ts";
import { MAY_HOLD } from "./workspace/protected-mounts.ts";

/** The calls to one box. Any number run at the same time; all end when the box does. */
export class RunnerClient {
  readonly #wire: FrameWire;
  readonly #calls: OpenCalls;
  readonly #asks: CommandRequests;
  readonly #pulse: Pulse;
  /** Calls of the harness's own programs, which the pulse does not watch. */
  readonly #ownCalls = new Set<number>();
  #declaredLoss: BoxLost | undefined;
  /** The runner was told to hold: any frame but the resuming one would end the runner, and the box with it. */
  #isHolding = false;
  /** Paths that lost their mount, if the box could still report them. */
  unguarded: readonly string[] = [];
  /** Resolves with the reason when the box is gone; never rejects. */
  readonly gone: Promise<string>;

  constructor(stream: Duplex, secret: Buffer, { onAsk, paused }: ClientParts = {}) {
    const { promise, resolve } = Promise.withResolvers<string>();
    this.gone = promise;
    this.#asks = new CommandRequests(onAsk, (call, answer) => this.#send(REQUEST.answer, call, answer));
    this.#calls = new OpenCalls(paused?.next ?? 1);
    this.#pulse = new Pulse({
      isOpen: () => [...this.#calls.numbers].some((call) => !this.#ownCalls.has(call)),
      isDeaf: () => this.#wire.isPaused(),
      ping: () => this.#send(REQUEST.ping, 0, EMPTY),
      give: (up) => this.#giveUp(up),
    });
    const call = this.#calls.next;
    const first =
      paused === undefined
        ? greeting(secret)
        : frameWriter(paused.key)({ type: REQUEST.resume, call, payload: secret });
    this.#wire = openWire(
      stream,
      { secret, first },
      {
        onFrame: (frame) => {
          this.#pulse.heard();
          if (frame.type === REPLY.ask) this.#asks.take(frame);
          else if (frame.type === REPLY.unguarded) this.#unguarded(frame.payload);
          else this.#calls.take(frame);
        },
        onEnd: (reason) => {
          this.#pulse.stop();
          const lost = this.#declaredLoss ?? new BoxLost(reason, "harness doctor");
          this.#calls.lose(lost);
          resolve(lost.why);
        },
      },
    );
    if (paused === undefined) return;
    const resumed = this.#open<void>(this.#calls.number(), (_, done) => done());
    resumed.then(() => paused.asks.forEach((each) => this.#asks.take(each))).catch(() => undefined);
  }

  /** Declares the box lost, for this reason and no later one. */
  #giveUp(lost: BoxLost): void {
    this.#declaredLoss ??= lost;
    this.#wire.fail(lost.message);
  }

  #unguarded(payload: Buffer): void {
    this.unguarded = decodeFields(payload)
      .filter(({ name }) => name === "p")
      .map(({ bytes }) => textOfBytes(bytes));
    this.#giveUp(unprotected(this.unguarded));
  }

  /** Tells a runner with a lease that the harness is still there. */
  alive(): void {
    if (!this.#asks.isHeld) this.#send(REQUEST.alive, 0, EMPTY);
  }

  /**
   * Makes the runner do and say nothing until a process comes with this key; no more calls can be made. Calls other
   * than the `lasting` ones are waited for, since the harness's own queries end soon; if they do not end, holding is
   * refused.
   */
  async hold(key: Buffer, lasting: ReadonlySet<number>, patienceMs = HOLD_PATIENCE_MS): Promise<PausedState> {
    const others = (): boolean => [...this.#calls.numbers].some((call) => !lasting.has(call));
    for (let waited = 0; others() && waited < patienceMs; waited += HOLD_LOOK_MS) await sleep(HOLD_LOOK_MS);
    await this.#asks.idle();
    if (others() || this.#asks.isHeld)
      throw new HarnessError(EXIT.sandbox, "the box is busy and cannot be frozen", "");
    const asks = this.#asks.hold();
    const call = this.#calls.number();
    const confirmation = this.#open<void>(call, (frame, done) => frame.type === REPLY.held && done());
    this.#send(REQUEST.hold, call, key);
    this.#isHolding = true;
    await confirmation;
    this.#pulse.stop();
    return { next: this.#calls.next, asks, going: this.#calls.numbers };
  }

  /** Why the box was lost, or undefined. */
  get lost(): HarnessError | undefined {
    return this.#calls.lost;
  }

  /** Ends the box: the runner exits when its input ends. */
  close(): void {
    this.#wire.close();
  }

  run(command: Command, { onOutput }: Listener): Running {
    const payload = execPayload(command);
    const impossible = unsendable(command, payload);
    if (impossible !== undefined) return this.#unstarted(impossible);
    const call = this.#calls.number();
    if (command.own === true) this.#ownCalls.add(call);
    const credit = creditWindow(INPUT_WINDOW);
    const running = this.#follow(call, onOutput, credit);
    this.#send(REQUEST.exec, call, payload);
    if (command.timeoutMs > 0) this.#pulse.expect(call, command.timeoutMs);
    if (command.input !== undefined) this.#feed(call, command.input, credit);
    return running;
  }

  /** Follows a command that was started before the runner was held; the command gets no input. */
  follow(call: number, { onOutput }: Listener): Running {
    return this.#follow(call, onOutput, creditWindow(INPUT_WINDOW));
  }

  #follow(call: number, onOutput: Listener["onOutput"], credit: CreditWindow): Running {
    const seen: Buffer[] = [];
    const ended = this.#open<RunnerExit>(call, (frame, done) => {
      const output = OUTPUTS.get(frame.type as never);
      if (output !== undefined) this.#holdBack(() => onOutput(output[0], output[1], frame.payload));
      else if (frame.type === REPLY.credit) credit.give(frame.payload);
      else if (frame.type === REPLY.seen) seen.push(frame.payload);
      else if (frame.type === REPLY.exit) done({ ...readExit(frame.payload), seen });
      else if (frame.type === REPLY.end) done(exitUnstarted(numberIn(decodeFields(frame.payload), "e")));
    });
    void ended.then(credit.stop, credit.stop);
    return {
      call,
      ended,
      signal: (signal) => {
        if (signal === KILL) this.#pulse.expect(call, 0);
        this.#send(REQUEST.kill, call, encodeFields([["s", signal]]));
      },
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

  /** Sends one request, which is answered with data and then an end. */
  async ask(
    type: number,
    fields: readonly (readonly [string, FieldValue])[],
    content?: Uint8Array,
  ): Promise<{ readonly data: Buffer; readonly end: Frame }> {
    const call = this.#calls.number();
    const parts: Buffer[] = [];
    const credit = creditWindow(INPUT_WINDOW);
    const answered = this.#open<Frame>(call, (frame, done) => {
      if (frame.type === REPLY.data) parts.push(frame.payload);
      else if (frame.type === REPLY.credit) credit.give(frame.payload);
      else done(frame);
    });
    void answered.then(credit.stop, credit.stop);
    if (type === REQUEST.changes) this.#pulse.expect(call, LOOK_MS);
    this.#send(type, call, encodeFields(fields));
    if (content !== undefined) this.#feed(call, [content], credit);
    const end = await answered;
    return { data: Buffer.concat(parts), end };
  }

  #open<T>(call: number, onFrame: Parameters<typeof OpenCalls.prototype.open<T>>[1]): Promise<T> {
    const answer = this.#calls.open<T>(call, onFrame);
    this.#pulse.begin();
    const ended = (): void => {
      this.#ownCalls.delete(call);
      this.#pulse.ended(call);
    };
    answer.then(ended, ended);
    return answer;
  }

  #holdBack(work: () => Promise<void> | void): void {
    const busy = ignoreErrors(work);
    if (busy === undefined) return;
    this.#wire.pause();
    const resume = (): void => this.#wire.resume();
    void busy.then(resume, resume);
  }

  #unstarted(errno: number): Running {
    const ended = this.lost === undefined ? Promise.resolve(exitUnstarted(errno)) : Promise.reject(this.lost);
    return { call: 0, ended, signal: () => undefined, resize: () => undefined };
  }

  #send(type: number, call: number, payload: Buffer): void {
    if (!this.#isHolding) this.#wire.send({ type, call, payload });
  }

  #feed(call: number, input: Input, credit: CreditWindow): void {
    void feed(input, credit, {
      send: (piece) => this.#send(REQUEST.stdin, call, piece),
      end: () => this.#send(REQUEST.stdinEnd, call, EMPTY),
    });
  }
}

const OUTPUTS = new Map([
  [REPLY.out, ["stdout", "head"]],
  [REPLY.err, ["stderr", "head"]],
  [REPLY.outTail, ["stdout", "tail"]],
  [REPLY.errTail, ["stderr", "tail"]],
] as const);

/** The most bytes of input that the runner has not taken yet. */
const INPUT_WINDOW = 512 * 1024;

/**
 * After this time a search of a tree is overdue. The runner says so while the search lasts (sandbox/runner/snapshot.c);
 * without a word from it, a run at its end gives up early.
 */
const LOOK_MS = 5000;

const EMPTY = Buffer.alloc(0);

type Input = Parameters<typeof feed>[0];

/** SIGKILL ends a call with everything that it started. */
export const KILL = constants.signals.SIGKILL;

export interface Listener {
  /**
   * A returned promise holds back everything that the box sends until it settles. Its failure is the listener's
   * concern.
   */
  readonly onOutput: (
    stream: "stdout" | "stderr",
    part: "head" | "tail",
    bytes: Buffer,
  ) => Promise<void> | void;
}

/** A running command. `ended` rejects only if the box is lost. */
interface Running {
  readonly call: number;
  readonly ended: Promise<RunnerExit>;
  readonly signal: (signal: number) => void;
  readonly resize: (columns: number, rows: number) => void;
}

/** A runner that another process held and that this process resumes. */
export interface PausedRunner {
  /** For the one frame that resumes the runner. */
  readonly key: Buffer;
  /** The first unused number of a call. */
  readonly next: number;
  readonly asks: readonly CommandRequest[];
}

interface PausedState extends Omit<PausedRunner, "key"> {
  /** Calls that had not ended. */
  readonly going: ReadonlySet<number>;
}

interface ClientParts {
  /** Gets what a command asks of the harness, if commands may ask (sandbox/runner/ask.h), and returns the answer. */
  readonly onAsk?: ((request: Buffer) => Promise<Buffer>) | undefined;
  readonly paused?: PausedRunner | undefined;
}

const HOLD_PATIENCE_MS = 8000;

const HOLD_LOOK_MS = 20;

function ignoreErrors(work: () => Promise<void> | void): Promise<void> | void {
  try {
    return work();
  } catch {
    return undefined;
  }
}

function unprotected(paths: readonly string[]): BoxLost {
  const named = paths.length === 0 ? "" : `: ${paths.slice(0, MAX_NAMED).join(", ")}`;
  return new BoxLost(
    `a protected path was replaced from outside while the box was open, so its protection is gone${named}. Everything that ran in the box was ended; what is there now ${MAY_HOLD}`,
    "start again: the new box protects what is there now",
  );
}

const MAX_NAMED = 5;

/** The calls to a box that have not ended, by their numbers. */
class OpenCalls {
  readonly #pending = new Map<number, Pending>();
  #next: number;
  #lost: HarnessError | undefined;

  constructor(next: number) {
    this.#next = next;
  }

  get lost(): HarnessError | undefined {
    return this.#lost;
  }

  /** The first unused number. */
  get next(): number {
    return this.#next;
  }

  get numbers(): ReadonlySet<number> {
    return new Set(this.#pending.keys());
  }

  number(): number {
    const call = this.#next;
    this.#next = call === 0xffff_ffff ? 1 : call + 1;
    return call;
  }

  open<T>(call: number, onFrame: (frame: Frame, done: (value: T) => void) => void): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.#lost !== undefined) return reject(this.#lost);
      const done = (value: T): void => {
        this.#pending.delete(call);
        resolve(value);
      };
      this.#pending.set(call, { onFrame: (frame) => onFrame(frame, done), onLost: reject });
    });
  }

  take(frame: Frame): void {
    this.#pending.get(frame.call)?.onFrame(frame);
  }

  lose(lost: HarnessError): void {
    this.#lost = lost;
    for (const { onLost } of this.#pending.values()) onLost(lost);
    this.#pending.clear();
  }
}

interface Pending {
  readonly onFrame: (frame: Frame) => void;
  readonly onLost: (lost: HarnessError) => void;
}

/**
 * Limits every wait for a runner: a paused container or a hanging engine does not end the connection. Checks are
 * counted instead of time: a harness that was stopped, or a machine that slept, has heard nothing either.
 */
class Pulse {
  readonly #parts: PulseParts;
  readonly #due = new Map<number, number>();
  #timer: NodeJS.Timeout | undefined;
  #silent = 0;
  #overdue = 0;
  #over = false;

  constructor(parts: PulseParts) {
    this.#parts = parts;
  }

  /** Called when a call has begun. */
  begin(): void {
    if (this.#timer !== undefined || this.#over) return;
    this.#silent = 0;
    this.#timer = setInterval(() => this.#check(), TICK_MS).unref();
  }

  /** This call should end within so many milliseconds. */
  expect(call: number, ms: number): void {
    this.#due.set(call, Math.min(this.#due.get(call) ?? Infinity, performance.now() + ms));
  }

  ended(call: number): void {
    this.#due.delete(call);
  }

  heard(): void {
    this.#silent = 0;
  }

  /** No answer is expected any more. */
  stop(): void {
    this.#over = true;
    this.#stopTimer();
  }

  #stopTimer(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #check(): void {
    if (!this.#parts.isOpen()) return this.#stopTimer();
    if (this.#parts.isDeaf()) return this.heard();
    this.#silent += 1;
    this.#overdue = this.#isOverdue() ? this.#overdue + 1 : 0;
    const most = this.#overdue > SILENT_OVERDUE ? SILENT_OVERDUE : SILENT_CHECKS;
    if (this.#silent <= most) return this.#parts.ping();
    this.stop();
    this.#parts.give(silentFor(most));
  }

  #isOverdue(): boolean {
    const now = performance.now();
    return [...this.#due.values()].some((due) => due <= now);
  }
}

const TICK_MS = 1000;

/** The most checks, each with a ping, without a word from the runner: for any call; and for an overdue one. */
const SILENT_CHECKS = 30;

const SILENT_OVERDUE = 5;

interface PulseParts {
  /** Whether any call waits for an answer. */
  readonly isOpen: () => boolean;
  /** Whether reading is paused, so that nothing can be heard. */
  readonly isDeaf: () => boolean;
  readonly ping: () => void;
  readonly give: (up: BoxLost) => void;
}

const silentFor = (seconds: number): BoxLost =>
  new BoxLost(
    `it has not answered for ${seconds} seconds. Its container is paused or stopped, or the engine hangs`,
    "start again; harness doctor shows whether the engine answers",
  );
