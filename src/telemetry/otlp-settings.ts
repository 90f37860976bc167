import { percentDecoded } from "../core/raw-data.ts";
/** OpenTelemetry's own variables: where spans and metrics go, if anywhere. */

export interface Destination {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
}

export interface OtlpSettings {
  readonly traces: Destination | undefined;
  readonly metrics: Destination | undefined;
  readonly resource: Readonly<Record<string, string>>;
  /** Whether prompts, arguments and outputs are exported. */
  readonly content: boolean;
  /** Most milliseconds of one request. */
  readonly timeoutMs: number;
  readonly temporality: "cumulative" | "delta";
  /** The trace that this run is part of. */
  readonly parent: { readonly trace: string; readonly span: string } | undefined;
  /** Values that cannot be used; reported once. */
  readonly problems: readonly string[];
}

export type Env = Readonly<Record<string, string | undefined>>;

const SIGNALS = { TRACES: "v1/traces", METRICS: "v1/metrics" } as const;
type Signal = keyof typeof SIGNALS;

const TIMEOUT_MS = 10_000;

/** Reads the variables. An empty one counts as unset, as the specification requires. */
export function otlpSettings(env: Env): OtlpSettings {
  const problems: string[] = [];
  const traces = destination(env, "TRACES", problems);
  const metrics = destination(env, "METRICS", problems);
  const timeout = Number(variable(env, "OTEL_EXPORTER_OTLP_TIMEOUT") ?? TIMEOUT_MS);
  const preference = variable(env, "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE")?.toLowerCase();
  const named = variable(env, "OTEL_SERVICE_NAME");
  return {
    traces,
    metrics,
    resource: {
      "service.name": "harness",
      ...pairs(env, "OTEL_RESOURCE_ATTRIBUTES", problems),
      ...(named === undefined ? {} : { "service.name": named }),
    },
    content: CONTENT.has(
      variable(env, "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT")?.toLowerCase() ?? "",
    ),
    timeoutMs: timeout > 0 ? timeout : TIMEOUT_MS,
    temporality: preference === "delta" || preference === "lowmemory" ? "delta" : "cumulative",
    parent: parentIn(variable(env, "TRACEPARENT")),
    problems,
  };
}

/** Values of the variable that include spans; `event_only` means log events, which are not sent. */
const CONTENT: ReadonlySet<string> = new Set(["true", "1", "span_only", "span_and_event"]);

function variable(env: Env, name: string): string | undefined {
  const value = env[name]?.trim();
  return value === "" ? undefined : value;
}

function destination(env: Env, signal: Signal, problems: string[]): Destination | undefined {
  const own = variable(env, `OTEL_EXPORTER_OTLP_${signal}_ENDPOINT`);
  const base = variable(env, "OTEL_EXPORTER_OTLP_ENDPOINT");
  const exporter = variable(env, `OTEL_${signal}_EXPORTER`)?.toLowerCase() ?? "otlp";
  if (exporter === "none" || (own ?? base) === undefined) return undefined;
  const protocol =
    variable(env, `OTEL_EXPORTER_OTLP_${signal}_PROTOCOL`) ??
    variable(env, "OTEL_EXPORTER_OTLP_PROTOCOL") ??
    "";
  const name = own === undefined ? "OTEL_EXPORTER_OTLP_ENDPOINT" : `OTEL_EXPORTER_OTLP_${signal}_ENDPOINT`;
  if (exporter !== "otlp") return unusable(problems, `OTEL_${signal}_EXPORTER is neither otlp nor none`);
  if (protocol === "grpc")
    return unusable(problems, "the OTLP protocol grpc is not supported: set http/json");
  const url = urlFrom(own ?? base ?? "", own === undefined ? SIGNALS[signal] : "");
  if (url === undefined) return unusable(problems, `${name} is not an http or https address`);
  const headers = {
    ...pairs(env, "OTEL_EXPORTER_OTLP_HEADERS", problems),
    ...pairs(env, `OTEL_EXPORTER_OTLP_${signal}_HEADERS`, problems),
  };
  return { url, headers };
}

function unusable(problems: string[], problem: string): undefined {
  if (!problems.includes(problem)) problems.push(problem);
  return undefined;
}

/** An address for one signal is used as it is; the signal's path is appended to the common one. */
function urlFrom(text: string, below: string): string | undefined {
  if (!/^https?:\/\//i.test(text) || !URL.canParse(text)) return undefined;
  const url = new URL(text);
  if (below !== "") url.pathname = `${url.pathname.replace(/\/$/, "")}/${below}`;
  url.hash = "";
  return url.href;
}

const TOKEN = /^[A-Za-z0-9!#$%&'*+.^_`|~/-]+$/;
const MAX_PAIRS = 64;

/** `a=b,c=d`, percent-encoded. Other parts are left out, and reported without their value. */
function pairs(env: Env, name: string, problems: string[]): Readonly<Record<string, string>> {
  const found: Record<string, string> = {};
  for (const part of (variable(env, name) ?? "").split(",").slice(0, MAX_PAIRS)) {
    if (part.trim() === "") continue;
    const at = part.indexOf("=");
    const key = percentDecoded(part.slice(0, Math.max(0, at)).trim());
    const value = percentDecoded(part.slice(at + 1).trim());
    if (
      key === undefined ||
      value === undefined ||
      !TOKEN.test(key) ||
      /[^\t\u0020-\u{10FFFF}]|\u007F/u.test(value)
    )
      unusable(problems, `a part of ${name} is not name=value`);
    else found[key] = value;
  }
  return found;
}

function parentIn(text: string | undefined): OtlpSettings["parent"] {
  const [, trace = "", span = ""] =
    /^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}/.exec(text ?? "") ?? [];
  return /[^0]/.test(trace) && /[^0]/.test(span) ? { trace, span } : undefined;
}
