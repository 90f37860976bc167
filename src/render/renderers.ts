import type { AgentEvent } from "../core/events.ts";
import type { BlockedConnection } from "../core/network.ts";
import {
  listed,
  type ListedChanges,
  type Changes,
  type ExecResult,
  isUnstarted,
  type KeptOutput,
} from "../core/ports.ts";
import { inertJson } from "../core/visible.ts";
import { type Clock, PacedWriter } from "./tty/live-lines.ts";
import type { Output } from "./tty/output.ts";
import { RunLines } from "./tty/run-lines.ts";
import { runSummary } from "./tty/run-summary.ts";

/**
 * The ways to show a run while it is going on. A renderer receives the run's events and knows nothing else about it.
 * `take` returns at once, however slow the reader is; `end` leaves a clean terminal and writes everything that is still
 * waiting.
 */
export interface Renderer {
  take(event: AgentEvent): void;
  end(): void;
}

/** tty: lines, plus a live one if the terminal can redraw it; plain: words alone. */
export const RENDERERS = ["tty", "plain", "quiet", "jsonl"] as const;
export type RendererName = (typeof RENDERERS)[number];

interface RendererChoice {
  readonly json: boolean;
  readonly quiet: boolean;
}

/**
 * The only place that chooses the renderer of a run. The output itself knows what the screen can do: `plain`,
 * `redraws`, colours.
 */
export function rendererFor({ json, quiet }: RendererChoice, screen: Pick<Output, "plain">): RendererName {
  if (json) return "jsonl";
  if (quiet) return "quiet";
  return screen.plain ? "plain" : "tty";
}

interface RendererParts {
  /** The stream of the answer; JSON lines go there too. */
  readonly stdout: Output;
  readonly stderr: Output;
  readonly clock: Clock;
  /** Removes secrets from a text. */
  readonly clean: (text: string) => string;
  readonly changes: "here" | "waiting" | "gone";
  /** The user has not chosen a model. */
  readonly isUnchosen?: boolean;
}

export function rendererNamed(name: RendererName, parts: RendererParts): Renderer {
  switch (name) {
    case "jsonl":
      return new JsonLines(parts.stdout, parts.clock, parts.clean);
    case "quiet":
    case "plain":
    case "tty":
      return linesRenderer(parts, name === "quiet");
  }
}

function linesRenderer(
  { stderr, clock, clean, changes, isUnchosen = false }: RendererParts,
  quiet: boolean,
): Renderer {
  stderr.neverBlocks();
  const began = clock.now();
  const lines = new RunLines(stderr, { quiet, answerIsSeen: false, clock });
  return {
    take: (received) => {
      const event = cleanStrings(received, clean);
      lines.take(event);
      if (event.type !== "run.finished") return;
      lines.end();
      stderr.write(runSummary(event, { ms: clock.now() - began, quiet, changes, isUnchosen }, stderr));
    },
    end: () => lines.end(),
  };
}

/**
 * Characters of events that may wait for a slow reader. Pieces of replies, which `model.finished` repeats, may use only
 * a part of that.
 */
const EVENTS_ROOM = 16 * 2 ** 20;
const PIECES_ROOM = 2 ** 20;

/**
 * Writes every event as a line of JSON. A slow reader blocks nothing: pieces of replies are dropped first, then
 * whatever exceeds the room, with a notice in its place. The end of the run is always written.
 */
export class JsonLines implements Renderer {
  readonly #json: RunJson;
  readonly #writer: PacedWriter;
  /** The stamp of the last event. */
  #stamp: Pick<AgentEvent, "run" | "seq"> = { run: "", seq: 0 };

  constructor(stream: Output, clock: Clock, clean: (text: string) => string) {
    this.#json = new RunJson(clean);
    this.#writer = new PacedWriter(stream, clock, {
      room: EVENTS_ROOM,
      leftOut: (events) => new RunJson(clean).take(this.#notice(events)),
    });
  }

  take(event: AgentEvent): void {
    const isPiece = event.type === "text" || event.type === "thinking";
    const room = isPiece ? PIECES_ROOM : EVENTS_ROOM;
    const needed = event.type === "run.finished" || event.type === "candidate.finished";
    this.#writer.write(this.#json.take(event), { room, needed });
    this.#stamp = event;
  }

  end(): void {
    this.#writer.write(this.#json.end());
    this.#writer.end();
  }

  #notice(events: number): AgentEvent {
    const { run, seq } = this.#stamp;
    const text = `${events} events are left out here because they were not read in time; the session has them`;
    return { type: "notice", run, seq, text };
  }
}

type Clean = (text: string) => string;

/**
 * Writes the events of a run as lines of JSON, with secrets removed from every text. A secret may be split across pieces,
 * and is often recognised only by the words before it, so streamed text is passed on line by line; pieces that are joined
 * leave gaps in `seq`.
 */
export class RunJson {
  readonly #clean: Clean;
  #pending: Streamed | undefined;

  constructor(clean: Clean) {
    this.#clean = clean;
  }

  /** Returns complete lines with their line ends: often none for a piece of text, sometimes two. */
  take(event: AgentEvent): string {
    const pending = this.#pending;
    this.#pending = undefined;
    if (!isStreamed(event)) return this.#line(pending) + this.#line(event);
    if (pending === undefined || !continues(pending, event)) {
      this.#pending = event;
      return this.#line(pending);
    }
    const text = pending.text + event.text;
    const cut = ready(text);
    if (cut < text.length) this.#pending = { ...event, text: text.slice(cut) };
    return cut === 0 ? "" : this.#line({ ...pending, text: text.slice(0, cut) });
  }

  /** Returns the text still held back, when the last event was not the end of the run. */
  end(): string {
    const pending = this.#pending;
    this.#pending = undefined;
    return this.#line(pending);
  }

  #line(event: AgentEvent | undefined): string {
    if (event === undefined) return "";
    const { type, run, seq, ...own } = event;
    return `${inertJson(cleanStrings({ type, run, seq, ...own }, this.#clean))}\n`;
  }
}

type Streamed = Extract<AgentEvent, { readonly type: "text" | "thinking" }>;

const isStreamed = (event: AgentEvent): event is Streamed =>
  event.type === "text" || event.type === "thinking";

const continues = (pending: Streamed, event: Streamed): boolean =>
  pending.type === event.type && pending.run === event.run && pending.agent === event.agent;

/** A longer line is passed on word by word, and a longer word as it arrives. */
const LONG_LINE = 400;
const LONG_WORD = 4096;

/** How much of a text can be passed on now. */
function ready(text: string): number {
  const line = text.lastIndexOf("\n") + 1;
  if (line > 0 || text.length <= LONG_LINE) return line;
  const word = Math.max(text.lastIndexOf(" "), text.lastIndexOf("\t")) + 1;
  return word === 0 && text.length > LONG_WORD ? text.length : word;
}

/** Returns the same value with `clean` applied to every string in it, at any depth. */
export function cleanStrings<T>(value: T, clean: (text: string) => string): T;
export function cleanStrings(value: unknown, clean: (text: string) => string): unknown {
  if (typeof value === "string") return clean(value);
  if (Array.isArray(value)) return value.map((inner) => cleanStrings<unknown>(inner, clean));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [key, cleanStrings<unknown>(inner, clean)]),
  );
}

type Finished = Extract<AgentEvent, { readonly type: "run.finished" }>;

/** Side effects beside the command itself. */
type SideEffects = Required<
  Pick<Finished, "quarantined" | "quarantined_total" | "commits" | "commits_total" | "staged">
>;

/** The object that `sandbox exec --json` prints; scripts rely on it. */
export interface ExecJson extends Partial<SideEffects> {
  readonly exit_code: number;
  readonly cause: ExecResult["cause"];
  readonly stdout: string;
  readonly stderr: string;
  readonly truncated: boolean;
  readonly duration_ms: number;
  readonly timed_out: boolean;
  readonly killed: boolean;
  readonly blocked_connections: readonly BlockedConnection[];
  /** All changed paths, ignored ones included. */
  readonly changes: ListedChanges & { readonly incomplete?: true };
  readonly peak: ExecResult["peak"];
  /** Why nothing was started; left out if something was. */
  readonly reason?: string;
}

export function execJson(result: ExecResult, changes: Changes, sideEffects?: SideEffects): ExecJson {
  return {
    exit_code: result.exit_code,
    cause: result.cause,
    stdout: keptText(result.stdout),
    stderr: keptText(result.stderr),
    truncated: result.stdout.lost + result.stderr.lost > 0,
    duration_ms: result.duration_ms,
    timed_out: result.timed_out,
    killed: result.killed,
    blocked_connections: result.blocked_connections ?? [],
    changes: { ...listed(changes.all), ...(changes.incomplete ? { incomplete: true } : {}) },
    peak: result.peak,
    ...(isUnstarted(result) ? { reason: result.reason } : {}),
    ...sideEffects,
  };
}

/** Joins head and tail with the number of bytes left out; characters cut in two are dropped. */
function keptText({ head, tail, lost, total }: KeptOutput): string {
  if (lost === 0) return Buffer.concat([head, tail]).toString("utf8");
  const gap = `\n[… ${lost} of ${total} bytes left out …]\n`;
  return `${cleanEnd(head)}${gap}${cleanStart(tail)}`;
}

const cleanEnd = (bytes: Uint8Array): string =>
  new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes, { stream: true });

/** At most three bytes can remain of a character that was cut. */
function cleanStart(bytes: Uint8Array): string {
  let start = 0;
  while (start < 3 && ((bytes[start] ?? 0) & 0xc0) === 0x80) start += 1;
  return Buffer.from(bytes.subarray(start)).toString("utf8");
}
