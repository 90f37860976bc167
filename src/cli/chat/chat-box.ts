import type { Seat } from "../../agent/seat.ts";
import type { OwnedBox } from "../../core/ports.ts";
import { briefingFrom } from "../run/briefing.ts";
import { type LazyBox, lazyBox } from "../run/lazy-box.ts";
import type { Talk } from "./talk.ts";

const REMEDY = "say it again: a new box starts";

interface Held {
  readonly box: LazyBox;
  readonly talk: Talk;
  readonly briefing: Seat["briefing"];
}

/** The box of a chat: one for all its requests, until it is lost or must be another one. */
export class ChatBox implements AsyncDisposable {
  readonly #start: (signal: AbortSignal) => Promise<OwnedBox>;
  readonly #ending = new AbortController();
  #held: Held | undefined;
  /** Who is told that it is ready. */
  onReady: Parameters<typeof lazyBox>[1] = () => undefined;

  constructor(start: (signal: AbortSignal) => Promise<OwnedBox>) {
    this.#start = start;
  }

  /** For the next request; one that could not start, or is no more, is tried anew. */
  async for(talk: Talk): Promise<Omit<Held, "talk">> {
    if (this.#held?.box.walls.aborted === true) await this.close();
    if (this.#held?.talk === talk) return this.#held;
    const box = this.#held?.box ?? lazyBox(this.#start, (ms, box) => this.onReady(ms, box), REMEDY);
    const { history } = talk.memory;
    const briefing = briefingFrom(box, talk.prompt, { history, signal: this.#ending.signal });
    this.#held = { box, talk, briefing };
    return this.#held;
  }

  async close(): Promise<void> {
    const box = this.#held?.box;
    this.#held = undefined;
    await box?.[Symbol.asyncDispose]();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ending.abort(new Error("the chat has ended"));
    await this.close();
  }
}
