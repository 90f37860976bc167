import type { AgentEvent } from "../core/events.ts";
import { cleaned, RunJson } from "./event-json.ts";
import type { Output } from "./tty/output.ts";
import { type Clock, PacedWriter } from "./tty/paced-writer.ts";
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
      const event = cleaned(received, clean);
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
const ROOM = 16 * 2 ** 20;
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
      room: ROOM,
      leftOut: (events) => new RunJson(clean).take(this.#notice(events)),
    });
  }

  take(event: AgentEvent): void {
    const isPiece = event.type === "text" || event.type === "thinking";
    const room = isPiece ? PIECES_ROOM : ROOM;
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
