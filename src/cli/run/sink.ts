import { eachText } from "../../core/each-text.ts";
import type { AgentEvent, EventBody } from "../../core/events.ts";
import { maskSecrets } from "../../core/secrets.ts";
import type { Session } from "../../core/session.ts";

/** What is shown of a run: each event as it comes. */
export type Show = (event: AgentEvent) => void;

export interface Sink {
  readonly emit: (body: EventBody) => void;
  /** For the events of one more subagent. */
  readonly forChild: () => (body: EventBody) => void;
}

/** Numbers the events of a run; each is remembered, without its secrets, before it is shown. */
export function sinkOf(session: Session, run: string, show: Show): Sink {
  const count = { events: 0, children: 0 };
  const send = (body: EventBody, agent?: string): void => {
    count.events += 1;
    const event: AgentEvent = { ...body, run, seq: count.events, ...(agent === undefined ? {} : { agent }) };
    session.log(eachText(event, maskSecrets));
    show(event);
  };
  return {
    emit: (body) => send(body),
    forChild: () => {
      count.children += 1;
      const agent = `a${count.children}`;
      return (body) => send(body, agent);
    },
  };
}
