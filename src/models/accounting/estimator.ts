import type { ModelRequest } from "../../core/provider.ts";

/** Before a server has counted anything. */
const TOKENS_PER_BYTE = 1 / 4;
/** How much one count moves what is believed. */
const WEIGHT = 0.3;
/** What no tokeniser does; such a count is not of this prompt. */
const [FEWEST, MOST] = [1 / 20, 2];
/** Below it, the template around the messages counts too much. */
const SMALLEST = 1000;
/** A prompt of which less than this part was counted has been cut, or the estimate is far off. */
const CUT = 0.6;
const CUT_AT_FIRST = 0.5;

/** How many tokens a text will be, learnt for each model from what its server counts. */
export class TokenEstimator {
  readonly #ratios = new Map<string, number>();

  tokens(model: string, bytes: number): number {
    return Math.ceil(bytes * (this.#ratios.get(model) ?? TOKENS_PER_BYTE));
  }

  /** Learns from a prompt of so many bytes that was counted. */
  learn(model: string, bytes: number, counted: number): void {
    const seen = counted / bytes;
    if (bytes < SMALLEST || !(seen >= FEWEST && seen <= MOST) || this.looksCut(model, bytes, counted)) return;
    const known = this.#ratios.get(model);
    this.#ratios.set(model, known === undefined ? seen : known + WEIGHT * (seen - known));
  }

  /** The server has read far less than was sent. */
  looksCut(model: string, bytes: number, counted: number): boolean {
    const estimate = this.tokens(model, bytes);
    const part = this.#ratios.has(model) ? CUT : CUT_AT_FIRST;
    return estimate >= SMALLEST && counted < estimate * part;
  }
}

/** The bytes of everything in a request that becomes part of the prompt. */
export function promptBytes({ messages, tools }: Pick<ModelRequest, "messages" | "tools">): number {
  let bytes = tools.length === 0 ? 0 : Buffer.byteLength(JSON.stringify(tools));
  for (const message of messages) {
    bytes += Buffer.byteLength(message.text);
    if (message.role === "assistant" && message.calls.length > 0)
      bytes += Buffer.byteLength(JSON.stringify(message.calls));
  }
  return bytes;
}
