import type { Emit, EventBody } from "../../core/events.ts";
import type { Message } from "../../core/messages.ts";
import type { ModelFailure } from "../../core/provider.ts";
import type { Compaction } from "../../core/session.ts";
import { mergeArtifacts } from "./artifact-merge.ts";
import { renderArtifact } from "./artifact-text.ts";
import { readArtifact } from "./artifact.ts";
import type { History } from "./history.ts";
import { olderPart } from "./older-part.ts";
import { pruneSteps } from "./prune.ts";
import { viewOf } from "./view.ts";

/** Parts of the window. */
const TRIGGER = 0.8;
const GOAL = 0.6;
/** By how much a history must have changed before a failed compaction is tried again. */
const BACK_OFF = 0.05;
/** A server that refuses a prompt counts more than we do. */
const REFUSED = 0.8;
const MOST_PASSES = 8;

export interface Means {
  /** Tokens that a prompt may have. */
  readonly window: number;
  /** A window that is guessed never blocks a request. */
  readonly known: boolean;
  /** Of a request of these messages, the tools included. */
  tokens(messages: readonly Message[]): number;
  /** The reply to these messages. It is asked for with the same tools as ever; calls in it are not run. */
  summarise(messages: readonly Message[], signal: AbortSignal): Promise<string | ModelFailure>;
  readonly emit: Emit;
}

export type Fitted =
  | { readonly kind: "fits" }
  /** Of a known window; nothing is left to be shortened. */
  | { readonly kind: "too_long"; readonly tokens: number; readonly window: number };

type Trigger = Extract<EventBody, { readonly type: "compaction" }>["trigger"];
type Pass = "shorter" | "nothing" | "failed";

interface Aim {
  readonly trigger: Trigger;
  readonly window: number;
  /** Even where little is to be won. */
  readonly forced: boolean;
}

/** Keeps what is sent of one history within the window. A compaction that fails changes nothing. */
export class Compactor {
  readonly #history: History;
  readonly #means: Means;
  /** Tokens of the request at the last failure. */
  #failedAt: number | undefined;

  constructor(history: History, means: Means) {
    this.#history = history;
    this.#means = means;
  }

  /** Before each request of the loop. */
  async fit(signal: AbortSignal): Promise<Fitted> {
    const { window, known } = this.#means;
    const tooLong = (): boolean => known && this.#tokens() > window;
    if (tooLong() || !this.#backsOff())
      await this.#shorten({ trigger: "pressure", window, forced: tooLong() }, signal);
    if (tooLong() && !signal.aborted) this.#pruneRecent({ trigger: "pressure", window, forced: true });
    return tooLong() ? { kind: "too_long", tokens: this.#tokens(), window } : { kind: "fits" };
  }

  /**
   * Because a person asked for it, or a server refused the prompt as too long. Whether the request is shorter now; where it
   * is not, an event has said why.
   */
  async now(trigger: "manual" | "refused", signal: AbortSignal): Promise<boolean> {
    const before = this.#tokens();
    const window = trigger === "manual" ? this.#means.window : Math.min(this.#means.window, before) * REFUSED;
    const aim: Aim = { trigger, window, forced: true };
    const last = await (trigger === "manual" ? this.#summarise(aim, signal) : this.#shorten(aim, signal));
    if (trigger === "refused" && this.#tokens() > window && !signal.aborted) this.#pruneRecent(aim);
    const shorter = this.#tokens() < before;
    if (!shorter && last === "nothing")
      this.#emit("failed", aim, before, { reason: "nothing is left to summarise" });
    return shorter;
  }

  #backsOff(): boolean {
    const since = this.#tokens() - (this.#failedAt ?? -Infinity);
    return Math.abs(since) < BACK_OFF * this.#means.window;
  }

  /** How the last pass ended. */
  async #shorten(aim: Aim, signal: AbortSignal): Promise<Pass> {
    let last: Pass = "shorter";
    for (let pass = 0; pass < MOST_PASSES && this.#tokens() > TRIGGER * aim.window; pass += 1) {
      if (this.#tryPrune(pruneSteps(this.#history, this.#means, "old"), aim, GOAL)) return "shorter";
      last = await this.#summarise(aim, signal);
      if (last !== "shorter") break;
    }
    return last;
  }

  /** Results that the model may not have read yet: better than a request that cannot be sent. */
  #pruneRecent(aim: Aim): void {
    this.#tryPrune(pruneSteps(this.#history, this.#means, "all"), aim, 1);
  }

  /** The first of the steps that comes below this part of the window. */
  #tryPrune(steps: readonly number[], aim: Aim, part: number): boolean {
    const before = this.#tokens();
    for (const pruneBefore of steps) {
      const next = { ...this.#next(), pruneBefore };
      const after = this.#tokens(next);
      if (after > part * aim.window) continue;
      this.#history.compact(next);
      this.#emit("pruned", aim, before, { after });
      return true;
    }
    return false;
  }

  async #summarise(aim: Aim, signal: AbortSignal): Promise<Pass> {
    const before = this.#tokens();
    const part = olderPart(this.#history, this.#means, aim);
    if (part === undefined) return "nothing";
    this.#emit("started", aim, before);
    const reply = await this.#means.summarise(part.messages, signal);
    const made = typeof reply === "string" ? this.#made(reply, part.keepFrom, before) : reply.reason;
    if (typeof made === "string" || signal.aborted) {
      if (!signal.aborted) this.#failedAt = before;
      this.#emit("failed", aim, before, { reason: typeof made === "string" ? made : "cancelled" });
      return "failed";
    }
    this.#history.compact(made);
    this.#failedAt = undefined;
    this.#emit("succeeded", aim, before, { after: this.#tokens() });
    return "shorter";
  }

  /** The compaction, or why there is none. */
  #made(reply: string, keepFrom: number, before: number): Compaction | string {
    const read = readArtifact(reply);
    if (read === undefined) return "the summary is empty";
    const artifact = renderArtifact(mergeArtifacts(this.#next().artifact, read));
    const made = { ...this.#next(), keepFrom, artifact };
    return this.#tokens(made) < before ? made : "the summary is no shorter than what it would replace";
  }

  /** What is in force, as it would be made again here. */
  #next(): Compaction {
    const now = this.#history.compaction ?? { pruneBefore: 0, keepFrom: 0, artifact: "" };
    return { ...now, at: this.#history.count };
  }

  #tokens(under?: Compaction): number {
    return this.#means.tokens(viewOf(this.#history, under ?? this.#history.compaction));
  }

  #emit(
    status: "pruned" | "started" | "succeeded" | "failed",
    { trigger }: Aim,
    before: number,
    { after = null, reason = "" }: { readonly after?: number | null; readonly reason?: string } = {},
  ): void {
    this.#means.emit({ type: "compaction", status, trigger, before, after, reason });
  }
}
