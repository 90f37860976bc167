import { errorCode, reasonOf } from "../core/errors.ts";
import { unlessAborted } from "../platform/waits.ts";
import type { Attributes, Metric, TraceSpan } from "./genai-spans.ts";
import type { Destination, OtlpSettings } from "./otlp-settings.ts";

/** An endpoint's response, its body up to a limit. A redirect is a response like any other, and not followed. */
export interface Posted {
  readonly status: number;
  readonly retryAfter: string | undefined;
  readonly body: string;
}

/** Rejects when there is no response, and as soon as the signal fires. */
export type Post = (to: Destination, json: string, signal: AbortSignal) => Promise<Posted>;

export interface ExportOptions {
  readonly settings: OtlpSettings;
  readonly version: string;
  /** Identifies this process, so that its series are its own. */
  readonly instance: string;
  /** For a person; called once. */
  readonly warn: (text: string) => void;
  readonly post: Post;
  readonly now: () => number;
  readonly newTrace: () => string;
}

/** Most spans that wait; further ones are dropped and counted. */
const MAX_WAITING = 2048;
const BATCH_SIZE = 256;
const EVERY_MS = 5000;
const METRICS_EVERY_MS = 60_000;
/** Time for everything left at the end of a run. */
const END_MS = 2000;
const PASSING: ReadonlySet<number> = new Set([408, 429, 502, 503, 504]);
const MAX_PAUSE_MS = 30_000;

type SendResult = "taken" | "later" | "lost";

/**
 * Sends spans and metrics while a run goes on. It only waits at the end, for two seconds at most. Problems of an
 * endpoint are reported to a person only once.
 */
export class OtlpExport implements AsyncDisposable {
  readonly #options: ExportOptions;
  readonly #about: { readonly resource: Attributes; readonly version: string };
  readonly #histograms: Histograms;
  readonly #waiting: SentSpan[] = [];
  readonly #over = new AbortController();
  readonly #timer: NodeJS.Timeout;
  #sending: Promise<void> | undefined;
  /** A delta that the endpoint could not take yet: it is sent again before later ones, or its values would be lost. */
  #delta: string | undefined;
  #notBefore = 0;
  #metricsAt: number;
  #dropped = 0;
  #warned = false;

  constructor(options: ExportOptions) {
    this.#options = options;
    const { settings, version, instance, now } = options;
    const own = { "service.version": version, "service.instance.id": instance };
    this.#about = { resource: { ...own, ...settings.resource }, version };
    this.#histograms = new Histograms(now());
    this.#metricsAt = now();
    this.#timer = setInterval(() => this.#tick(), EVERY_MS);
    this.#timer.unref();
    for (const problem of settings.problems) this.#warn(problem);
  }

  /** For one run: its spans form one trace. */
  trace(): (span: TraceSpan) => void {
    const { settings, newTrace } = this.#options;
    const { parent } = settings;
    const trace = parent?.trace ?? newTrace();
    return (span) => {
      if (settings.traces === undefined) return;
      if (this.#waiting.length >= MAX_WAITING) this.#dropped += 1;
      else this.#waiting.push({ ...span, parent: span.parent ?? parent?.span ?? null, trace });
      if (this.#waiting.length >= BATCH_SIZE) this.#tick();
    };
  }

  measure(metric: Metric, value: number, attributes: Attributes): void {
    if (this.#options.settings.metrics !== undefined) this.#histograms.add(metric, value, attributes);
  }

  /** Sends what is waiting, for at most two seconds; then every connection is dropped. */
  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer);
    const bound = setTimeout(() => this.#over.abort(new Error(`not within ${END_MS / 1000} s`)), END_MS);
    try {
      await this.#sending;
      this.#notBefore = 0;
      await Promise.all([this.#sendSpans(), this.#sendMetrics()]);
    } finally {
      clearTimeout(bound);
      this.#over.abort();
    }
    const lost = this.#dropped + this.#waiting.length;
    if (lost > 0) this.#warn(`${lost} ${lost === 1 ? "span was" : "spans were"} not delivered`);
  }

  #tick(): void {
    const { now } = this.#options;
    if (this.#sending !== undefined || now() < this.#notBefore) return;
    const isDue = now() - this.#metricsAt >= METRICS_EVERY_MS;
    if (isDue) this.#metricsAt = now();
    this.#sending = this.#sendAll(isDue);
  }

  async #sendAll(metrics: boolean): Promise<void> {
    await Promise.all([this.#sendSpans(), ...(metrics ? [this.#sendMetrics()] : [])]);
    this.#sending = undefined;
  }

  async #sendSpans(): Promise<void> {
    const { traces } = this.#options.settings;
    if (traces === undefined) return;
    while (this.#waiting.length > 0 && !this.#over.signal.aborted) {
      const batch = this.#waiting.splice(0, BATCH_SIZE);
      const sent = await this.#send(traces, "spans", spansJson(batch, this.#about));
      if (sent === "lost") this.#dropped += batch.length;
      if (sent !== "later") continue;
      this.#waiting.unshift(...batch);
      return;
    }
  }

  async #sendMetrics(): Promise<void> {
    const { settings, now } = this.#options;
    const { metrics, temporality } = settings;
    if (metrics === undefined) return;
    const isSent = async (json: string): Promise<boolean> =>
      (await this.#send(metrics, "metrics", json)) !== "later";
    if (this.#delta !== undefined && !(await isSent(this.#delta))) return;
    this.#delta = undefined;
    if (this.#histograms.empty) return;
    const json = this.#histograms.json(this.#about, now(), temporality);
    if (temporality === "delta") {
      this.#delta = json;
      // Values measured during the request belong to the next one.
      this.#histograms.reset(now());
    }
    if (await isSent(json)) this.#delta = undefined;
  }

  async #send(to: Destination, what: string, json: string): Promise<SendResult> {
    const { post, settings } = this.#options;
    const signal = AbortSignal.any([this.#over.signal, AbortSignal.timeout(settings.timeoutMs)]);
    try {
      const { status, body, retryAfter } = await unlessAborted(post(to, json, signal), signal);
      if (status >= 200 && status < 300) return this.#accepted(to, what, body);
      this.#warn(
        `${placeOf(to)} answers ${what} with ${status}${isRedirect(status) ? "; redirects are not followed" : ""}`,
      );
      if (!PASSING.has(status)) return "lost";
      this.#pause(retryAfter);
      return "later";
    } catch (thrown) {
      const why = signal.aborted ? reasonOf(signal.reason) : (errorCode(thrown) ?? reasonOf(thrown));
      this.#warn(`${placeOf(to)} did not accept the ${what}: ${why}`);
      this.#pause(undefined);
      return "later";
    }
  }

  /** The endpoint may have accepted only a part; what it refused once it would refuse again. */
  #accepted(to: Destination, what: string, body: string): SendResult {
    const refused = /"rejected(?:Spans|DataPoints)"\s*:\s*"?([1-9]\d{0,9})/.exec(body)?.[1];
    if (refused !== undefined) this.#warn(`${placeOf(to)} refused ${refused} of the ${what}`);
    return "taken";
  }

  #pause(retryAfter: string | undefined): void {
    const wantedMs = Number(retryAfter) * 1000;
    this.#notBefore = this.#options.now() + (wantedMs > 0 ? Math.min(wantedMs, MAX_PAUSE_MS) : EVERY_MS);
  }

  #warn(text: string): void {
    if (this.#warned) return;
    this.#warned = true;
    this.#options.warn(`telemetry: ${text}; the run is not affected`);
  }
}

const isRedirect = (status: number): boolean => status >= 300 && status < 400;

/** Leaves out the parts that could be secret. */
const placeOf = ({ url }: Destination): string => new URL(url).host;

/** Spans and histograms in OTLP's JSON: ids in hexadecimal, times in nanoseconds as text, enumerations as numbers. */

interface About {
  readonly resource: Attributes;
  readonly version: string;
}

type Keyed = readonly { readonly key: string; readonly value: unknown }[];

/** Attributes that are doubles by convention, whatever their value is. */
const DOUBLES: ReadonlySet<string> = new Set([
  "gen_ai.response.time_to_first_chunk",
  "harness.build_time",
  "harness.cost",
]);

const keyed = (attributes: Attributes): Keyed =>
  Object.entries(attributes).map(([key, value]) => ({ key, value: valueOf(key, value) }));

function valueOf(key: string, value: Attributes[string]): unknown {
  if (typeof value === "string") return { stringValue: value.toWellFormed() };
  if (typeof value === "boolean") return { boolValue: value };
  if (typeof value !== "number")
    return { arrayValue: { values: value.map((each) => ({ stringValue: each.toWellFormed() })) } };
  return Number.isSafeInteger(value) && !DOUBLES.has(key)
    ? { intValue: String(value) }
    : { doubleValue: value };
}

/** Takes milliseconds with a fraction: a double cannot hold nanoseconds since 1970. */
const nanosOf = (ms: number): string =>
  String(BigInt(Math.floor(ms)) * 1_000_000n + BigInt(Math.round((ms % 1) * 1e6)));

const KINDS = { internal: 1, client: 3 } as const;
const STATUS_ERROR = 2;

export interface SentSpan extends TraceSpan {
  /** The trace id, in 32 hexadecimal digits. */
  readonly trace: string;
}

export function spansJson(spans: readonly SentSpan[], about: About): string {
  const rows = spans.map(({ trace, id, parent, name, kind, start, end, attributes, events, failed }) => ({
    traceId: trace,
    spanId: id,
    ...(parent === null ? {} : { parentSpanId: parent }),
    name: name.toWellFormed(),
    kind: KINDS[kind],
    startTimeUnixNano: nanosOf(start),
    endTimeUnixNano: nanosOf(end),
    attributes: keyed(attributes),
    events: events.map((event) => ({
      name: event.name,
      timeUnixNano: nanosOf(event.at),
      attributes: keyed(event.attributes),
    })),
    status: failed ? { code: STATUS_ERROR } : {},
  }));
  const scopeSpans = [{ scope: scopeOf(about), spans: rows }];
  return JSON.stringify({ resourceSpans: [{ resource: { attributes: keyed(about.resource) }, scopeSpans }] });
}

const scopeOf = ({ version }: About): unknown => ({ name: "harness", version });

const POWERS_OF_FOUR = Array.from({ length: 14 }, (_, at) => 4 ** at);
/** Starts at ten milliseconds. */
const DOUBLING = Array.from({ length: 14 }, (_, at) => 2 ** at / 100);
/** Agents and tools run longer than requests. */
const LONGER = [...DOUBLING, 163.84, 327.68, 655.36, 1310.72, 2621.44, 5242.88];

interface Instrument {
  readonly unit: string;
  readonly description: string;
  readonly bounds: readonly number[];
}

export const INSTRUMENTS: Readonly<Record<Metric, Instrument>> = {
  "gen_ai.client.token.usage": {
    unit: "{token}",
    description: "Number of input and output tokens used.",
    bounds: POWERS_OF_FOUR,
  },
  "gen_ai.client.operation.duration": {
    unit: "s",
    description: "GenAI operation duration.",
    bounds: DOUBLING,
  },
  "gen_ai.client.operation.time_to_first_chunk": {
    unit: "s",
    description: "Time to receive the first chunk of a streamed response.",
    bounds: DOUBLING,
  },
  "gen_ai.invoke_agent.duration": { unit: "s", description: "Agent invocation duration.", bounds: LONGER },
  "gen_ai.execute_tool.duration": { unit: "s", description: "Tool execution duration.", bounds: LONGER },
};

interface Point {
  readonly attributes: Attributes;
  readonly counts: number[];
  sum: number;
  min: number;
  max: number;
}

/** Most points of one series; further combinations of attributes are reported together. */
const MAX_POINTS = 500;
const OVERFLOW: Attributes = { "otel.metric.overflow": true };

/** Measurements in the buckets that the convention defines. */
export class Histograms {
  readonly #points = new Map<Metric, Map<string, Point>>();
  #since: number;

  constructor(since: number) {
    this.#since = since;
  }

  get empty(): boolean {
    return this.#points.size === 0;
  }

  add(metric: Metric, value: number, attributes: Attributes): void {
    const { bounds } = INSTRUMENTS[metric];
    const points = this.#points.get(metric) ?? new Map<string, Point>();
    this.#points.set(metric, points);
    const counted = points.size >= MAX_POINTS && !points.has(keyOf(attributes)) ? OVERFLOW : attributes;
    const key = keyOf(counted);
    const fresh = {
      attributes: counted,
      counts: [...bounds, 0].map(() => 0),
      sum: 0,
      min: value,
      max: value,
    };
    const point = points.get(key) ?? fresh;
    points.set(key, point);
    const at = bounds.findIndex((bound) => value <= bound);
    const bucket = at === -1 ? bounds.length : at;
    point.counts[bucket] = (point.counts[bucket] ?? 0) + 1;
    point.sum += value;
    point.min = Math.min(point.min, value);
    point.max = Math.max(point.max, value);
  }

  json(about: About, now: number, temporality: "cumulative" | "delta"): string {
    const metrics = [...this.#points].map(([name, points]) => ({
      name,
      unit: INSTRUMENTS[name].unit,
      description: INSTRUMENTS[name].description,
      histogram: {
        aggregationTemporality: temporality === "delta" ? 1 : 2,
        dataPoints: [...points.values()].map((point) => this.#point(point, INSTRUMENTS[name].bounds, now)),
      },
    }));
    const scopeMetrics = [{ scope: scopeOf(about), metrics }];
    return JSON.stringify({
      resourceMetrics: [{ resource: { attributes: keyed(about.resource) }, scopeMetrics }],
    });
  }

  /** Values reported as a delta are not reported again. */
  reset(now: number): void {
    this.#points.clear();
    this.#since = now;
  }

  #point({ attributes, counts, sum, min, max }: Point, bounds: readonly number[], now: number): unknown {
    return {
      attributes: keyed(attributes),
      startTimeUnixNano: nanosOf(this.#since),
      timeUnixNano: nanosOf(now),
      count: String(counts.reduce((all, count) => all + count, 0)),
      sum,
      min,
      max,
      bucketCounts: counts.map(String),
      explicitBounds: bounds,
    };
  }
}

const keyOf = (attributes: Attributes): string =>
  JSON.stringify(Object.entries(attributes).toSorted(([a], [b]) => (a < b ? -1 : 1)));
