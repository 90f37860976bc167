import type { Message } from "../core/messages.ts";

const SIGNS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/** What Mistral's templates accept, and everybody else too. */
const LENGTH = 9;

/** Ids of calls: what the server gave is kept, as long as no other call of the conversation has it. */
export class CallIds {
  readonly #taken = new Set<string>();
  readonly #random: () => number;

  constructor(history: readonly Message[], random: () => number) {
    this.#random = random;
    for (const message of history)
      if (message.role === "assistant") for (const { id } of message.calls) this.#taken.add(id);
  }

  next(given = ""): string {
    let id = given;
    while (id === "" || this.#taken.has(id)) id = this.#fresh();
    this.#taken.add(id);
    return id;
  }

  #fresh(): string {
    let id = "";
    while (id.length < LENGTH) id += SIGNS[Math.floor(this.#random() * SIGNS.length)] ?? "";
    return id;
  }
}
