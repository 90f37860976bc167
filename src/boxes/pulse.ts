import { BoxLost } from "../core/errors.ts";

const TICK_MS = 1000;
/** The most checks, each with a ping, without a word from the runner: for any call; and for an overdue one. */
const SILENT = 30;
const SILENT_OVERDUE = 5;

interface PulseParts {
  /** Whether any call waits for an answer. */
  readonly isOpen: () => boolean;
  /** Whether reading is paused, so that nothing can be heard. */
  readonly isDeaf: () => boolean;
  readonly ping: () => void;
  readonly give: (up: BoxLost) => void;
}

/**
 * Limits every wait for a runner: a paused container or a hanging engine does not end the connection. Checks are
 * counted instead of time: a harness that was stopped, or a machine that slept, has heard nothing either.
 */
export class Pulse {
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
    const most = this.#overdue > SILENT_OVERDUE ? SILENT_OVERDUE : SILENT;
    if (this.#silent <= most) return this.#parts.ping();
    this.stop();
    this.#parts.give(silentFor(most));
  }

  #isOverdue(): boolean {
    const now = performance.now();
    return [...this.#due.values()].some((due) => due <= now);
  }
}

const silentFor = (seconds: number): BoxLost =>
  new BoxLost(
    `it has not answered for ${seconds} seconds. Its container is paused or stopped, or the engine hangs`,
    "start again; harness doctor shows whether the engine answers",
  );
