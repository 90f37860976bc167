import type { AgentEvent } from "./events.ts";

/**
 * The answer of a request where a hook has put it in place of what the model said. Who shows replies as they come has to
 * show it at the end: it is in no other event.
 */
export class ReplacedAnswer {
  #replaced = false;

  /** The answer, with the event that ends the request; undefined where what was said is the answer. */
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
