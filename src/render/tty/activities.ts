import { formatDuration } from "../../core/bounds.ts";
import type { AgentEvent } from "../../core/events.ts";
import type { Status } from "./live-status.ts";

interface Activity {
  readonly kind: "model" | "call" | "summary";
  readonly since: number;
  /** For a model: the last thing heard of it, and what it does. */
  readonly heard: number;
  readonly words: string;
}

/** What is not worth a word yet. */
const SHORT_MS = 1000;
const STUCK_MS = 60_000;

/** What a run is waiting for, as its events tell. The last that began is what is shown. */
export class Activities {
  readonly #going = new Map<string, Activity>();
  readonly #answerIsSeen: boolean;
  #model = "the model";

  /** Where somebody else shows the answer as it comes, nothing is said of a model that answers. */
  constructor(answerIsSeen: boolean) {
    this.#answerIsSeen = answerIsSeen;
  }

  take(event: AgentEvent, about: { readonly now: number; readonly callWords: string }): void {
    const { now, callWords } = about;
    const model = `model ${event.agent ?? ""}`;
    switch (event.type) {
      case "run.started":
        if (event.agent === undefined) this.#model = event.model;
        return;
      case "turn.started":
        return this.#begin(model, { kind: "model", words: "waiting for", since: now });
      case "text":
        return this.#heard(model, "answering", now);
      case "thinking":
        return this.#heard(model, "thinking", now);
      case "model.waiting":
        return this.#begin(model, { kind: "model", words: "waiting for", since: now + event.ms });
      case "compaction":
        this.#going.delete(model);
        if (event.status === "started")
          this.#begin(model, { kind: "summary", words: "summarising older turns", since: now });
        return;
      case "model.finished":
      case "model.failed":
      case "rolled_back":
        this.#going.delete(model);
        return;
      case "call.decided":
        if (event.runs)
          this.#begin(callKey(event), { kind: "call", words: `running ${callWords}`, since: now });
        return;
      case "call.ended":
        this.#going.delete(callKey(event));
        return;
      case "run.finished":
        this.#going.clear();
        return;
      default:
    }
  }

  status(now: number): Status | undefined {
    const last = [...this.#going.values()].at(-1);
    if (last === undefined) return undefined;
    const { kind, since, words } = last;
    if (now < since)
      return { text: `asking ${this.#model} again in ${seconds(since - now)}`, alarming: false };
    if (now - since < SHORT_MS || (words === "answering" && this.#answerIsSeen)) return undefined;
    if (kind === "model") return this.#ofModel(last, now);
    const others = [...this.#going.values()].filter((one) => one.kind === "call").length - 1;
    const beside = kind === "call" && others > 0 ? ` (and ${others} more)` : "";
    return { text: `${words}${beside} ${seconds(now - since)}`, alarming: false };
  }

  #ofModel({ words, since, heard }: Activity, now: number): Status {
    const doing = words === "waiting for" ? `waiting for ${this.#model}` : `${this.#model}: ${words}`;
    const silent = now - heard;
    const text = `${doing} ${seconds(now - since)}`;
    return silent < STUCK_MS
      ? { text, alarming: false }
      : { text: `${text}, no sign of life for ${seconds(silent)} - stuck?`, alarming: true };
  }

  #begin(key: string, activity: Omit<Activity, "heard">): void {
    this.#going.delete(key);
    this.#going.set(key, { ...activity, heard: activity.since });
  }

  #heard(key: string, words: string, now: number): void {
    const activity = this.#going.get(key);
    if (activity !== undefined) this.#going.set(key, { ...activity, heard: now, words });
  }
}

export const callKey = ({ agent, call }: { readonly agent?: string; readonly call: string }): string =>
  `call ${agent ?? ""} ${call}`;

const seconds = (ms: number): string => {
  const whole = Math.max(0, Math.floor(ms / 1000));
  return whole < 60 ? `${whole} s` : formatDuration(whole * 1000);
};
