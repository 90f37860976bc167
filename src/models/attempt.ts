import type { ProviderEvent } from "../core/provider.ts";
import { asFailure } from "./failure.ts";
import type { Reply } from "./reply.ts";
import type { Watched } from "./timeouts.ts";
import type { WireEvent, WireFailure } from "./wire.ts";

/** One request to the server, from its beginning to whatever ends it. */
export class Attempt {
  readonly reply: Reply;
  readonly #source: Watched<WireEvent>;
  /** null as long as nothing has gone wrong. */
  failure: WireFailure | null = null;

  constructor(source: Watched<WireEvent>, reply: Reply) {
    this.#source = source;
    this.reply = reply;
  }

  /** What comes next that is to be shown; null when it is over. Never rejects. */
  async next(): Promise<ProviderEvent | null> {
    try {
      while (!this.reply.cut) {
        const step = await this.#source.next();
        if (step.done === true) return null;
        const event = this.reply.take(step.value);
        if (event !== null) return event;
      }
    } catch (thrown) {
      this.failure = asFailure(thrown);
    }
    return null;
  }

  /** Leaves the server, if it has not ended. */
  end(): void {
    this.#source.end();
  }
}
