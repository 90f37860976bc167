import type {
  Capabilities,
  ModelRequest,
  Price,
  Provider,
  ProviderEvent,
  Usage,
} from "../core/model-provider.ts";
import {
  type BackPressure,
  delayAfter,
  backPressureMs,
  NO_PRESSURE,
  RETRIES,
  type RetryRules,
  SPREAD,
} from "../core/server-wait.ts";
import { HeldReply, heldSchema, Holding, type KnownModel, withForm } from "./held-reply.ts";
import {
  asFailure,
  type Clock,
  endlessReply,
  inShort,
  type RequestLimits,
  LIMITS,
  modelFailure,
  pause,
  realClock,
  wasRefused,
  Watched,
  type ModelWire,
  type WireEvent,
  WireFailure,
} from "./model-api.ts";
import {
  costOf,
  dayOf,
  NO_USAGE,
  priceOf,
  promptBytes,
  REFUSED_USAGE,
  sumUsage,
  TokenEstimator,
  usageOf,
} from "./token-usage.ts";
import { redact } from "./provider-servers.ts";
import { isEmpty, messageFrom, Reply, stopOf } from "./reply.ts";
import { OfferedTools } from "./text-calls/settle.ts";
import { CallStream } from "./text-calls/text-call-stream.ts";
import {
  type Fallbacks,
  inText,
  plainText,
  type ReadCalls,
  RememberedFallbacks,
  type TextCallReader,
  type TextCallReaderFor,
} from "./text-calls/text-protocol.ts";

export interface ProviderOptions {
  readonly capabilities: (model: string, signal: AbortSignal) => Promise<Capabilities>;
  readonly limits?: Partial<RequestLimits>;
  readonly retry?: Partial<RetryRules> & {
    /** Resolves after this time, or as soon as the signal fires. */
    readonly wait?: (ms: number, signal: AbortSignal) => Promise<void>;
  };
  /** Shares the server's requests to wait with other runs, in both directions. */
  readonly pressure?: BackPressure;
  /** Never shown: a mark replaces them in the texts of failures. */
  readonly keys?: readonly string[];
  readonly prices?: readonly Price[];
  readonly fallbacks?: Fallbacks;
  /** What is known about a model before a request. */
  readonly known?: (model: string) => KnownModel;
  /** Reads calls from the text; pass another reader if it knows more about the tools. */
  readonly written?: TextCallReaderFor;
  readonly random?: () => number;
}

/**
 * Makes a `Provider` from one API: adds everything of the contract that the wire lacks, in the same way for every API.
 */
export function makeProvider(wire: ModelWire, options: ProviderOptions): Provider {
  const setup = setupFrom(wire, options);
  const clock = setup.clock;
  const wait = options.retry?.wait ?? ((ms, signal) => pause(clock, ms, signal));
  return {
    stream: (request, signal) => stream(new Exchange(setup, request, signal), wait, signal),
    capabilities: options.capabilities,
  };
}

async function* stream(
  exchange: Exchange,
  wait: (ms: number, signal: AbortSignal) => Promise<void>,
  signal: AbortSignal,
): AsyncGenerator<ProviderEvent> {
  for (;;) {
    for (let waiting = exchange.waitForOthers(); waiting !== null; waiting = exchange.waitForOthers()) {
      if (signal.aborted) break;
      yield waiting;
      await wait(waiting.ms, signal);
    }
    if (signal.aborted) return void (yield exchange.cancelled());
    const attempt = exchange.begin();
    try {
      for (let event = await attempt.next(); event !== null; event = await attempt.next()) yield event;
    } finally {
      attempt.end();
    }
    const events = exchange.after(attempt);
    yield* events;
    const last = events.at(-1);
    if (last?.type !== "waiting") return;
    if (last.ms > 0) await wait(last.ms, signal);
  }
}

function setupFrom(wire: ModelWire, options: ProviderOptions): Setup {
  const { keys = [], written = (tools) => new CallStream(tools) } = options;
  return {
    wire,
    limits: { ...LIMITS, ...options.limits },
    rules: { ...RETRIES, ...(options.pressure === undefined ? {} : { spread: SPREAD }), ...options.retry },
    pressure: options.pressure ?? NO_PRESSURE,
    clean: (text) => redact(text, keys),
    price: (model) => priceOf(model, options.prices ?? [], dayOf(Date.now())),
    estimator: new TokenEstimator(),
    fallbacks: options.fallbacks ?? new RememberedFallbacks(),
    written: ({ format, tools }: ModelRequest) => (format === undefined ? written(tools) : plainText(tools)),
    holding: new Holding(),
    known: options.known ?? (() => ({})),
    clock: realClock,
    random: options.random ?? Math.random,
  };
}

type Waiting = Extract<ProviderEvent, { readonly type: "waiting" }>;
type Failed = Extract<ProviderEvent, { readonly type: "failed" }>;

interface Setup {
  readonly wire: ModelWire;
  readonly limits: RequestLimits;
  readonly rules: RetryRules;
  readonly pressure: BackPressure;
  /** Removes secrets from a text for people. */
  readonly clean: (text: string) => string;
  readonly price: (model: string) => Price | undefined;
  readonly estimator: TokenEstimator;
  readonly fallbacks: Fallbacks;
  readonly written: (request: ModelRequest) => TextCallReader;
  readonly holding: Holding;
  readonly known: (model: string) => KnownModel;
  readonly clock: Clock;
  readonly random: () => number;
}

const NO_TOOLS =
  "does not accept tools: they are described in its prompt, and its calls are read from its text";

/** Whatever arrived before is at best part of a reply. */
const filtered = (): WireFailure => new WireFailure("refused", "the server filtered the reply");

/** One request of the agent: as many attempts as it takes, and the decision what to try after each. */
class Exchange {
  readonly #setup: Setup;
  readonly #request: ModelRequest;
  readonly #signal: AbortSignal;
  readonly #notes = new Set<string>();
  #usage: Usage = NO_USAGE;
  #native: boolean;
  #think: boolean | undefined;
  readonly #known: KnownModel;
  #isHeld: boolean;
  #sent: ModelRequest;
  #attempts = 0;
  #passing = 0;
  #unread = 0;
  #wasEmpty = false;
  /** Milliseconds spent waiting because the server had told other runs to wait. */
  #waitedForOthers = 0;
  /** Why the tools were put into the text as a trial; remembered if the trial helps. */
  #trial: string | null = null;

  constructor(setup: Setup, request: ModelRequest, signal: AbortSignal) {
    this.#setup = setup;
    this.#request = request;
    this.#signal = signal;
    this.#think = request.think;
    this.#native = !setup.fallbacks.has(request.model);
    this.#sent = request;
    this.#known = setup.known(request.model);
    this.#isHeld = this.#canHold() && setup.holding.wants(request, this.#known);
  }

  /** The wait that results from the server telling another run to wait; null if there is none. */
  waitForOthers(): Waiting | null {
    const { pressure, rules, random } = this.#setup;
    const ms = backPressureMs(pressure, rules.longestMs - this.#waitedForOthers, random);
    this.#waitedForOthers += ms;
    return ms === 0 ? null : this.#again("the server has asked other runs to wait", ms);
  }

  begin(): Attempt {
    const { wire, limits, clock, written } = this.#setup;
    this.#attempts += 1;
    const offered = this.#native ? this.#request : inText(this.#request);
    const formed = this.#isHeld ? withForm(offered) : offered;
    const think =
      this.#isHeld && this.#known.thinking === true && wire.holds === "at_once" ? false : this.#think;
    this.#sent = think === undefined ? formed : { ...formed, think };
    const schema = this.#isHeld ? { replySchema: heldSchema(this.#request) } : {};
    const sent = { ...this.#sent, ...schema, nativeTools: this.#native, connectMs: limits.connectMs };
    const watch = { limits, clock, signal: this.#signal };
    const reading = written(this.#request);
    const isSmall = this.#request.maxTokens !== undefined;
    const read = this.#isHeld ? new HeldReply(this.#request.tools, reading) : reading;
    return new Attempt(
      new Watched((signal) => wire.send(sent, signal), watch),
      new Reply(read, limits, isSmall),
    );
  }

  #canHold(): boolean {
    const { wire, holding } = this.#setup;
    const { model, tools, hold, format } = this.#request;
    const able = wire.holds !== undefined && !holding.refuses(model, this.#native);
    return able && hold !== undefined && tools.length > 0 && format === undefined;
  }

  /** The outcome of the attempt: the last event is `finished`, `failed`, or `waiting` if another attempt follows. */
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
    const cost = refused ? 0 : costOf(usage, this.#setup.price(this.#request.model));
    this.#usage = sumUsage(this.#usage, { ...usage, cost });
  }

  #afterFailure(failure: WireFailure, { shown }: Reply): ProviderEvent {
    const { rules, random, pressure } = this.#setup;
    if (failure.refusesHold && this.#isHeld) return this.#afterHoldRefused(failure);
    if (failure.refusesTools && this.#native && this.#request.tools.length > 0) {
      this.#setup.fallbacks.add(this.#request.model, failure.message);
      return this.#inText();
    }
    this.#passing += 1;
    const ms = shown ? null : delayAfter(this.#passing, failure, rules, random);
    if (failure.busy) pressure.hold(Math.min(failure.retryAfterMs ?? ms ?? 0, rules.longestMs));
    if (ms !== null) return this.#again(failure.message, ms);
    const failed = this.#failed(failure);
    return shown && failure.passing ? { ...failed, passing: true } : failed;
  }

  /**
   * If later replies have to be held too, tries the tools in the prompt: some servers cannot hold a reply beside native
   * ones.
   */
  #afterHoldRefused({ message }: WireFailure): ProviderEvent {
    const { holding, fallbacks } = this.#setup;
    const { model } = this.#request;
    holding.refused(model, this.#native);
    if (this.#native && holding.stays(this.#request, this.#known) && !holding.refuses(model, false)) {
      fallbacks.add(model, message);
      return this.#inText();
    }
    this.#isHeld = false;
    return this.#again("the server does not hold a reply to a schema: asked again without one", 0);
  }

  /** The server could not parse the reply. Returns null if its calls can be read here: then nothing more is needed. */
  #afterUnread(failure: WireFailure, found: ReadCalls): ProviderEvent | null {
    this.#unread += 1;
    const readHere = "The server could not parse the reply; it was parsed here.";
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
    if (reply.cut)
      return this.#failed(endlessReply("the model's reply is endless: it was cut off at the limit"));
    if (reply.stop === "filtered") return this.#failed(filtered());
    const { model } = this.#request;
    if (this.#trial !== null) this.#setup.fallbacks.add(model, this.#trial);
    this.#learnFrom(reply);
    this.#countMiss(found.calls.length === 0 && found.malformed.length > 0);
    const { message, malformed } = messageFrom(reply, found, this.#request.messages, this.#setup.random);
    const stop = stopOf(reply, found);
    const notes = [...this.#notes].map(this.#setup.clean);
    const { edges } = reply;
    const around = edges.before + edges.after === "" ? {} : { edges };
    return { type: "finished", message, malformed, usage: this.#usage, stop, notes, ...around };
  }

  /**
   * An empty reply never ends a run as done. It is requested once more, without the most frequent cause of empty
   * replies.
   */
  #afterEmpty({ stop, onlyThought }: Reply): ProviderEvent {
    if (stop === "filtered") return this.#failed(filtered());
    this.#countMiss(true);
    if (this.#wasEmpty) return this.#failed(new WireFailure("empty", "the model's reply was empty, twice"));
    this.#wasEmpty = true;
    if (!this.#isHeld && this.#canHold()) {
      this.#isHeld = true;
      return this.#againWithNote("the reply was empty: asked again, held to a call or an answer");
    }
    const thought = onlyThought && this.#think !== false;
    const inText = this.#native && this.#request.tools.length > 0 && !thought;
    if (inText) this.#native = false;
    else {
      this.#think = false;
      this.#isHeld = false;
    }
    return this.#againWithNote(
      `the reply was empty: asked again ${inText ? "with the tools in the prompt" : "without thinking"}`,
    );
  }

  #countMiss(missed: boolean): void {
    const { model } = this.#request;
    if (this.#setup.holding.replied(model, missed, this.#isHeld) && this.#canHold())
      this.#notes.add(`${model} called no tool twice in a row: its replies are held to a schema from now on`);
  }

  #againWithNote(reason: string): ProviderEvent {
    this.#notes.add(reason);
    return this.#again(reason, 0);
  }

  #learnFrom({ counted, notes }: Reply): void {
    const { estimator } = this.#setup;
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
    return { type: "waiting", reason: "the reply so far was only thinking", ms: 0, attempt: this.#attempts };
  }

  #inText(): ProviderEvent {
    this.#native = false;
    return this.#againWithNote(`${this.#request.model} ${NO_TOOLS}`);
  }

  #again(reason: string, ms: number): Waiting {
    return { type: "waiting", reason: inShort(reason, this.#setup.clean), ms, attempt: this.#attempts + 1 };
  }

  #failed(failure: WireFailure): Failed {
    return { type: "failed", failure: modelFailure(failure, this.#setup.clean), usage: this.#usage };
  }
}

/** One request to the server, from start to end. */
class Attempt {
  readonly reply: Reply;
  readonly #source: Watched<WireEvent>;
  /** null while nothing has gone wrong. */
  failure: WireFailure | null = null;

  constructor(source: Watched<WireEvent>, reply: Reply) {
    this.#source = source;
    this.reply = reply;
  }

  /** The next event to show; null once the attempt is over. Never rejects. */
  async next(): Promise<ProviderEvent | null> {
    try {
      while (!this.reply.cut && !this.reply.isRepetitive) {
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

  /** Disconnects from the server if it has not finished. */
  end(): void {
    this.#source.end();
  }
}
