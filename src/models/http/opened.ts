import type { IncomingMessage } from "node:http";
import type { Concessions } from "./concessions.ts";
import type { Fields } from "./fields.ts";
import { post } from "./post.ts";
import { type Asked, failureOf } from "./refusals.ts";
import { refusalTo } from "./body.ts";
import { WireFailure } from "../wire.ts";

export interface Opening {
  readonly asked: Asked;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Fields;
  readonly concessions: Concessions;
  readonly signal: AbortSignal;
  readonly connectMs: number;
}

export interface Opened {
  readonly response: IncomingMessage;
  /** What had to be left out. */
  readonly notes: readonly string[];
}

/** Asks, again without a field that the server refuses, until it answers; throws the `WireFailure` otherwise. */
export async function opened(opening: Opening): Promise<Opened> {
  const { asked, headers, concessions, signal, connectMs } = opening;
  for (;;) {
    const { body, notes } = concessions.applied(asked.model, opening.body);
    const response = await post({ url: asked.url, headers, body, signal, connectMs });
    const refusal = await unlessCancelled(refusalTo(response, asked), signal);
    if (refusal === undefined) return { response, notes };
    if (!concessions.learn(asked.model, body, refusal)) throw failureOf(refusal, asked);
  }
}

async function unlessCancelled<T>(pending: Promise<T>, signal: AbortSignal): Promise<T> {
  try {
    return await pending;
  } catch (thrown) {
    throw signal.aborted ? new WireFailure("cancelled", "cancelled") : thrown;
  }
}
