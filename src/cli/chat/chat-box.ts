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

type BoxStart = (signal: AbortSignal, session: string) => Promise<OwnedBox>;

/** The box of a chat: one for all its requests, until it is lost or must be another one. */
export class ChatBox implements AsyncDisposable {
  readonly #start: BoxStart;
  readonly #shared: boolean;
  readonly #ending = new AbortController();
  #held: Held | undefined;
  /** Who is told that it is ready. */
  onReady: Parameters<typeof lazyBox>[1] = () => undefined;

  /** `shared`: one box serves any session. */
  constructor(start: BoxStart, shared: boolean) {
    this.#start = start;
    this.#shared = shared;
  }

  /** For the next request; one that could not start, or is no more, is tried anew. */
  async for(talk: Talk): Promise<Omit<Held, "talk">> {
    if (this.#held?.box.walls.aborted === true) await this.close();
    if (this.#held?.talk === talk) return this.#held;
    if (!this.#shared) await this.close();
    const start = (signal: AbortSignal): Promise<OwnedBox> => this.#start(signal, talk.session.id);
    const box = this.#held?.box ?? lazyBox(start, (ms, ready) => this.onReady(ms, ready), { remedy: REMEDY });
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
