import { move, stdout } from "../../render/tty/output.ts";
import { type Key, TerminalKeys } from "../../render/tui/terminal-keys.ts";

/** An escape that nothing follows within this time was the key itself. */
const ESCAPE_MS = 40;

/** The keys of a terminal in raw mode, until it is released. */
export class TuiKeys implements Disposable {
  readonly #keys = new TerminalKeys();
  readonly #take: (key: Key) => void;
  readonly #ended: () => void;
  #timer: NodeJS.Timeout | undefined;

  constructor(take: (key: Key) => void, ended: () => void) {
    this.#take = take;
    this.#ended = ended;
    const { stdin } = process;
    stdin.setEncoding("utf8");
    stdin.on("data", this.#data);
    stdin.on("end", ended);
    stdin.on("error", ended);
    process.on("exit", this.#release);
    this.grab();
    stdin.resume();
  }

  readonly #data = (text: string): void => {
    clearTimeout(this.#timer);
    this.#hand(this.#keys.push(text));
    if (this.#keys.waits) this.#timer = setTimeout(() => this.#hand(this.#keys.flush()), ESCAPE_MS);
  };

  #hand(keys: readonly Key[]): void {
    for (const key of keys) this.#take(key);
  }

  /**
   * Turns raw mode off and on, because a shell may have changed the terminal meanwhile, and Node does not set a mode
   * that it believes to be set.
   */
  grab(): void {
    process.stdin.setRawMode(false);
    process.stdin.setRawMode(true);
    stdout.writeNow(move("pasteson"));
  }

  /** Restores the terminal. */
  release(): void {
    this.#release();
  }

  readonly #release = (): void => {
    stdout.writeNow(move("pastesoff") + move("cursor"));
    process.stdin.setRawMode(false);
  };

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    const { stdin } = process;
    stdin.removeListener("data", this.#data);
    stdin.removeListener("end", this.#ended);
    stdin.removeListener("error", this.#ended);
    process.removeListener("exit", this.#release);
    this.#release();
    stdin.pause();
  }
}
