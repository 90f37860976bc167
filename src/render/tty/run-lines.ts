import type { AgentEvent } from "../../core/events.ts";
import { Activities, callKey } from "./activities.ts";
import { callLine, type ShownCall } from "./call-line.ts";
import { targetOf } from "./call-target.ts";
import { eventLine, saidLines } from "./event-line.ts";
import { fitted, widthOfStream } from "./fitted.ts";
import { type Clock, LiveStatus } from "./live-status.ts";
import { type Output, styleText } from "./output.ts";

export interface Showing {
  /** Errors only. */
  readonly quiet: boolean;
  /** Somebody else shows on the same terminal what the model says, as it comes; that one takes an event after this. */
  readonly answerIsSeen: boolean;
  readonly clock: Clock;
}

const INDENT = "    ";

/** A run as lines for a person: what is called, how it ended, and on a terminal what is waited for. */
export class RunLines {
  readonly #stream: Output;
  readonly #showing: Showing;
  readonly #activities: Activities;
  readonly #live: LiveStatus | undefined;
  readonly #calls = new Map<string, ShownCall>();
  /** Whose lines are the last ones. */
  #agent: string | undefined;
  #paused = 0;
  #held = "";

  constructor(stream: Output, showing: Showing) {
    this.#stream = stream;
    this.#showing = showing;
    const activities = new Activities(showing.answerIsSeen);
    this.#activities = activities;
    const watched = stream.isTTY && !showing.quiet && process.env["TERM"] !== "dumb";
    this.#live = watched ? new LiveStatus(stream, showing.clock, (now) => activities.status(now)) : undefined;
  }

  take(event: AgentEvent): void {
    this.#remember(event);
    const text = this.#textOf(event);
    if (text !== "") this.#write(`${this.#headOf(event)}${text}\n`);
    this.#follow(event);
    if ("call" in event && event.type === "call.ended") this.#calls.delete(callKey(event));
  }

  /** While a person is asked, the terminal is theirs: lines wait until what it gives is called. */
  pause(): () => void {
    this.#paused += 1;
    this.#live?.stop();
    return () => {
      this.#paused -= 1;
      if (this.#paused > 0) return;
      this.#stream.write(this.#held);
      this.#held = "";
      this.#live?.start();
    };
  }

  /** Leaves nothing on the terminal but lines. */
  end(): void {
    this.#live?.stop();
    this.#stream.write(this.#held);
    this.#held = "";
  }

  #remember(event: AgentEvent): void {
    if (event.type === "call.proposed")
      this.#calls.set(callKey(event), { tool: event.tool, target: targetOf(event.args), decided: undefined });
    if (event.type === "call.decided") {
      const call = this.#calls.get(callKey(event));
      if (call !== undefined) this.#calls.set(callKey(event), { ...call, decided: event });
    }
  }

  #textOf(event: AgentEvent): string {
    const indent = event.agent === undefined ? "" : INDENT;
    if (this.#showing.quiet)
      return event.type === "model.failed" ? eventLine(event, this.#stream, indent) : "";
    if (event.type === "call.ended") {
      const call = this.#calls.get(callKey(event)) ?? { tool: "?", target: "", decided: undefined };
      return callLine(call, event, this.#stream, indent);
    }
    if (this.#isSeen(event)) return "";
    if (event.type === "model.finished")
      return event.calls === 0 ? "" : saidLines(event.text, this.#stream, indent);
    return eventLine(event, this.#stream, indent);
  }

  /** Who shows the answer says in words of its own how a request begins and ends. */
  #isSeen({ type, agent }: AgentEvent): boolean {
    if (!this.#showing.answerIsSeen) return false;
    return (
      type === "run.started" || type === "rolled_back" || (type === "model.finished" && agent === undefined)
    );
  }

  /** Where the lines of a subagent begin, or begin again, what it was started for. */
  #headOf({ agent }: AgentEvent): string {
    if (agent === this.#agent) return "";
    this.#agent = agent;
    if (agent === undefined) return "";
    const call = this.#calls.get(callKey({ call: agent }));
    const width = widthOfStream(this.#stream);
    const words = fitted(`${call?.tool ?? "task"} ${call?.target ?? agent}`, width - 2);
    return `${styleText("dim", `▸ ${words}`, { stream: this.#stream })}\n`;
  }

  #write(text: string): void {
    if (this.#paused > 0) this.#held += text;
    else if (this.#live === undefined) this.#stream.write(text);
    else this.#live.around(text);
  }

  #follow(event: AgentEvent): void {
    if (this.#live === undefined) return;
    const call = "call" in event ? this.#calls.get(callKey(event)) : undefined;
    const callWords = call === undefined ? "" : wordsOf(call);
    this.#activities.take(event, { now: this.#showing.clock.now(), callWords });
    if (event.type === "run.finished") return this.#live.stop();
    if (this.#paused > 0) return;
    this.#live.start();
    this.#live.refresh();
  }
}

/** A command is told by itself. */
const wordsOf = ({ tool, target }: ShownCall): string =>
  fitted(tool === "bash" ? target : `${tool} ${target}`, 60);
