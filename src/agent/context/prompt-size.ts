import type { Message } from "../../core/messages.ts";
import type { ToolOffer } from "../../core/model-provider.ts";
import { promptBytes, TokenEstimator } from "../../models/usage.ts";

/** What a server's template puts around each message. */
const PER_MESSAGE = 4;

/** How many tokens a request will be: a guess by its bytes until the server's counts teach better. */
export class PromptSize {
  readonly #model: string;
  readonly #offers: number;
  readonly #estimator: TokenEstimator;
  /** Messages never change; of a long transcript only what is new is measured. */
  readonly #bytes = new WeakMap<Message, number>();

  constructor(model: string, offers: readonly ToolOffer[], estimator = new TokenEstimator()) {
    this.#model = model;
    this.#offers = promptBytes({ messages: [], tools: offers });
    this.#estimator = estimator;
  }

  /** Of a request of these messages with the tools that are offered. */
  readonly tokens = (messages: readonly Message[]): number =>
    this.#estimator.tokens(this.#model, this.#total(messages)) + PER_MESSAGE * messages.length;

  /** What the server counted for a request of these messages; null teaches nothing. */
  learn(messages: readonly Message[], counted: number | null): void {
    if (counted === null) return;
    this.#estimator.learn(this.#model, this.#total(messages), counted - PER_MESSAGE * messages.length);
  }

  #total(messages: readonly Message[]): number {
    let bytes = this.#offers;
    for (const message of messages) bytes += this.#bytesOf(message);
    return bytes;
  }

  #bytesOf(message: Message): number {
    const known = this.#bytes.get(message);
    if (known !== undefined) return known;
    const bytes = promptBytes({ messages: [message], tools: [] });
    this.#bytes.set(message, bytes);
    return bytes;
  }
}
