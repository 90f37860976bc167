import type { AgentEvent } from "../../core/events.ts";
import { type AnswerStream, answerStream } from "../../render/tty/answer.ts";
import { systemClock } from "../../render/tty/live-status.ts";
import { RunLines } from "../../render/tty/run-lines.ts";
import { type Output } from "../../render/tty/output.ts";

/** What is shown of a request: the answer on stdout, everything else on stderr, which may be the same screen. */
export class Face {
  readonly #lines: RunLines;
  readonly #answer: AnswerStream;
  readonly #output: Output;
  /** While a reply is on its way its line is nobody else's. */
  #release: (() => void) | undefined;
  #shown = "";
  #closed = false;

  constructor(output: Output, errors: Output, quiet: boolean) {
    this.#output = output;
    this.#answer = answerStream(output);
    this.#lines = new RunLines(errors, { quiet, answerIsSeen: true, clock: systemClock });
  }

  take(event: AgentEvent): void {
    if (this.#closed) return;
    if (event.type !== "text" || event.agent !== undefined) {
      if (ENDS_REPLY.has(event.type)) this.#endReply();
      this.#lines.take(event);
      return;
    }
    this.#lines.take(event);
    this.#release ??= this.#lines.pause();
    this.#write(this.#answer.push(event.text));
  }

  /** The terminal is somebody else's until what it gives is called. */
  pause(): () => void {
    this.#endReply();
    return this.#lines.pause();
  }

  /** Between requests. */
  end(): void {
    if (this.#closed) return;
    this.#endReply();
    this.#lines.end();
  }

  /** The terminal is gone. */
  close(): void {
    this.#closed = true;
  }

  #endReply(): void {
    if (this.#release === undefined) return;
    this.#write(this.#answer.end());
    if (this.#shown !== "" && !this.#shown.endsWith("\n")) this.#output.write("\n");
    this.#shown = "";
    this.#release();
    this.#release = undefined;
  }

  #write(text: string): void {
    // Models like to begin with an empty line.
    const said = this.#shown === "" ? text.replace(/^\s*\n/, "") : text;
    if (said === "") return;
    this.#output.write(said);
    this.#shown = said;
  }
}

const ENDS_REPLY: ReadonlySet<AgentEvent["type"]> = new Set([
  "model.finished",
  "model.failed",
  "model.waiting",
  "turn.started",
  "call.proposed",
  "rolled_back",
  "run.finished",
]);
