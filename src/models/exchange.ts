import type { Usage } from "../core/messages.ts";
import type { ModelRequest, ProviderEvent } from "../core/provider.ts";
import { promptBytes, type TokenEstimator } from "./accounting/estimator.ts";
import { costOf, type Price, priceOf } from "./accounting/prices.ts";
import { NO_USAGE, REFUSED_USAGE, sumUsage, usageOf } from "./accounting/usage.ts";
import { Attempt } from "./attempt.ts";
import type { Clock } from "./clock.ts";
import { isEmpty, messageFrom, stopOf } from "./ending.ts";
import { asFailure, inShort, modelFailure, wasRefused } from "./failure.ts";
import type { Fallbacks } from "./fallbacks.ts";
import { Reply } from "./reply.ts";
import { delayAfter, type RetryRules } from "./retry.ts";
import { OfferedTools } from "./text-calls/names.ts";
import { inText } from "./text-protocol.ts";
import { type Limits, Watched } from "./timeouts.ts";
import { endless, type Wire, WireFailure } from "./wire.ts";
import type { ReadCalls, WrittenCalls } from "./written-calls.ts";

/** What an exchange works with. */
export interface Means {
  readonly wire: Wire;
  readonly limits: Limits;
  readonly rules: RetryRules;
  /** Takes secrets out of a text for people. */
  readonly clean: (text: string) => string;
  readonly prices: readonly Price[];
  readonly estimator: TokenEstimator;
  readonly fallbacks: Fallbacks;
  readonly written: (request: ModelRequest) => WrittenCalls;
  readonly clock: Clock;
  readonly random: () => number;
}

const NO_TOOLS = "takes no tools: they stand in its prompt, and its calls are read from the text";

/** What came before is a part of a reply at best. */
const filtered = (): WireFailure => new WireFailure("refused", "the server filtered the reply");

/** One request of the agent: as many attempts as it takes, and what is tried next after each of them. */
export class Exchange {
  readonly #means: Means;
  readonly #request: ModelRequest;
  readonly #signal: AbortSignal;
  readonly #notes = new Set<string>();
  #usage: Usage = NO_USAGE;
  #native: boolean;
  #think: boolean | undefined;
  #sent: ModelRequest;
  #attempts = 0;
  #passing = 0;
  #unread = 0;
  #wasEmpty = false;
  /** Why tools were put into the text as a trial; it is remembered when it helps. */
  #trial: string | null = null;

  constructor(means: Means, request: ModelRequest, signal: AbortSignal) {
    this.#means = means;
    this.#request = request;
    this.#signal = signal;
    this.#think = request.think;
    this.#native = !means.fallbacks.has(request.model);
    this.#sent = request;
  }

  begin(): Attempt {
    const { wire, limits, clock, written } = this.#means;
    this.#attempts += 1;
    const asked = this.#native ? this.#request : inText(this.#request);
    this.#sent = this.#think === undefined ? asked : { ...asked, think: this.#think };
    const sent = { ...this.#sent, nativeTools: this.#native, connectMs: limits.connectMs };
    const watch = { limits, clock, signal: this.#signal };
    return new Attempt(
      new Watched((signal) => wire.send(sent, signal), watch),
      new Reply(written(this.#request), limits),
    );
  }

  /** What the attempt comes to: it ends with `finished` or `failed`, or with `waiting` when another one is due. */
  after({ reply, failure }: Attempt): readonly ProviderEvent[] {
    this.#count(reply, failure);
    if (this.#signal.aborted) return [this.cancelled()];
    try {
      if (failure !== null && failure.raw === null) return [this.#afterFailure(failure, reply)];
      const { events, found, withdrawn } = reply.end(
        new OfferedTools(this.#request.tools),
        failure?.raw ?? null,
      );
      const again = failure === null ? null : this.#afterUnread(failure, found);
      if (again !== null) return [again];
      return [...(withdrawn ? [this.#withdrawal()] : []), ...events, this.#afterReply(reply, found)];
    } catch (thrown) {
      return [this.#failed(asFailure(thrown))];
    }
  }

  cancelled(): ProviderEvent {
    return this.#failed(new WireFailure("cancelled", "cancelled"));
  }

  #count({ begun, counted }: Reply, failure: WireFailure | null): void {
    const refused = failure !== null && !begun && wasRefused(failure);
    const usage = refused ? REFUSED_USAGE : usageOf(counted);
    const cost = refused ? 0 : costOf(usage, priceOf(this.#request.model, this.#means.prices));
    this.#usage = sumUsage(this.#usage, { ...usage, cost });
  }

  #afterFailure(failure: WireFailure, { shown }: Reply): ProviderEvent {
    const { rules, random } = this.#means;
    if (failure.refusesTools && this.#native && this.#request.tools.length > 0) {
      this.#means.fallbacks.add(this.#request.model, failure.message);
      return this.#inText();
    }
    this.#passing += 1;
    const ms = shown ? null : delayAfter(this.#passing, failure, rules, random);
    return ms === null ? this.#failed(failure) : this.#again(failure.message, ms);
  }

  /** The server could not read the reply. Calls that can be read here are all that is needed; null says so. */
  #afterUnread(failure: WireFailure, found: ReadCalls): ProviderEvent | null {
    this.#unread += 1;
    const readHere = "The server could not read the reply; it was read here.";
    if (found.calls.length > 0 && found.malformed.length === 0) {
      this.#notes.add(readHere);
      return null;
    }
    if (this.#unread === 1) return this.#again(failure.message, 0);
    if (this.#native && this.#request.tools.length > 0) {
      this.#trial = failure.message;
      return this.#inText();
    }
    if (found.malformed.length === 0) return this.#failed(failure);
    this.#notes.add(readHere);
    return null;
  }

  #afterReply(reply: Reply, found: ReadCalls): ProviderEvent {
    if (isEmpty(reply, found)) return this.#afterEmpty(reply);
    if (reply.cut) return this.#failed(endless("the model's reply has no end: it was ended at its bound"));
    if (reply.stop === "filtered") return this.#failed(filtered());
    const { model } = this.#request;
    if (this.#trial !== null) this.#means.fallbacks.add(model, this.#trial);
    this.#noteOn(reply);
    const { message, malformed } = messageFrom(reply, found, this.#request.messages, this.#means.random);
    const stop = stopOf(reply, found);
    const notes = [...this.#notes].map(this.#means.clean);
    return { type: "finished", message, malformed, usage: this.#usage, stop, notes };
  }

  /** Such a reply never ends a run as done. It is asked for once more, without what most often makes it empty. */
  #afterEmpty({ stop, onlyThought }: Reply): ProviderEvent {
    if (stop === "filtered") return this.#failed(filtered());
    if (this.#wasEmpty)
      return this.#failed(new WireFailure("empty", "the model answered with nothing, twice"));
    this.#wasEmpty = true;
    const thought = onlyThought && this.#think !== false;
    const inText = this.#native && this.#request.tools.length > 0 && !thought;
    if (inText) this.#native = false;
    else this.#think = false;
    const reason = `the reply was empty: asked again ${inText ? "with the tools in the prompt" : "without thinking"}`;
    this.#notes.add(reason);
    return this.#again(reason, 0);
  }

  #noteOn({ counted, notes }: Reply): void {
    const { estimator } = this.#means;
    const { model } = this.#request;
    for (const note of notes) this.#notes.add(note);
    if (counted.prompt === undefined) return;
    const bytes = promptBytes(this.#sent);
    if (estimator.looksCut(model, bytes, counted.prompt))
      this.#notes.add(
        `The server read ${counted.prompt} tokens of about ${estimator.tokens(model, bytes)}: the prompt may have been cut.`,
      );
    estimator.learn(model, bytes, counted.prompt);
  }

  #withdrawal(): ProviderEvent {
    return { type: "waiting", reason: "what came so far was a thought", ms: 0, attempt: this.#attempts };
  }

  #inText(): ProviderEvent {
    this.#native = false;
    const reason = `${this.#request.model} ${NO_TOOLS}`;
    this.#notes.add(reason);
    return this.#again(reason, 0);
  }

  #again(reason: string, ms: number): ProviderEvent {
    return { type: "waiting", reason: inShort(reason, this.#means.clean), ms, attempt: this.#attempts + 1 };
  }

  #failed(failure: WireFailure): ProviderEvent {
    return { type: "failed", failure: modelFailure(failure, this.#means.clean), usage: this.#usage };
  }
}
