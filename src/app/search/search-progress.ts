import { formatDuration } from "../../core/bounds.ts";
import type { Output } from "../../render/tty/output.ts";
import { fitting, LiveLine, progressBar } from "../../render/tty/search-lines.ts";
import type { Progress } from "../../search/index/index-plan.ts";

/** So many lines at most where nobody watches the terminal. */
const PLAIN_STEP_MS = 5000;

/** How far an update is, on stderr: a line that is rewritten, or plain lines now and then. */
export class IndexProgress {
  readonly #stream: Output;
  readonly #quiet: boolean;
  readonly #live: LiveLine;
  readonly #what: string;
  readonly #unit: string;
  readonly #pace = new Pace();
  #said = performance.now();
  #shown = 0;

  /** `what` goes on, with how many of `unit`. */
  constructor(stream: Output, quiet: boolean, what: string, unit: string) {
    this.#stream = stream;
    this.#quiet = quiet;
    this.#live = new LiveLine(stream, quiet);
    this.#what = what;
    this.#unit = unit;
  }

  readonly take = ({ done, total }: Pick<Progress, "done" | "total">): void => {
    const now = performance.now();
    this.#pace.take(done, now);
    if (now - this.#shown >= 80 || done === total) {
      this.#shown = now;
      this.#live.show(fitting(this.#stream.columns, this.#lines(done, total)));
    }
    if (this.#quiet || this.#stream.isTTY || now - this.#said < PLAIN_STEP_MS) return;
    this.#said = now;
    this.#stream.write(`${this.#what}: ${this.#about(done, total)}\n`);
  };

  end(): void {
    this.#live.clear();
  }

  /** Longest first; what is left out of a narrow terminal is what says least. */
  #lines(done: number, total: number): readonly string[] {
    const about = this.#about(done, total);
    const share = `${total > 0 ? Math.floor((done / total) * 100) : 0} %`;
    const left = about.split(", ").at(-1);
    return [
      `${this.#what} ${progressBar(done, total)} ${about}`,
      `${this.#what} ${share} ${about}`,
      `${this.#what} ${share} ${left}`,
    ];
  }

  #about(done: number, total: number): string {
    const rate = this.#pace.perSecond;
    if (rate === null) return `${done} of ${total} ${this.#unit}`;
    const left = formatDuration(((total - done) / rate) * 1000);
    return `${done} of ${total} ${this.#unit}, ${Math.round(rate)} a second, ${left} left`;
  }
}

/** Two stretches of this length have to agree before anything is said of the rest. */
const STRETCH_MS = 1500;
const ALIKE = 2;

interface Mark {
  readonly done: number;
  readonly at: number;
}

/** How fast something goes on. What was done before the first look is not counted, nor what came before it went steadily. */
export class Pace {
  #mark: Mark | undefined;
  #rates: readonly number[] = [];

  /** `at` in milliseconds of any clock that only goes on. */
  take(done: number, at: number): void {
    this.#mark ??= { done, at };
    const since = at - this.#mark.at;
    if (since < STRETCH_MS) return;
    this.#rates = [...this.#rates.slice(-1), ((done - this.#mark.done) / since) * 1000];
    this.#mark = { done, at };
  }

  /** Null until it is steady. */
  get perSecond(): number | null {
    const [one = 0, other = 0] = this.#rates;
    const slower = Math.min(one, other);
    return slower > 0 && Math.max(one, other) <= slower * ALIKE ? (one + other) / 2 : null;
  }
}
