import { randomBytes, randomUUID } from "node:crypto";
import { spawn } from "node:child_process";
import manifest from "../../../package.json" with { type: "json" };
import type { Config } from "../../config/load-config.ts";
import type { Env } from "../../config/places.ts";
import type { Settings } from "../../config/settings-schema.ts";
import { Interrupted, reasonOf } from "../../core/errors.ts";
import type { AgentEvent, RunStatus } from "../../core/events.ts";
import { maskSecrets } from "../../core/secrets.ts";
import type { RunSpans } from "../../telemetry/genai-spans.ts";
import type { Post } from "../../telemetry/otlp-export.ts";
import { failureOf, RunDiagnostics } from "../../telemetry/run-diagnostics.ts";
import { openDiagnostics, startOf } from "../diagnostics.ts";
import type { Host } from "../host.ts";
import { noteTo } from "../stderr-messages.ts";
import { visible } from "../../core/visible.ts";
import { hostProgram, safeEnvironment } from "../../platform/host-programs.ts";
import type { Renderer } from "../../render/renderers.ts";
import { move, type Output } from "../../render/tty/output.ts";
import type { Clock } from "../../render/tty/live-lines.ts";

/** Observers of runs: nothing that they do, or fail to do, changes a run. */
export interface Observers extends AsyncDisposable {
  /** Takes the events of any number of runs; those of each run come in order. */
  readonly take: (event: AgentEvent) => void;
  /** Records what ended a run, or a part of one. */
  readonly failed: (thrown: unknown) => void;
}

interface Observed {
  readonly host: Pick<Host, "env" | "places">;
  readonly settings: Settings;
  /** The origin of each setting. */
  readonly origins: Config["origins"];
}

/** The diagnostics of this process, and telemetry if an endpoint is named; otherwise no telemetry code is loaded. */
export async function observersFor({ host, settings, origins }: Observed): Promise<Observers> {
  const diagnostics = openDiagnostics(host);
  diagnostics.add(startOf(settings, origins));
  const runs = new Map<string, RunDiagnostics>();
  /** An error that ends a box ends its run, too: it is recorded once. */
  const last: { thrown?: unknown } = {};
  const exported = isTelemetryOn(host.env) ? await exporting(host.env) : undefined;
  const take = (event: AgentEvent): void => {
    const run = runs.get(event.run) ?? new RunDiagnostics();
    runs.set(event.run, run);
    const entry = run.take(event);
    if (entry !== undefined) diagnostics.add(entry);
    exported?.take(event);
  };
  return {
    take: unlessBroken(take),
    failed: (thrown) => {
      if (thrown instanceof Interrupted || thrown === last.thrown) return;
      last.thrown = thrown;
      diagnostics.add(failureOf(thrown));
    },
    async [Symbol.asyncDispose]() {
      diagnostics[Symbol.dispose]();
      try {
        await exported?.[Symbol.asyncDispose]();
      } catch (thrown) {
        noteTo(false)(`telemetry: ${reasonOf(thrown)}; the run is not affected`);
      }
    },
  };
}

const ENDPOINTS = [
  "OTEL_EXPORTER_OTLP_ENDPOINT",
  "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
  "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
] as const;

/** Whether an endpoint is named, and telemetry is not switched off. */
const isTelemetryOn = (env: Env): boolean =>
  env["OTEL_SDK_DISABLED"]?.trim().toLowerCase() !== "true" &&
  ENDPOINTS.some((name) => (env[name] ?? "").trim() !== "");

/** The most characters of a text that is exported on request. */
const MAX_TEXT = 16_384;
/** A collector's answer is normally one line. */
const MAX_ANSWER = 65_536;

const now = (): number => performance.timeOrigin + performance.now();
const idOf = (bytes: number): string => randomBytes(bytes).toString("hex");

async function exporting(env: Env): Promise<Omit<Observers, "failed">> {
  const { OtlpExport } = await import("../../telemetry/otlp-export.ts");
  const { otlpSettings } = await import("../../telemetry/otlp-settings.ts");
  const { RunSpans: Spans } = await import("../../telemetry/genai-spans.ts");
  const settings = otlpSettings(env);
  const warn = noteTo(false);
  const { version } = manifest;
  const exported = new OtlpExport({
    settings,
    version,
    instance: randomUUID(),
    warn,
    post,
    now,
    newTrace: () => idOf(16),
  });
  const runs = new Map<string, RunSpans>();
  const begun = (): RunSpans =>
    new Spans({
      version,
      newId: () => idOf(8),
      span: exported.trace(),
      measure: (metric, value, attributes) => exported.measure(metric, value, attributes),
      ...(settings.content ? { content: (text) => maskSecrets(text).slice(0, MAX_TEXT) } : {}),
    });
  const take = (event: AgentEvent): void => {
    const spans = runs.get(event.run) ?? begun();
    runs.set(event.run, spans);
    spans.take(event, now());
    if (event.type === "run.finished") runs.delete(event.run);
  };
  return {
    take,
    async [Symbol.asyncDispose]() {
      for (const spans of runs.values()) spans.close(now());
      await exported[Symbol.asyncDispose]();
    },
  };
}

/** A bug in observing a run must not affect the run. */
function unlessBroken(take: Observers["take"]): Observers["take"] {
  const state = { broken: false };
  return (event) => {
    if (state.broken) return;
    try {
      take(event);
    } catch (thrown) {
      state.broken = true;
      noteTo(false)(`telemetry stops here: ${reasonOf(thrown)}; the run is not affected`);
    }
  };
}

/** Sent like requests to models: redirects are not followed, so that the headers go nowhere else. */
const post: Post = async ({ url, headers }, json, signal) => {
  const { send, textWithin } = await import("../../models/http-request.ts");
  const response = await send({ url, headers, json, signal });
  const { text } = await textWithin(response, MAX_ANSWER);
  response.destroy();
  const retryAfter = response.headers["retry-after"];
  return { status: response.statusCode ?? 0, retryAfter, body: text };
};

/** A person watches the terminal for this long; after a longer wait they are likely to look elsewhere. */
const LONG_MS = 30_000;
const MAX_TITLE = 80;

interface Ended {
  readonly status: RunStatus;
  readonly ms: number;
}

interface Notice {
  readonly bell: boolean;
  readonly desktop: boolean;
}

/**
 * How to notify a person of the end of a run: if it took long, or waits for an answer. A person who interrupted the run
 * knows.
 */
export function noticeFor({ status, ms }: Ended, notify: Settings["notify"]): Notice {
  const due = status === "parked" || (status !== "interrupted" && ms > LONG_MS);
  return {
    bell: due && (notify === "bell" || notify === "both"),
    desktop: due && (notify === "desktop" || notify === "both"),
  };
}

/** Whether a person watches: stderr is a terminal, and neither output for a program nor silence was requested. */
export const isWatched = (
  { json, quiet }: { readonly json: boolean; readonly quiet: boolean },
  screen: Pick<Output, "isTTY">,
  ci: string | undefined,
): boolean => screen.isTTY && !json && !quiet && (ci ?? "") === "";

/** One line without markup, because notification servers interpret tags and entities. */
export function noticeText(status: RunStatus, title: string): string {
  const line = visible(title.replaceAll(/\s+/gu, " ").replaceAll(/[<>&]/g, " ")).trim();
  const state = status === "parked" ? "waits for your approval" : `ended: ${status}`;
  return `${state} (${Array.from(line).slice(0, MAX_TITLE).join("")})`;
}

/** The text is an argument of its own, also to AppleScript: never part of a program. */
const PROGRAMS: readonly (readonly [string, (text: string) => readonly string[]])[] = [
  ["notify-send", (text) => ["--app-name=harness", "--", "harness", text]],
  [
    "osascript",
    (text) => [
      "-e",
      "on run argv",
      "-e",
      'display notification (item 1 of argv) with title "harness"',
      "-e",
      "end run",
      text,
    ],
  ],
];

/**
 * Uses the first program that PATH has outside of `apart`. Nothing waits for the program, and its failures are ignored.
 */
export async function desktopNotice(text: string, env: Env, apart: string): Promise<void> {
  for (const [name, argv] of PROGRAMS) {
    const file = await hostProgram(name, env, apart);
    if (file === null) continue;
    const child = spawn(file, argv(text), {
      env: safeEnvironment(env, apart),
      cwd: "/",
      detached: true,
      stdio: "ignore",
    });
    child.on("error", () => undefined);
    child.unref();
    return;
  }
}

interface NoticeParts {
  readonly notify: Settings["notify"];
  readonly title: string;
  readonly screen: Output;
  readonly clock: Clock;
  readonly desktop: (text: string) => void;
}

/** Shows a run as `renderer` does, and then notifies the person of its end. */
export function withNotice(
  renderer: Renderer,
  { notify, title, screen, clock, desktop }: NoticeParts,
): Renderer {
  const began = clock.now();
  return {
    take: (event: AgentEvent) => {
      renderer.take(event);
      if (event.type !== "run.finished") return;
      const way = noticeFor({ status: event.status, ms: clock.now() - began }, notify);
      if (way.bell) screen.write(move("bell"));
      if (way.desktop) desktop(noticeText(event.status, title));
    },
    end: () => renderer.end(),
  };
}

interface ChatNoticeParts extends Pick<NoticeParts, "clock" | "desktop"> {
  /** Read on each use, because a chat can change the setting. */
  readonly notify: () => Settings["notify"];
  readonly title: () => string;
  readonly ring: () => void;
}

/** The notices of a chat: for a request that took long, and for a question long after the person's last input. */
export class ChatNotice {
  readonly #telling: ChatNoticeParts | undefined;
  #since = 0;

  /** Undefined if nobody watches: then nobody is notified. */
  constructor(telling: ChatNoticeParts | undefined) {
    this.#telling = telling;
  }

  take(event: AgentEvent): void {
    if ("agent" in event && event.agent !== undefined) return;
    if (event.type === "run.started") this.#heard();
    if (event.type === "run.finished") this.#tell(event.status);
  }

  /** Notifies the person of a question that they are asked. */
  async askWithNotice<T>(question: () => Promise<T>): Promise<T> {
    this.#tell("parked");
    try {
      return await question();
    } finally {
      this.#heard();
    }
  }

  #heard(): void {
    this.#since = this.#telling?.clock.now() ?? 0;
  }

  #tell(status: RunStatus): void {
    if (this.#telling === undefined) return;
    const { clock, notify, ring, desktop, title } = this.#telling;
    const ms = clock.now() - this.#since;
    if (ms <= LONG_MS) return;
    const way = noticeFor({ status, ms }, notify());
    if (way.bell) ring();
    if (way.desktop) desktop(noticeText(status, title()));
  }
}
