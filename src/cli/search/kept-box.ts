import type { Box, OwnedBox } from "../../core/ports.ts";

/** One box for all searches of a run: started by the first that has to read, and anew where it was lost. */
export class KeptBox implements AsyncDisposable {
  readonly #start: (signal: AbortSignal) => Promise<OwnedBox>;
  #held: Promise<OwnedBox> | undefined;

  constructor(start: (signal: AbortSignal) => Promise<OwnedBox>) {
    this.#start = start;
  }

  async box(signal: AbortSignal): Promise<Box> {
    const held = (this.#held ??= this.#start(signal));
    const forget = (): void => void (this.#held = this.#held === held ? undefined : this.#held);
    try {
      const box = await held;
      void box.gone.then(forget);
      return box;
    } catch (thrown) {
      forget();
      throw thrown;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const box = await this.#held?.catch(() => undefined);
    await box?.[Symbol.asyncDispose]();
  }
}
