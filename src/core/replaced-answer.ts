import type { AgentEvent } from "./events.ts";

/**
 * The answer of a request if a hook replaced the model's text. A reader that shows replies as they stream has to show
 * it at the end: no other event contains it.
 */
export class ReplacedAnswer {
  #replaced = false;

  /** The answer, on the event that ends the request; undefined if the model's own text is the answer. */
  take(event: AgentEvent): string | undefined {
    if (event.agent !== undefined) return undefined;
    switch (event.type) {
      case "run.started":
      case "turn.started":
        this.#replaced = false;
        return undefined;
      case "hook":
        this.#replaced ||= event.event === "Stop" && event.did === "replaced";
        return undefined;
      case "run.finished":
        return this.#replaced && event.status === "done" ? (event.answer ?? undefined) : undefined;
      default:
        return undefined;
    }
  }
}
