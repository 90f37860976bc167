import { move, stdout } from "../../render/tty/output.ts";
import { type Key, TerminalKeys } from "../../render/tui/terminal-keys.ts";

/** After so long an escape that nothing followed was the key. */
const ESCAPE_MS = 40;

/** A terminal in raw mode: its keys, until it is let go. */
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

  /** Also from a shell that has set modes of its own meanwhile: a mode that is thought to be set is not set again. */
  grab(): void {
    process.stdin.setRawMode(false);
    process.stdin.setRawMode(true);
    stdout.writeNow(move("pasteson"));
  }

  /** As it was before. */
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
