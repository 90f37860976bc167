import type { Attributes, Metric, Span } from "./genai-spans.ts";

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
const FAILED = 2;

export interface SentSpan extends Span {
  /** The trace id, in 32 hexadecimal digits. */
  readonly trace: string;
}

export function spansJson(spans: readonly SentSpan[], about: About): string {
  const told = spans.map(({ trace, id, parent, name, kind, start, end, attributes, events, failed }) => ({
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
    status: failed ? { code: FAILED } : {},
  }));
  const scopeSpans = [{ scope: scopeOf(about), spans: told }];
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
    const told = points.size >= MAX_POINTS && !points.has(keyOf(attributes)) ? OVERFLOW : attributes;
    const key = keyOf(told);
    const fresh = { attributes: told, counts: [...bounds, 0].map(() => 0), sum: 0, min: value, max: value };
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
